"""The phone changes hands at the worst moment: nothing of one caller reaches the next one's memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import Agent, ChatContext, StopResponse, ToolError
from supermemory import AsyncSupermemory, Supermemory

from memory import (
    MemoryConfigurationError,
    SupermemoryAgent,
    SupermemoryLiveKit,
    container_tag_for,
)
from memory.embedded import Faults
from memory.identity import container_tag_of
from tests.calls.kit import Make, call_with, everything, tell
from tests.harness import Call, FakeParticipant, Reply, ToolCall
from tests.support.waiting import eventually

SIP = rtc.ParticipantKind.PARTICIPANT_KIND_SIP


def hand_over(memory: SupermemoryLiveKit, to: str = "bob") -> None:
    memory.unbind()
    memory.bind(to)


async def test_answer_that_was_made_for_one_caller_is_not_stored_for_the_next(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """It may repeat the first one's memory."""
    await tell(client, "The caller is allergic to peanuts")
    memory = remember_for(session_id="room")
    async with call_with(memory, model="You are allergic to peanuts.") as call:
        call.speaker.hold()
        await call.says("What am I allergic to?", reply=False)
        await call.agent_speaking(3)
        hand_over(memory)
        call.speaker.release()
        await call.reply()
    await memory.aclose()
    assert "peanuts" not in await everything(client, "bob")


@pytest.mark.parametrize("paused", [False, True])
async def test_words_that_became_no_message_stay_with_who_said_them(
    remember_for: Make, client: AsyncSupermemory, paused: bool
) -> None:
    """A turn that a hook dropped is settled later, when somebody else is on the phone."""

    class Deaf(Agent):
        async def on_user_turn_completed(self, turn_ctx: Any, new_message: Any) -> None:
            if "PIN" in new_message.text_content:
                raise StopResponse

    memory = remember_for(session_id="room")
    async with call_with(memory, Deaf(instructions="Be brief.")) as call:
        if paused:
            memory.pause()
        await call.says("My PIN is 4711", reply=False)
        hand_over(memory)
        await call.says("I love opera")
    await memory.aclose()
    assert "4711" not in await everything(client, "bob")
    assert "opera" in await everything(client, "bob")


@pytest.mark.parametrize("how", ["forget", "erase"])
async def test_forgetting_for_one_caller_is_not_told_to_the_next(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, how: str
) -> None:
    """It is finished all the same."""
    await tell(client, "The caller is allergic to peanuts")
    memory = remember_for()
    told: list[str] = []
    memory.on("forgotten", lambda event: told.append(str(event.facts)))
    facts = await memory.facts()
    faults.delay(0.2)
    forgetting = memory.erase() if how == "erase" else memory.forget([fact.id for fact in facts])
    work = asyncio.ensure_future(forgetting)
    await eventually(lambda: faults.seen("delete_namespace") or faults.seen("memory"))
    hand_over(memory)
    await work
    await memory.aclose()
    assert told == []
    assert "peanuts" not in await everything(client, "alice")


async def test_what_is_taken_back_survives_a_moment_without_the_service(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One refused request must not leave somebody's words under the wrong person."""
    monkeypatch.setattr("memory.binding._PAUSES", (0.01, 0.01))
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("My PIN is 4711")
        await eventually(lambda: faults.seen("add"))
        await memory.remember("The caller has a cat")
        faults.status(503, on="get", times=1)
        faults.status(503, on="delete", times=1)
        memory.unbind()
    await memory.aclose()
    assert "4711" not in await everything(client, "alice")
    assert "cat" not in await everything(client, "alice")


async def test_fact_whose_answer_was_lost_is_stored_once_and_taken_back(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool gave up waiting; the service had it."""
    monkeypatch.setattr("memory.tools.TOOL_TIMEOUT", 0.1)
    memory = remember_for(session_id="room")
    remember = next(tool for tool in memory.tools() if tool.id == "remember")
    faults.late(0.5, on="add", times=1)
    with pytest.raises(ToolError, match="could not confirm"):
        await remember(text="The caller has a cat")
    monkeypatch.setattr("memory.tools.TOOL_TIMEOUT", 5.0)
    assert await remember(text="The caller has a cat") == "Saved: The caller has a cat"
    assert len((await client.list("alice", "documents")).documents) == 1
    faults.late(0.5, on="add", times=1)
    monkeypatch.setattr("memory.tools.TOOL_TIMEOUT", 0.1)
    with pytest.raises(ToolError):
        await remember(text="The caller has a dog")
    memory.unbind()
    await memory.aclose()
    assert "cat" not in await everything(client, "alice")
    assert "dog" not in await everything(client, "alice")


async def test_same_caller_bound_again_keeps_what_they_say_from_then_on(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """What is taken back is a document of its own."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("I live in Boston")
        await eventually(lambda: faults.seen("add"))
        faults.delay(0.2, on="delete")
        hand_over(memory, to="alice")
        await call.says("I love opera")
    await memory.aclose()
    assert "opera" in await everything(client, "alice")
    assert "Boston" not in await everything(client, "alice")


async def test_agent_of_one_call_knows_nothing_in_another(client: AsyncSupermemory) -> None:
    """The object, with the first caller's memory in it, is used again for the second."""
    await tell(client, "The caller is allergic to peanuts")

    def model(request: Any) -> Reply:
        if request.tool_output is not None:
            return Reply(request.tool_output)
        return Reply(calls=[ToolCall("search_memories", {"query": "allergic to peanuts"})])

    first = SupermemoryLiveKit(client=client, container_tag="alice")
    agent = SupermemoryAgent(first, instructions="Be brief.")
    async with Call(agent, model=model) as call:
        assert "peanuts" in await call.says("What am I allergic to?")
    await first.aclose()
    second = SupermemoryLiveKit(client=client, container_tag="bob")
    call = Call(agent, model=model)
    second.attach(call.session)
    async with call:
        assert "peanuts" not in await call.says("What am I allergic to?")
    await second.aclose()
    with pytest.raises(MemoryConfigurationError, match="has ended"):
        await first.search("peanuts")
    assert not await first.preload(ChatContext())


@pytest.mark.parametrize("number", ["bob", "1001", "caller:1"])
def test_what_a_phone_says_of_itself_is_nobodys_identity(number: str) -> None:
    """Whoever calls by SIP writes that part of the address themselves."""
    tag = container_tag_of(FakeParticipant("sip_1", {"sip.phoneNumber": number}, kind=SIP))
    assert tag is not None
    assert tag != container_tag_for(number)


def test_hidden_caller_has_no_memory_in_a_dispatch_either() -> None:
    """Metadata carries the identity of a phone's participant as it is."""
    assert container_tag_for("sip_anonymous") is None


def test_client_that_blocks_is_refused() -> None:
    """The synchronous one would stop the whole call for each request."""
    with pytest.raises(MemoryConfigurationError, match="Supermemory, which would stop"):
        SupermemoryLiveKit(client=Supermemory(api_key="none"))  # type: ignore[arg-type]  # the mistake itself
