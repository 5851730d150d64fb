"""Clients over embedded memories of one test. They search by words, so that every machine sees the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from supermemory import AsyncSupermemory

from memory.embedded import EmbeddedTransport, Faults
from tests.embedded.conversation import MakeClient


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "memory.sqlite3"


@pytest.fixture
async def make_client(path: Path) -> AsyncIterator[MakeClient]:
    """Makes SDK clients without retries; all are closed at the end of the test."""
    made: list[httpx.AsyncClient] = []

    def make(
        faults: Faults | None = None, *, vectors: bool = False, timeout: float = 30.0
    ) -> AsyncSupermemory:
        http = httpx.AsyncClient(transport=EmbeddedTransport(path, faults=faults, vectors=vectors))
        made.append(http)
        return AsyncSupermemory(
            api_key="test",
            base_url="http://memory.embedded",
            http_client=http,
            max_retries=0,
            timeout=timeout,
        )

    yield make
    for http in made:
        await http.aclose()


@pytest.fixture
def sdk(make_client: MakeClient) -> AsyncSupermemory:
    return make_client()
