"""Whose memory it is: phones, second people in the room, and a caller who is somebody else."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from livekit import api, rtc
from livekit.agents import Agent, ChatContext, JobContext, function_tool, room_io
from supermemory import AsyncSupermemory

from memory import (
    InputParams,
    MemoryConfigurationError,
    SupermemoryAgent,
    SupermemoryLiveKit,
)
from memory.embedded import Faults
from tests.calls.kit import (
    Make,
    blocks,
    by_caller,
    call_with,
    recalls,
    shown,
    stored,
    stored_so_far,
    tell,
    texts,
)
from tests.harness import FakeParticipant, FakeRoom, Reply, Request, ToolCall, fake_job, settle
from tests.support.waiting import eventually

SIP = rtc.ParticipantKind.PARTICIPANT_KIND_SIP
FACT = "The caller is vegetarian"
OTHER = "The caller eats meat"


@pytest.fixture
async def memory_of(client: AsyncSupermemory) -> Any:
    """Makes the memory of one call of a participant."""
    made: list[SupermemoryLiveKit] = []

    def make(participant: FakeParticipant, **binding: Any) -> SupermemoryLiveKit:
        memory = SupermemoryLiveKit(client=client, params=InputParams(capture_interval=0.01))
        memory.bind(participant=participant, **binding)
        made.append(memory)
        return memory

    yield make
    for memory in made:
        await memory.aclose()


def phone(number: str | None, identity: str = "sip_caller", **attributes: str) -> FakeParticipant:
    """Somebody on a telephone."""
    given = {"sip.phoneNumber": number} if number is not None else {}
    return FakeParticipant(identity, {**given, **attributes}, kind=SIP)


CALLER_ON_THE_PHONE = [
    phone("+14155550100"),
    phone("+1 (415) 555-0100"),
    phone("0014155550100"),
    phone("sip:+14155550100@carrier.example"),
    phone(None, "sip_+14155550100"),
    # We call them: the called number is theirs, the trunk's is ours.
    phone("+14155550100", "outbound", **{"sip.trunkPhoneNumber": "+18005550199", "sip.callStatus": "active"}),
    FakeParticipant("tel:+1-415-555-0100"),
]


@pytest.mark.parametrize("participant", CALLER_ON_THE_PHONE)
async def test_phone_number_is_one_person_however_it_is_written_and_whoever_called_whom(
    memory_of: Callable[..., SupermemoryLiveKit], participant: FakeParticipant
) -> None:
    """Told on one line, known on the next; and not to the number beside it."""
    memory = memory_of(phone("+14155550100"))
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
    await memory.aclose()
    async with call_with(memory_of(participant)) as call:
        await call.says("What should I cook?")
    assert "vegetarian" in shown(call.model.last)
    async with call_with(memory_of(phone("+14155550101"))) as call:
        await call.says("What should I cook?")
    assert not blocks(call.model.last)


NOBODY = [
    phone("anonymous"),
    phone("+266696687"),
    phone(None, "sip_anonymous"),
    phone("", "sip_restricted"),
    FakeParticipant("agent-7", kind=rtc.ParticipantKind.PARTICIPANT_KIND_AGENT),
    FakeParticipant("EG_recorder", kind=rtc.ParticipantKind.PARTICIPANT_KIND_EGRESS),
    FakeParticipant("ingress", kind=rtc.ParticipantKind.PARTICIPANT_KIND_INGRESS),
    FakeParticipant("voice_assistant_user_1234"),
    FakeParticipant(" "),
]


@pytest.mark.parametrize("participant", NOBODY, ids=lambda p: p.identity)
async def test_who_cannot_be_told_apart_has_a_call_without_memory(
    memory_of: Callable[..., SupermemoryLiveKit], faults: Faults, participant: FakeParticipant
) -> None:
    """A memory of all withheld numbers would be everybody's."""
    memory = memory_of(participant)
    assert memory.container_tag is None
    async with call_with(memory) as call:
        assert await call.says("I'm vegetarian") == "All right."
    assert faults.requests == []


@contextlib.contextmanager
def worker_job(room: str, agent: str) -> Iterator[JobContext]:
    """A job of a worker, as far as a memory can tell: a fake one that does not say so."""
    token = api.AccessToken("devkey", "secret-secret-secret-secret-secret").with_identity(agent).to_jwt()
    with fake_job() as context:
        context.job.room.name = room
        context._info = dataclasses.replace(context._info, fake_job=False, token=token)
        yield context


async def test_second_person_in_the_room_is_neither_answered_nor_stored(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The memory is the first one's, and so is the agent."""
    memory = remember_for(session_id="room")
    room: Any = FakeRoom("room", FakeParticipant("alice"))
    await room.connect("", "")
    with fake_job(room=room):
        call = call_with(memory, agent := Agent(instructions="Be brief."))
        options = room_io.RoomOptions(participant_identity="alice")
        await call.session.start(agent, room=room, room_options=options, record=False)
        room.joins(FakeParticipant("bob"))
        room.texts("bob", "I live in Boston, tell me about Alice")
        await settle()
        room.texts("alice", "What should I cook?")
        await call.reply()
        room.leaves("bob")
        await settle()
        room.texts("alice", "And to drink?")
        await call.reply()
        await call.hang_up()
    await memory.aclose()
    assert len(call.model.requests) == 2
    assert by_caller(await stored(client)) == ["What should I cook?", "And to drink?"]


async def test_names_that_stand_for_a_call_are_nobody(client: AsyncSupermemory) -> None:
    """A page that sends the room's name or the agent's own identity would share one memory among many."""
    with worker_job(room="my room", agent="agent-of-mine"):
        for name in ("my room", "agent-of-mine"):
            memory = SupermemoryLiveKit(client=client)
            assert memory.bind(participant=FakeParticipant(name)) is None
            assert memory.bind(container_tag=name) is None
        assert memory.bind(participant=FakeParticipant("alice")) == "alice"
        await memory.aclose()


@pytest.mark.parametrize("given", ["", "  ", None])
async def test_call_without_a_session_id_is_named_after_its_room(
    client: AsyncSupermemory, given: str | None
) -> None:
    """The quick start asks for the room's name before it is there."""
    with worker_job(room="room-7", agent="agent-of-mine"):
        memory = SupermemoryLiveKit(client=client)
        memory.bind(container_tag="alice", session_id=given)
        assert memory.session_id == "room-7"
        await memory.aclose()


async def test_calls_of_a_fake_job_are_calls_of_their_own(client: AsyncSupermemory) -> None:
    """Its room has the same name every time."""
    names = set()
    for _ in range(2):
        with fake_job():
            memory = SupermemoryLiveKit(client=client)
            memory.bind(container_tag="alice", session_id="")
            names.add(memory.session_id)
            await memory.aclose()
    assert len(names) == 2
    assert "fake-room" not in names


async def let_go_and_bind_bob(memory: SupermemoryLiveKit, faults: Faults) -> None:
    """While a request about the wrong person is open."""
    await eventually(lambda: faults.seen("search"))
    memory.unbind()
    assert memory.bind(container_tag="bob") == "bob"


@pytest.mark.parametrize("typed", [False, True])
async def test_late_answer_about_one_caller_never_reaches_another(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, typed: bool
) -> None:
    """The search hangs, the caller says who they are, and only then comes what was found."""
    await tell(client, FACT)
    await tell(client, OTHER, "bob")
    memory = remember_for(recall_timeout=30.0, reply_budget=5.0)
    told = recalls(memory)
    assert await memory.preload(ChatContext.empty())
    faults.delay(0.3, on="search", times=1)
    async with call_with(memory) as call:
        switching = asyncio.create_task(let_go_and_bind_bob(memory, faults))
        await (call.types if typed else call.says)("What should I cook?")
        await switching
        assert FACT not in call.model.last.prompt
        await call.says("What should I cook now?")
    assert FACT not in str([request.prompt for request in call.model.requests])
    assert OTHER in shown(call.model.last)
    assert FACT not in str(told)


async def test_manual_hook_shows_nothing_of_a_caller_who_was_let_go(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The same by the manual hook, and by preloading."""
    await tell(client, FACT)
    memory = remember_for(recall_timeout=30.0)
    assert await memory.preload(ChatContext.empty())
    faults.delay(0.3, on="search", times=1)
    turn_ctx = ChatContext.empty()
    message = turn_ctx.add_message(role="user", content="What should I cook?")
    switching = asyncio.create_task(let_go_and_bind_bob(memory, faults))
    await memory.on_user_turn_completed(turn_ctx, message)
    await switching
    assert FACT not in str(turn_ctx.to_dict())

    memory = remember_for(recall_timeout=30.0)
    faults.delay(0.3, on="profile", times=1)
    preloading = asyncio.create_task(memory.preload(turn_ctx))
    await eventually(lambda: len(faults.seen("profile")) == 3)
    memory.unbind()
    assert not await preloading
    assert FACT not in str(turn_ctx.to_dict())


async def test_tools_that_hang_tell_nothing_of_a_caller_who_was_let_go(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """Neither a lookup nor what would be forgotten."""
    await tell(client, FACT)
    for ask in (SupermemoryLiveKit.search, SupermemoryLiveKit.preview_forget):
        faults.requests.clear()
        memory = remember_for()
        assert await ask(memory, "vegetarian")
        faults.requests.clear()
        faults.delay(0.3, on="search", times=1)
        asking = asyncio.create_task(ask(memory, "vegetarian"))
        await let_go_and_bind_bob(memory, faults)
        assert await asking == []


async def test_wrong_person_leaves_the_call_at_once_with_all_that_was_told_about_them(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The block, the preloaded profile and what the tools answered: the next reply reads none of it."""
    await tell(client, FACT)
    memory = remember_for(session_id="room", capture_interval=0.0)
    chat_ctx = ChatContext.empty()
    assert await memory.preload(chat_ctx)

    @function_tool
    async def not_me() -> str:
        """The caller is somebody else."""
        memory.unbind()
        return "Let go."

    calls = {
        "What do I eat?": ToolCall("search_memories", {"query": "vegetarian"}),
        "I'm Bob": ToolCall("not_me"),
    }

    def model(request: Request) -> Reply:
        call = calls.get(request.user_text)
        return Reply(calls=[call]) if call and request.tool_output is None else Reply("All right.")

    agent = SupermemoryAgent(memory, instructions="Be brief.", chat_ctx=chat_ctx, tools=[not_me])
    async with call_with(memory, agent, model=model) as call:
        await call.says("What do I eat?")
        assert call.model.last.prompt.count(FACT) == 2
        await stored_so_far(client, lines=1)
        await call.says("I'm Bob")
        after = len(call.model.requests) - 1
        await call.says("What do you know about me?")
        assert memory.bind(container_tag="bob") == "bob"
        await call.says("I eat meat")
    await memory.aclose()
    assert [FACT in request.prompt for request in call.model.requests[after:]] == [False] * 3
    assert "another person" in call.model.last.prompt
    assert FACT not in str(agent.chat_ctx.to_dict())
    assert await stored(client) == []
    assert await texts(client) == [FACT]
    assert by_caller(await stored(client, tag="bob")) == ["I eat meat"]


async def test_line_that_is_being_sent_when_the_caller_is_let_go_is_taken_back_too(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """And so is a fact that is being saved."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    faults.late(0.2, on="add", times=2)
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        await eventually(lambda: faults.seen("add"))
        saving = asyncio.create_task(memory.remember("The caller likes jazz"))
        await eventually(lambda: len(faults.seen("add")) == 2)
        memory.unbind()
        with pytest.raises(MemoryConfigurationError, match="let go"):
            await saving
    await memory.aclose()
    assert (await client.list("alice", "documents")).documents == []


async def test_forgetting_that_the_wrong_person_was_asked_about_is_not_confirmed_by_the_right_one(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """What was read back to one caller is no question to another."""
    await tell(client, "The caller lives in Boston")
    await tell(client, "The caller lives in Boston", "bob")
    memory = remember_for()
    query = {"query": "Boston"}

    def model(request: Request) -> Reply:
        confirmed = {"confirmed": True} if request.user_text == "Yes" else {}
        if request.tool_output is not None:
            return Reply(request.tool_output)
        return Reply(calls=[ToolCall("forget", {**query, **confirmed})])

    async with call_with(memory, model=model, tools=memory.tools()) as call:
        assert (await call.says("Forget Boston")).startswith("Not forgotten yet")
        memory.unbind()
        memory.bind(container_tag="bob")
        assert (await call.says("Yes")).startswith("Not forgotten yet")
    for tag in ("alice", "bob"):
        assert await texts(client, tag) == ["The caller lives in Boston"]


async def test_later_attribute_of_the_participant_changes_nothing(
    memory_of: Callable[..., SupermemoryLiveKit], client: AsyncSupermemory
) -> None:
    """The tag is read once, when the caller joins."""
    await tell(client, FACT)
    participant = FakeParticipant("visitor-1", {"supermemory_container_tag": "bob"})
    memory = memory_of(participant)
    async with call_with(memory) as call:
        participant.attributes["supermemory_container_tag"] = "alice"
        assert (
            memory.bind(participant=FakeParticipant("visitor-1", {"supermemory_container_tag": "bob"}))
            == "bob"
        )
        with pytest.raises(MemoryConfigurationError, match="unbind"):
            memory.bind(participant=participant)
        await call.says("What should I cook?")
    assert memory.container_tag == "bob"
    assert FACT not in call.model.last.prompt
