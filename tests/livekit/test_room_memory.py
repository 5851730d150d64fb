"""Whose memory a call on a real LiveKit server has: the dispatch says it, else the caller's token."""

from __future__ import annotations

import pytest
from livekit import api

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker


async def test_a_caller_of_a_dispatch_is_remembered_in_the_next_call_and_nobody_else_is(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """Told in one call, greeted with it in the next; another caller's agent knows nothing of it."""

    def asked_for(tag: str, room: str) -> api.RoomAgentDispatch:
        return dispatch({"container_tag": tag, "participant_identity": "visitor", "session_id": room})

    async with joining(
        livekit, "first-call", "visitor", dispatches=[asked_for("emily", "first-call")]
    ) as caller:
        assert await caller.reply() == "Hello! I know nothing about you yet."
        assert await caller.types("My name is Emily.") == "Noted: your name is Emily."
    await worker.logs("memory of this call", room="first-call")
    assert await memory.facts("emily") == ["The caller's name is Emily."]

    async with joining(
        livekit, "next-call", "visitor", dispatches=[asked_for("emily", "next-call")]
    ) as caller:
        assert "Emily" in await caller.reply()
        recalled = await caller.told("recalled")
        assert [fact["text"] for fact in recalled["facts"]] == ["The caller's name is Emily."]
    async with joining(
        livekit, "others-call", "visitor", dispatches=[asked_for("oscar", "others-call")]
    ) as caller:
        assert await caller.reply() == "Hello! I know nothing about you yet."


@pytest.mark.parametrize("may_change", [False, True])
async def test_without_metadata_the_tag_is_the_one_in_the_first_participants_token(
    livekit: LiveKitServer, worker: Worker, memory: Memory, server_api: api.LiveKitAPI, may_change: bool
) -> None:
    """It is read once, when the agent comes: a caller who changes it, allowed to or not, changes nothing."""
    room, tag = f"plain-{may_change}", f"carol-{may_change}"
    async with joining(
        livekit,
        room,
        "carol",
        dispatches=[dispatch()],
        attributes={"supermemory_container_tag": tag},
        can_update_own_metadata=may_change,
    ) as caller:
        await caller.greeted()
        await caller.room.local_participant.set_attributes({"supermemory_container_tag": "victim"})
        await caller.types("I live in Boston.")
        who = api.RoomParticipantIdentity(room=room, identity="carol")
        attributes = (await server_api.room.get_participant(who)).attributes
        assert attributes["supermemory_container_tag"] == ("victim" if may_change else tag)
    await worker.logs("memory of this call", room=room)
    assert await memory.said(tag) == ["I live in Boston."]
    assert await memory.said("victim") == []
    assert await memory.said("carol") == []


async def test_without_metadata_and_attribute_the_identity_is_the_tag(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """What the token says about who it is for is all there is to go by."""
    async with joining(livekit, "identity-call", "dave", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        await caller.types("I live in Boston.")
    await worker.logs("memory of this call", room="identity-call")
    assert await memory.said("dave") == ["I live in Boston."]


async def test_a_guest_without_an_identity_of_their_own_gets_an_agent_without_memory(
    livekit: LiveKitServer, worker: Worker
) -> None:
    """A placeholder is no person: the call goes on, and the page and the log say that nothing is kept."""
    async with joining(livekit, "guest-call", "anonymous", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        assert (await caller.agent()).attributes["memory.state"] == "off"
        assert await caller.types("I live in Boston.") == "Noted: you live in Boston."
    summary = await worker.logs("memory of this call", room="guest-call")
    assert summary["lines_stored"] == 0
