"""The fixtures of the token server's tests."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from memory import embedded
from memory.store import MemoryStore
from server.callers import ResolveSubject
from tests.token_server.service import CONFIG, PAGE, Browser, Service, StartService
from token_server import create_app, resolve_subject


@pytest.fixture
def frontend(tmp_path: Path) -> Path:
    """A folder that holds a page like ours, without livekit-client."""
    folder = tmp_path / "frontend"
    folder.mkdir()
    (folder / "index.html").write_text(PAGE)
    return folder


@pytest.fixture
async def start(tmp_path: Path, frontend: Path) -> AsyncIterator[StartService]:
    """Starts token servers that share one memory, and stops them."""
    running: list[tuple[Service, TestServer]] = []
    faults = embedded.Faults()
    client = embedded.client(tmp_path / "memory.sqlite3", faults=faults)

    async def begin(resolve: ResolveSubject = resolve_subject, **changes: Any) -> Service:
        config = dataclasses.replace(CONFIG, **{"frontend": frontend, **changes})
        server = TestServer(create_app(config, client, "embedded", resolve))
        await server.start_server()
        running.append((Service(server, faults, MemoryStore(client)), server))
        return running[-1][0]

    yield begin
    for service, server in running:
        await service.aclose()
        await server.close()
    await client.close()


@pytest.fixture
async def service(start: StartService) -> Service:
    """A token server with its defaults."""
    return await start()


@pytest.fixture
async def browser(service: Service) -> Browser:
    """A browser that has never been here."""
    return service.browser()
