"""What the tests of calls share: the embedded store as the memory service, and calls of one caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from supermemory import AsyncSupermemory

from memory import InputParams, SupermemoryLiveKit, embedded
from memory.embedded import Faults


@pytest.fixture
def faults() -> Faults:
    """Switches that make the memory service fail; also the record of what it was asked."""
    return Faults()


@pytest.fixture
async def client(tmp_path: Path, faults: Faults) -> AsyncIterator[AsyncSupermemory]:
    """The real SDK over a memory service of this test alone."""
    client = embedded.client(tmp_path / "memory.sqlite3", faults=faults)
    yield client
    await client.close()


@pytest.fixture
async def remember_for(client: AsyncSupermemory) -> AsyncIterator[Callable[..., SupermemoryLiveKit]]:
    """Makes the memory of one call of a caller; each is closed at the end of the test."""
    made: list[SupermemoryLiveKit] = []

    def make(
        caller: str | None = "alice", *, session_id: str | None = None, **params: Any
    ) -> SupermemoryLiveKit:
        settings: dict[str, Any] = {"capture_interval": 0.01, **params}
        memory = SupermemoryLiveKit(client=client, params=InputParams(**settings))
        memory.bind(container_tag=caller, session_id=session_id)
        made.append(memory)
        return memory

    yield make
    for memory in made:
        await memory.aclose()
