"""The quick start that the module is known by, word for word, against a real session.

Only what the three model strings name is scripted; the memory service is the embedded one, behind HTTP.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import AgentSession, ChatContext, JobContext

from memory import SupermemoryAgent, SupermemoryLiveKit
from memory.embedded import EmbeddedTransport
from tests.harness import Call, FakeParticipant, FakeRoom, answering, end_job, fake_job
from tests.support.loopback import loopback


async def quick_start(ctx: JobContext) -> None:
    """The documented quick start, line for line."""
    memory = SupermemoryLiveKit(api_key=os.getenv("SUPERMEMORY_API_KEY"))
    metadata = json.loads(ctx.job.metadata or "{}")
    container_tag = metadata.get("container_tag")
    if container_tag:
        memory.bind(container_tag=container_tag, session_id=ctx.room.name)
    chat_ctx = ChatContext()
    if container_tag:
        await memory.preload(chat_ctx)
    await ctx.connect()
    if not container_tag:
        participant = await ctx.wait_for_participant()
        memory.bind(participant=participant, session_id=ctx.room.name)
    session = AgentSession(  # type: ignore[var-annotated]  # as it is documented
        stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3"
    )
    memory.attach(session)
    await session.start(room=ctx.room, agent=SupermemoryAgent(memory, chat_ctx=chat_ctx, instructions="..."))


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedTransport]:
    """A memory service at SUPERMEMORY_BASE_URL."""
    transport = EmbeddedTransport(tmp_path / "memory.sqlite3")
    async with loopback(transport) as server:
        monkeypatch.setenv("SUPERMEMORY_API_KEY", "sm_test")
        monkeypatch.setenv("SUPERMEMORY_BASE_URL", server.url)
        yield transport
    await transport.aclose()


async def one_call(metadata: dict[str, Any], words: str, *, room: str) -> Call:
    """One call by the quick start, from the job's beginning to its end."""
    participant = FakeParticipant("alice@example.com")
    with (
        answering(model="All right.") as calls,
        fake_job(metadata, room=FakeRoom(room, participant)) as ctx,
    ):
        await quick_start(ctx)
        await calls[0].says(words)
        await end_job(ctx)
    return calls[0]


@pytest.mark.parametrize("metadata", [{"container_tag": "customer-1"}, {}])
async def test_quick_start_remembers_from_one_call_to_the_next(
    service: EmbeddedTransport, metadata: dict[str, Any]
) -> None:
    """With a tag in the dispatch, and with nothing but a participant."""
    first = await one_call(metadata, "I'm vegetarian", room="room-1")
    assert "vegetarian" not in first.model.requests[-1].prompt.split("user: I'm")[0]
    second = await one_call(metadata, "What should I cook?", room="room-2")
    assert "vegetarian" in second.model.requests[-1].prompt
    assert second.model.requests[-1].prompt.count("<caller_memory>") == 1
    assert len(second.model.requests) == 1


async def test_manual_hook_of_an_existing_agent(service: EmbeddedTransport) -> None:
    """The other documented way: tools and one line in the hook of one's own `Agent` subclass."""
    from livekit.agents import Agent, llm

    await one_call({"container_tag": "customer-1"}, "I'm vegetarian", room="room-1")
    memory = SupermemoryLiveKit()
    memory.bind(container_tag="customer-1")

    class Existing(Agent):
        def __init__(self) -> None:
            super().__init__(instructions="...", tools=memory.tools())

        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            await memory.on_user_turn_completed(turn_ctx, new_message)

    async with Call(Existing(), model="Fine.", preemptive=False) as call:
        await call.says("What should I cook?")
    assert "vegetarian" in call.model.requests[-1].prompt
    await memory.aclose()
