"""What the tests of agents, callers and deadlines have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from livekit.agents import Agent, llm
from supermemory import AsyncSupermemory

from memory import SupermemoryLiveKit
from memory.blocks import is_block
from memory.embedded import Faults
from memory.transcript import Line, parse
from tests.harness import Call, Request

Make = Callable[..., SupermemoryLiveKit]


async def tell(client: AsyncSupermemory, text: str, tag: str = "alice") -> None:
    """Something the caller asked to remember in an earlier call."""
    await client.add(tag, content=text, metadata={"kind": "remembered"})


def call_with(memory: SupermemoryLiveKit, agent: Agent | None = None, **options: object) -> Call:
    """A call with memory attached to its session."""
    settings: dict[str, object] = {"model": "All right.", **options}
    call = Call(agent or Agent(instructions="Be brief."), **settings)  # type: ignore[arg-type]
    memory.attach(call.session)
    return call


def blocks(request: Request) -> list[llm.ChatMessage]:
    """The memory blocks that the model was shown."""
    return [item for item in request.messages if is_block(item)]


def shown(request: Request) -> str:
    """The one memory block that the model was shown, or an empty string."""
    [text] = [block.text_content or "" for block in blocks(request)] or [""]
    return text


def searches(faults: Faults) -> list[str]:
    """The queries that the memory service was asked, in their order."""
    return [request.body["query"] for request in faults.seen("search")]


async def stored(client: AsyncSupermemory, session_id: str = "room", tag: str = "alice") -> list[Line]:
    """The transcript of one call; empty when nothing was stored."""
    listed = await client.list(tag, "documents", include={"content": True})
    contents = [document.content or "" for document in listed.documents if document.id == f"lk-{session_id}"]
    return parse(contents[0]) if contents else []


def said(lines: Sequence[Line]) -> list[tuple[str, str]]:
    return [(line.speaker, line.text) for line in lines]


def by_caller(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines if line.speaker == "Caller"]
