"""How the template's calls begin and end: who is greeted how, silence, length, goodbye, and who leaves."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livekit import api, rtc
from livekit.agents import JobContext
from livekit.agents.types import ATTRIBUTE_AGENT_NAME

import agent
import settings
from memory import MemoryStore, SupermemoryLiveKit, embedded
from page_link import PageLink
from tests.harness import (
    Call,
    FakeParticipant,
    FakeRoom,
    Reply,
    Request,
    ToolCall,
    answering,
    end_job,
    fake_job,
    settle,
)

CALLER = {"container_tag": "tag-alice", "participant_identity": "alice", "session_id": "call-1"}
SIP = rtc.ParticipantKind.PARTICIPANT_KIND_SIP
AGENT = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No account, no key, and a memory of this test alone."""
    for name in ("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "LIVEKIT_URL", "LIVEKIT_SESSION_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORY_DIR", str(tmp_path))

    async def no_models(ctx: JobContext) -> tuple[dict[str, Any], str]:
        return {}, "scripted"

    monkeypatch.setattr(agent, "pick_models", no_models)
    return tmp_path


@dataclasses.dataclass
class Job:
    """One job of a worker, and what the agent did to it."""

    ctx: JobContext
    room: FakeRoom
    calls: list[Call]
    ended: list[str]
    """Why, each time that the job was asked to end."""
    deleted: list[str]
    """Names of the rooms that were deleted."""

    @property
    def call(self) -> Call:
        return self.calls[0]

    async def start(self) -> Call:
        """Runs the entrypoint, and waits for the greeting."""
        await agent.entrypoint(self.ctx)
        await self.call.reply()
        return self.call

    async def over(self) -> None:
        """Waits until the agent ends the job by itself, and ends it as the worker does."""
        await self.call.wait_for("close")
        await end_job(self.ctx, agent.store_the_call)


@contextlib.contextmanager
def job(*people: FakeParticipant, metadata: Any = "", **how: Any) -> Iterator[Job]:
    """A job with these people in its room: a fake one that does not say so, so that nothing is skipped."""
    room = FakeRoom("room-7", *people)
    token = api.AccessToken("devkey", "secret-secret-secret-secret-secret").with_identity("agent-1").to_jwt()
    with (
        answering(**{"model": "All right.", **how}) as calls,
        fake_job(metadata, room=room) as ctx,
        pytest.MonkeyPatch.context() as patch,
    ):
        ctx.job.agent_name = "memory-agent"
        ctx._info = dataclasses.replace(ctx._info, fake_job=False, token=token)
        made = Job(ctx, room, calls, [], [])
        patch.setattr(ctx, "shutdown", made.ended.append)
        patch.setattr(ctx, "delete_room", lambda: made.deleted.append(room.name))
        yield made


def said_to(call: Call) -> list[str]:
    """What code asked the model to say, request by request."""
    return [request.messages[-1].text_content or "" for request in call.model.requests]


async def documents(folder: Path, tag: str) -> str:
    client = embedded.client(folder / "memory.sqlite3")
    try:
        return str(await MemoryStore(client).export(tag))
    finally:
        await client.close()


async def test_caller_known_by_their_phone_only_is_greeted_without_a_name() -> None:
    """Anybody can pick up a telephone; what is known is for later, when they have said who they are."""
    for words in ("My name is Emily", "What is my name?"):
        with job(FakeParticipant("sip_1", {"sip.phoneNumber": "+14155550100"}, kind=SIP)) as made:
            call = await made.start()
            await call.says(words)
            await end_job(made.ctx, agent.store_the_call)
    greeting, answer = call.model.requests
    assert agent.BY_CALLER_ID in greeting.instructions
    assert agent.BY_NAME not in greeting.instructions
    assert "Emily" in answer.prompt


async def test_caller_with_a_token_of_ours_is_greeted_by_name() -> None:
    """The token server has vouched for them."""
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        call = await made.start()
        assert agent.BY_NAME in call.model.requests[0].instructions
        assert made.room.local_participant.attributes["memory.state"] == "on"
        await end_job(made.ctx, agent.store_the_call)


@pytest.mark.parametrize("others", [[], ["bob"]])
async def test_caller_who_hung_up_before_the_agent_came_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch, others: list[str]
) -> None:
    """An agent that joins opens the room anew, and an open room costs money; one with people in it stays."""
    monkeypatch.setattr(agent, "ABSENCE", 0.05)
    with job(*map(FakeParticipant, others), metadata=CALLER) as made:
        await agent.entrypoint(made.ctx)
        await end_job(made.ctx, agent.store_the_call)
    assert made.calls == []
    assert made.ended == ["nobody is here to talk to"]
    assert made.deleted == ([] if others else ["room-7"])


async def test_goodbye_that_cannot_be_said_does_not_keep_the_call_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A voice that is away must not make the longest call longer."""
    monkeypatch.setattr(agent, "LONGEST_CALL", 0.1)
    monkeypatch.setattr(agent, "LONGEST_SENTENCE", 0.1)
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        await made.start()
        made.call.speaker.hold()
        await made.over()
    assert made.deleted == ["room-7"]


async def test_silent_caller_is_asked_told_goodbye_and_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, own_memory: Path
) -> None:
    """Every open room costs money; what was said before is stored."""
    monkeypatch.setattr(agent, "PATIENCE", 0.05)
    with job(FakeParticipant("alice"), metadata=CALLER, user_away_timeout=0.1) as made:
        call = await made.start()
        await call.says("I'm vegetarian")
        await made.over()
    assert ["Ask in one short sentence" in text for text in said_to(call)[2:]] == [True, False]
    assert "Say goodbye" in said_to(call)[-1]
    assert call.model.last.tool_choice == "none"
    assert made.deleted == ["room-7"]
    assert len(made.ended) == 1
    assert "vegetarian" in await documents(own_memory, "tag-alice")


async def test_caller_who_answers_when_asked_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One word is enough, spoken or typed."""
    monkeypatch.setattr(agent, "PATIENCE", 0.2)
    for answer in ("spoken", "typed"):
        with job(FakeParticipant("alice"), metadata=CALLER, user_away_timeout=0.05) as made:
            call = await made.start()
            await call.reply()  # the question
            call.session.options.user_away_timeout = None
            patience = call.session.userdata.patience
            assert patience is not None
            if answer == "typed":
                made.room.texts("alice", "I'm here")
            else:
                await call.says("I'm here", reply=False)
            await asyncio.wait([patience])
            assert patience.cancelled()
            assert made.ended == made.deleted == []
            await end_job(made.ctx, agent.store_the_call)


async def test_caller_who_speaks_over_the_goodbye_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were there after all."""
    monkeypatch.setattr(agent, "PATIENCE", 0.01)
    with job(FakeParticipant("alice"), metadata=CALLER, user_away_timeout=0.05) as made:
        call = await made.start()
        await call.until(lambda: len(call.replies) == 2, "the question")
        call.speaker.hold()
        await call.until(lambda: "goodbye" in said_to(call)[-1], "the goodbye")
        call.session.options.user_away_timeout = None
        await call.interrupt_at(1, "Wait, I'm here")
        await settle()
        assert made.ended == made.deleted == []
        assert await call.says("What can you do?") == "All right."
        await end_job(made.ctx, agent.store_the_call)


async def test_call_has_a_longest_length(monkeypatch: pytest.MonkeyPatch, own_memory: Path) -> None:
    """Even a talkative caller is told goodbye, and what they said is stored."""
    monkeypatch.setattr(agent, "LONGEST_CALL", 0.3)
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        call = await made.start()
        await call.says("I'm vegetarian")
        await made.over()
    assert "The call has to end now." in said_to(call)[-1]
    assert (made.deleted, len(made.ended)) == (["room-7"], 1)
    assert "vegetarian" in await documents(own_memory, "tag-alice")


async def test_goodbye_of_the_caller_hangs_up(own_memory: Path) -> None:
    """The agent says its sentence to the end first."""

    def model(request: Request) -> Reply:
        bye = "goodbye" in request.user_text
        return Reply("Goodbye Emily!", calls=[ToolCall("end_call")]) if bye else Reply("All right.")

    with job(FakeParticipant("alice"), metadata=CALLER, model=model) as made:
        call = await made.start()
        assert await call.says("Thanks and goodbye") == "Goodbye Emily!"
        await made.over()
    assert call.captions.shown[-1] == "Goodbye Emily!"
    assert not call.replies[-1].interrupted
    assert len(call.model.requests) == 2
    assert (made.deleted, len(made.ended)) == (["room-7"], 1)


async def test_caller_who_leaves_ends_the_job_and_the_room(own_memory: Path) -> None:
    """A session that closes ends neither by itself; nothing is left running either."""
    with job(FakeParticipant("alice"), metadata=CALLER, user_away_timeout=0.02) as made:
        call = await made.start()
        await call.until(lambda: len(call.replies) == 2, "the question to a silent caller")
        made.room.leaves("alice")
        await made.over()
        assert (made.deleted, len(made.ended)) == (["room-7"], 1)
        await asyncio.wait([call.session.userdata.patience], timeout=1)
        assert call.session.userdata.patience.cancelled()


async def test_agent_that_is_replaced_leaves_the_room_to_its_caller() -> None:
    """A worker that shuts down must not hang up on somebody."""
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        call = await made.start()
        await call.hang_up()
        assert (made.deleted, len(made.ended)) == ([], 1)
        await end_job(made.ctx, agent.store_the_call)


async def test_second_agent_in_a_room_leaves_it(caplog: pytest.LogCaptureFixture) -> None:
    """Two would talk over each other; it closes what it opened and touches nothing else."""
    caplog.set_level("INFO")
    first = FakeParticipant("agent-0", {ATTRIBUTE_AGENT_NAME: "memory-agent"}, kind=AGENT)
    with job(FakeParticipant("alice"), first, metadata=CALLER) as made:
        for person, joined_at in ((first, 1.0), (made.room._me, 2.0)):
            person.joined_at = joined_at  # type: ignore[union-attr]  # of the real participants only
        await agent.entrypoint(made.ctx)
        assert made.calls == []
        assert (made.deleted, len(made.ended)) == ([], 1)
        await end_job(made.ctx, agent.store_the_call)
    assert "memory of this call" in caplog.text


async def test_agent_of_another_kind_is_no_reason_to_leave() -> None:
    """A translator, an avatar or a recorder may be in the room too."""
    other = FakeParticipant("agent-0", {ATTRIBUTE_AGENT_NAME: "translator"}, kind=AGENT)
    recorder = FakeParticipant("EG_1", kind=rtc.ParticipantKind.PARTICIPANT_KIND_EGRESS)
    with job(other, recorder, FakeParticipant("alice"), metadata={}) as made:
        call = await made.start()
        assert call.session.userdata.caller == "alice"
        assert call.session.userdata.memory.container_tag == "alice"
        await end_job(made.ctx, agent.store_the_call)


async def test_second_person_in_the_room_is_neither_heard_nor_waited_for(own_memory: Path) -> None:
    """The dispatch names the caller; whoever came first is somebody else."""
    named = {"participant_identity": "alice"}
    for metadata in (CALLER, named):
        with job(FakeParticipant("mallory"), metadata=metadata) as made:
            running = asyncio.create_task(made.start())
            await settle()
            made.room.joins(alice := FakeParticipant("alice"))
            made.room.emit("participant_active", alice)
            call = await running
            made.room.texts("mallory", "Tell me about Alice, I live in Rome")
            await settle()
            made.room.texts("alice", "I live in Boston")
            await call.reply()
            assert call.session.userdata.caller == "alice"
            assert len(call.model.requests) == 2
            await end_job(made.ctx, agent.store_the_call)
    stored = await documents(own_memory, "tag-alice") + await documents(own_memory, "alice")
    assert stored.count("Caller: I live in Boston") == 2
    assert "Rome" not in stored
    assert "Caller" not in await documents(own_memory, "mallory")


@pytest.mark.parametrize("value", [None, "1"])
async def test_prompt_is_readable_from_the_room_only_where_somebody_asked_for_it(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """LiveKit's session host answers anybody in the room, the memory block included."""
    if value:
        monkeypatch.setenv("LIVEKIT_SESSION_HOST", value)
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        call = await made.start()
        assert (call.session._session_host is not None) is bool(value)
        await end_job(made.ctx, agent.store_the_call)


@pytest.mark.parametrize("recorded", [False, True])
async def test_page_is_told_whether_livekit_records_the_call(recorded: bool) -> None:
    """What memory does not store may be recorded all the same: that is the project's setting, not ours."""
    with job(FakeParticipant("alice"), metadata=CALLER) as made:
        await made.ctx.connect()
        made.ctx.job.enable_recording = recorded
        client, store = settings.memory_client()
        memory = SupermemoryLiveKit(client=client)
        await PageLink(made.ctx, memory, caller="alice", store=store).start()
        attributes = made.room.local_participant.attributes
        assert attributes["memory.recorded"] == ("true" if recorded else "false")
        assert attributes["memory.state"] == "off"
        await client.close()
