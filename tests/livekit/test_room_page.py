"""What the page and the running agent tell each other, through a real LiveKit server."""

from __future__ import annotations

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import dispatch, joining
from tests.support.worker import Worker


async def test_what_is_said_while_paused_is_not_stored(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """The answer to the switch is the new state, which the agent shows too; after it, storing goes on."""
    asked = dispatch({"container_tag": "paula", "participant_identity": "paula"})
    async with joining(livekit, "paused", "paula", dispatches=[asked]) as caller:
        await caller.greeted()
        agent = await caller.agent()
        await caller.types("I live in Boston.")
        # Until then the sentence belongs to the current turn, which would not be stored.
        await caller.agent_listens()
        assert await caller.calls("memory.pause", {"paused": True}) == {"state": "paused"}
        await caller.until(lambda: agent.attributes["memory.state"] == "paused", "the agent's own word")
        assert (await caller.told("state"))["state"] == "paused"
        assert await caller.types("I have a cat.") == "All right, I keep nothing of that."
        assert await caller.calls("memory.pause", {"paused": False}) == {"state": "on"}
        assert await caller.types("I love opera.") == "Noted: you love opera."
    await worker.logs("memory of this call", room="paused")
    assert await memory.said("paula") == ["I live in Boston.", "I love opera."]
    assert "cat" not in str(await memory.lines("paula"))


async def test_what_is_forgotten_on_the_page_is_gone_from_the_running_call(
    livekit: LiveKitServer, worker: Worker, memory: Memory
) -> None:
    """The page has the agent forget it: the next answer no longer knows it, and no later call will."""
    await memory.store.remember("frank", "I live in Boston.", {})
    asked = dispatch({"container_tag": "frank", "participant_identity": "frank"})
    async with joining(livekit, "forgotten", "frank", dispatches=[asked]) as caller:
        await caller.greeted()
        assert "Boston" in await caller.types("Where do I live?")
        [fact] = await memory.store.facts("frank")
        assert await caller.calls("memory.forget", {"id": fact.id}) == {"forgotten": [fact.id]}
        assert [gone["text"] for gone in (await caller.told("forgotten"))["facts"]] == ["I live in Boston."]
        assert "Boston" not in await caller.types("Where do I live?")
    await worker.logs("memory of this call", room="forgotten")
