"""The worker or the LiveKit server goes away in the middle of a call."""

from __future__ import annotations

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker


async def test_a_call_survives_a_restart_of_the_livekit_server_and_stays_one_document(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """Both ends come back to a room of the same name: the same agent, the same conversation."""
    async with joining(livekit, "restarted", "rita", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        before = await caller.agent()
        await caller.types("I live in Boston.")
        livekit.kill()
        await caller.until(lambda: not caller.agents, "the loss")
        livekit.start()
        await caller.comes_back()
        assert "Boston" in await caller.types("Where do I live?")
        assert [agent.identity for agent in caller.agents] == [before.identity]
    await worker.logs("memory of this call", room="restarted")
    assert len((await memory.store.export("rita"))["documents"]) == 1
    assert await memory.said("rita") == ["I live in Boston.", "Where do I live?"]


async def test_a_worker_that_is_told_to_stop_finishes_and_stores_its_calls(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """A deployment replaces workers while people talk: nobody is cut off, nothing is lost."""
    async with joining(livekit, "drained", "theo", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        await caller.types("I live in Boston.")
        worker.stop()
        await worker.logs("draining worker")
        assert await caller.types("I love opera.") == "Noted: you love opera."
        assert await caller.types("I have a cat.") == "Noted: you have a cat."
    assert await worker.ended() == 0
    assert await memory.said("theo") == ["I live in Boston.", "I love opera.", "I have a cat."]


async def test_a_worker_that_is_killed_keeps_what_was_stored_before(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """Only what was said since lines were last stored, ten seconds at most, is lost with it."""
    async with joining(livekit, "killed", "kim", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        await caller.types("I live in Boston.")
        await memory.comes_to_hold("kim", "I live in Boston.")
        await caller.types("I love opera.")
        worker.kill()
        await worker.ended()
    assert (await memory.said("kim"))[0] == "I live in Boston."
    assert "The caller lives in Boston." in await memory.facts("kim")
