"""A spoken call on a real LiveKit server: words in through a microphone, a voice out."""

from __future__ import annotations

import pytest

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker


@pytest.mark.parametrize("identity", ["sam", "anonymous"])
async def test_a_spoken_fact_is_heard_answered_aloud_and_kept_for_who_has_a_memory(
    livekit: LiveKitServer, worker: Worker, memory: Memory, identity: str
) -> None:
    """The same call with a memory and without: only what is kept differs."""
    room = f"spoken-{identity}"
    async with joining(livekit, room, identity, dispatches=[dispatch()]) as caller:
        await caller.reply()
        for words, answer in (("I live in Boston.", "Boston"), ("I'm allergic to peanuts.", "peanuts")):
            await caller.agent_listens()
            assert answer in await caller.says(words)
            await caller.hears(since=caller.spoke_until)
        heard = " ".join(caller.understood.values())
        assert "Boston" in heard
        assert "peanuts" in heard
    await worker.logs("memory of this call", room=room)
    known = " ".join(await memory.facts(identity))
    assert ("Boston" in known, "peanuts" in known) == ((True, True) if identity == "sam" else (False, False))
