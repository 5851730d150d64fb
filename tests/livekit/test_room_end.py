"""How a call on a real LiveKit server ends: stored, and with nothing left open that costs money."""

from __future__ import annotations

from livekit import api

from tests.livekit.conftest import Memory
from tests.support.livekit_server import LiveKitServer
from tests.support.room_caller import RoomCaller, dispatch, joining
from tests.support.worker import Worker


async def rooms(server_api: api.LiveKitAPI) -> set[str]:
    """The names of the rooms that are open."""
    found = await server_api.room.list_rooms(api.ListRoomsRequest())
    return {room.name for room in found.rooms}


async def test_a_caller_who_hangs_up_leaves_no_job_and_no_room_but_a_stored_call(
    livekit: LiveKitServer, worker: Worker, memory: Memory, server_api: api.LiveKitAPI
) -> None:
    """LiveKit itself would keep both for twenty seconds."""
    async with joining(livekit, "hung-up", "hugo", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        await caller.types("I live in Boston.")
    await worker.logs("process exiting", within=10.0, room="hung-up", reason="the call is over")
    assert "hung-up" not in await rooms(server_api)
    assert await memory.said("hugo") == ["I live in Boston."]


async def test_the_agent_hangs_up_after_goodbye(
    livekit: LiveKitServer, worker: Worker, memory: Memory, server_api: api.LiveKitAPI
) -> None:
    """The caller hears it, is disconnected, and the call is stored with its last words."""
    async with joining(livekit, "goodbye", "gerda", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        assert "Goodbye" in await caller.types("Goodbye.")
        await caller.until(lambda: not caller.room.isconnected(), "the end of the call")
    await worker.logs("memory of this call", room="goodbye")
    assert "goodbye" not in await rooms(server_api)
    assert [line.text for line in await memory.lines("gerda")][-2:] == ["Goodbye.", "Goodbye."]


async def test_a_second_agent_leaves_a_call_that_has_one(
    livekit: LiveKitServer, worker: Worker, server_api: api.LiveKitAPI
) -> None:
    """Two would talk over each other; the one that goes does not take the caller along."""
    async with joining(livekit, "two-agents", "ada", dispatches=[dispatch()]) as caller:
        await caller.greeted()
        first = await caller.agent()
        await server_api.agent_dispatch.create_dispatch(
            api.CreateAgentDispatchRequest(room="two-agents", agent_name="memory-agent")
        )
        await worker.logs("process exiting", room="two-agents", reason="another agent is in this call")
        await answered_by_one(caller)
        await caller.until(
            lambda: [agent.identity for agent in caller.agents] == [first.identity],
            "the second one to be gone",
        )


async def test_of_two_agents_that_wait_for_a_caller_one_leaves(
    livekit: LiveKitServer, worker: Worker, server_api: api.LiveKitAPI
) -> None:
    """A dispatch that was asked for twice before anybody came."""
    for _ in range(2):
        await server_api.agent_dispatch.create_dispatch(
            api.CreateAgentDispatchRequest(room="waiting", agent_name="memory-agent")
        )
    await worker.logs("process exiting", room="waiting", reason="another agent is in this call")
    async with joining(livekit, "waiting", "ada") as caller:
        await caller.greeted()
        await answered_by_one(caller)


async def answered_by_one(caller: RoomCaller) -> None:
    before = len(caller.lines)
    assert await caller.types("I love opera.") == "Noted: you love opera."
    await caller.agent_listens()
    assert len(caller.lines) == before + 1, [line.text for line in caller.lines]
