"""What the tests of calls have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from livekit.agents import Agent, llm
from supermemory import AsyncSupermemory

from memory import MemoryEvent, MemoryStore, SupermemoryLiveKit
from memory.blocks import is_block
from memory.embedded import Faults
from memory.transcript import Line, parse
from tests.harness import Call, Request

Make = Callable[..., SupermemoryLiveKit]


def call_with(memory: SupermemoryLiveKit, agent: Agent | None = None, **options: Any) -> Call:
    """A call with memory attached to its session."""
    call = Call(agent or Agent(instructions="Be brief."), **{"model": "All right.", **options})
    memory.attach(call.session)
    return call


# --- What the model was shown --------------------------------------------------------------------


def blocks(request: Request) -> list[llm.ChatMessage]:
    """The memory blocks that the model was shown."""
    return [item for item in request.messages if is_block(item)]


def shown(request: Request) -> str:
    """The one memory block that the model was shown, or an empty string."""
    [text] = [block.text_content or "" for block in blocks(request)] or [""]
    return text


# --- What the memory service knows ---------------------------------------------------------------


async def tell(client: AsyncSupermemory, text: str, tag: str = "alice") -> None:
    """Something the caller asked to remember in an earlier call."""
    await client.add(tag, content=text, metadata={"kind": "remembered"})


async def texts(client: AsyncSupermemory, tag: str = "alice") -> list[str]:
    """The facts that are known of the caller, newest first."""
    return [fact.text for fact in await MemoryStore(client).facts(tag)]


async def everything(client: AsyncSupermemory, tag: str = "alice") -> str:
    """All that is stored of the caller, to look for a word in it."""
    return str(await MemoryStore(client).export(tag))


async def stored(client: AsyncSupermemory, session_id: str = "room", tag: str = "alice") -> list[Line]:
    """The transcript of one call; empty when nothing was stored."""
    listed = await client.list(tag, "documents", include={"content": True})
    contents = [document.content or "" for document in listed.documents if document.id == f"lk-{session_id}"]
    if not contents:
        return []
    lines = parse(contents[0])
    assert len(lines) == len(contents[0].split("\n[")), "a line of another shape is stored"
    return lines


async def stored_so_far(client: AsyncSupermemory, lines: int) -> list[Line]:
    """The transcript of a call that goes on, as soon as it has so many lines."""
    async with asyncio.timeout(10.0):
        while len(found := await stored(client)) < lines:  # noqa: ASYNC110  # no event announces it
            await asyncio.sleep(0.01)
    return found


def said(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Who said what, in its order."""
    return [(line.speaker, line.text) for line in lines]


def by_caller(lines: Sequence[Line]) -> list[str]:
    """What the caller said, in its order."""
    return [line.text for line in lines if line.speaker == "Caller"]


# --- What the memory asked and told --------------------------------------------------------------


def searches(faults: Faults) -> list[str]:
    """The queries that the memory service was asked, in their order."""
    return [request.body["query"] for request in faults.seen("search")]


def added(faults: Faults) -> list[str]:
    """The contents that were sent to be stored, in their order."""
    return [request.body["content"] for request in faults.seen("add")]


def recalls(memory: SupermemoryLiveKit) -> list[MemoryEvent]:
    """What each reply with memory from now on was told, and how long it waited for that."""
    told: list[MemoryEvent] = []
    memory.on("recalled", told.append)
    return told


def numbers(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """The line about the whole call that the memory logs at its end, a counter a key."""
    [line] = [vars(record) for record in caplog.records if record.message == "memory of this call"]
    return line
