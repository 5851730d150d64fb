"""The quick start, word for word, as a worker on a real LiveKit server and over real HTTP to the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from supermemory import AsyncSupermemory

from memory import MemoryStore, container_tag_for
from memory.embedded import EmbeddedTransport
from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.loopback import Loopback, loopback
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker, running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Loopback]:
    """A memory service of its own, known by its address."""
    transport = EmbeddedTransport(tmp_path_factory.mktemp("service") / "memory.sqlite3")
    async with loopback(transport) as server:
        yield server
    await transport.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quick_start(
    livekit: LiveKitServer, environment: dict[str, str], service: Loopback, speech: None
) -> AsyncIterator[Worker]:
    supermemory = {"SUPERMEMORY_API_KEY": "sm_test", "SUPERMEMORY_BASE_URL": service.url}
    async with running("tests.livekit.quick_start_agent", {**environment, **supermemory}) as worker:
        yield worker


@pytest_asyncio.fixture(loop_scope="session")
async def kept(service: Loopback) -> AsyncIterator[Memory]:
    """What the service holds."""
    async with httpx.AsyncClient() as http_client:
        yield Memory(
            MemoryStore(AsyncSupermemory(api_key="sm_test", base_url=service.url, http_client=http_client))
        )


@pytest.mark.parametrize("metadata", [{"container_tag": "customer-1"}, None], ids=["tag", "participant"])
async def test_quick_start_remembers_from_one_call_to_the_next(
    livekit: LiveKitServer, quick_start: Worker, kept: Memory, metadata: dict[str, Any] | None
) -> None:
    """Bound by the dispatch or by whoever comes: one document for each call, and nobody else's memory."""
    identity = "alice@example.com"
    tag = metadata["container_tag"] if metadata else container_tag_for(identity)
    assert tag is not None
    asked = dispatch(metadata, agent="quick-start")
    rooms = [f"quick-{tag[-6:]}-{number}" for number in (1, 2)]
    async with joining(livekit, rooms[0], identity, dispatches=[asked]) as caller:
        await caller.agent_listens()
        await caller.says("I live in Boston.")
    await quick_start.logs("memory of this call", room=rooms[0])
    assert "Boston" in " ".join(await kept.said(tag))
    async with joining(livekit, rooms[1], identity, dispatches=[asked]) as caller:
        await caller.agent_listens()
        assert "Boston" in await caller.types("What do you know about me?")
    await quick_start.logs("memory of this call", room=rooms[1])
    documents = (await kept.store.export(tag))["documents"]
    assert {document["metadata"]["session_id"] for document in documents} == set(rooms)
