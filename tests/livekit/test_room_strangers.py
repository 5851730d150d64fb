"""Who else is in the room: nobody but the caller is answered, stored, or obeyed."""

from __future__ import annotations

import pytest
from livekit import api, rtc
from livekit.agents.voice.remote_session import RemoteSession

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker

ALICE = {"container_tag": "alice", "participant_identity": "alice"}


async def test_a_second_persons_words_are_neither_answered_nor_stored(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """Typed or spoken, before or after the caller's: the call is between two."""
    async with (
        joining(livekit, "shared", "alice", dispatches=[dispatch(ALICE)]) as caller,
        joining(livekit, "shared", "mallory") as other,
    ):
        await caller.greeted()
        await other.sends("My name is Mallory.")
        await other.speaks("I live in Boston.")
        assert await caller.types("What do you know about me?") == (
            "Nothing yet. Tell me something about yourself."
        )
        await caller.types("I love opera.")
        assert len(caller.lines) == 3, [line.text for line in caller.lines]
    await worker.logs("memory of this call", room="shared")
    assert await memory.said("alice") == ["What do you know about me?", "I love opera."]
    assert await memory.lines("mallory") == []


async def test_recorders_and_other_agents_are_not_taken_for_the_caller(
    livekit: LiveKitServer, worker: Worker, memory: Memory, server_api: api.LiveKitAPI
) -> None:
    """They may be there first; the agent waits for a person."""
    async with (
        joining(livekit, "recorded", "recorder", kind="egress", microphone=False) as recorder,
        joining(livekit, "recorded", "avatar", kind="agent", microphone=False) as avatar,
    ):
        wanted = api.CreateAgentDispatchRequest(room="recorded", agent_name="memory-agent")
        await server_api.agent_dispatch.create_dispatch(wanted)
        assert "memory.state" not in (await recorder.agent()).attributes
        await avatar.sends("My name is Mallory.")
        async with joining(livekit, "recorded", "bob") as caller:
            await caller.greeted()
            assert await caller.types("I love opera.") == "Noted: you love opera."
        await worker.logs("memory of this call", room="recorded")
    assert await memory.said("bob") == ["I love opera."]
    assert await memory.lines("recorder") == []
    assert await memory.lines("avatar") == []


async def test_the_agents_methods_refuse_everybody_but_the_caller(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """A room is open to whoever has a token for it: they can neither pause nor erase."""
    async with (
        joining(livekit, "methods", "alice", dispatches=[dispatch(ALICE)]) as caller,
        joining(livekit, "methods", "mallory") as other,
    ):
        await caller.greeted()
        for method, payload in (
            ("memory.ping", None),
            ("memory.pause", {"paused": True}),
            ("memory.forget", {"everything": True}),
        ):
            with pytest.raises(rtc.RpcError) as refused:
                await other.calls(method, payload)
            assert refused.value.code == 1403
        assert await caller.calls("memory.ping") == "pong"
        assert (await caller.agent()).attributes["memory.state"] == "on"


async def test_nobody_in_the_room_can_read_the_prompt(livekit: LiveKitServer, worker: Worker) -> None:
    """LiveKit's own debugging channel, which hands out the instructions and the memory in them, is closed:
    to the caller too, even with the right to manage the session."""
    async with joining(
        livekit, "private", "alice", dispatches=[dispatch(ALICE)], can_manage_agent_session=True
    ) as caller:
        await caller.greeted()
        reader = RemoteSession.from_room(caller.room, (await caller.agent()).identity)
        await reader.start()
        try:
            with pytest.raises(TimeoutError):
                await reader.wait_for_ready(timeout=2.0)
        finally:
            await reader.aclose()
        assert await caller.types("Hello?")
