"""Calls on a real LiveKit server: the token brings an agent, and a page without one can ask for another."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from livekit import api, rtc

from settings import ROOT
from tests.support.livekit_server import LiveKitServer, livekit_server
from tests.token_server.service import CONFIG, Browser, Service, StartService

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def livekit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKitServer]:
    with livekit_server(tmp_path_factory.mktemp("livekit")) as server:
        yield server


@pytest.fixture
async def here(start: StartService, livekit: LiveKitServer) -> Service:
    """A token server for that LiveKit server."""
    return await start(livekit_url=livekit.url, api_key=livekit.api_key, api_secret=livekit.api_secret)


@dataclass
class Call:
    """A caller in a room, as the page would be."""

    browser: Browser
    room: rtc.Room

    async def ask_for_agent(self, **fields: str) -> tuple[int, str]:
        """The status and the word of an answer to POST /api/dispatch."""
        status, answer = await self.browser.ask("POST", "/api/dispatch", {"room": self.room.name, **fields})
        return status, answer.get("code", "")

    async def ask_until_heard(self, **fields: str) -> tuple[int, str]:
        """The same, after the wait that the server asks for."""
        async with asyncio.timeout(20):
            while True:
                answer = await self.ask_for_agent(**fields)
                if answer[0] != 429:
                    return answer
                await asyncio.sleep(1)

    async def agent(self, *, other_than: str = "") -> rtc.RemoteParticipant:
        """The agent in the room, as soon as there is one."""
        async with asyncio.timeout(40):
            while True:
                for person in self.room.remote_participants.values():
                    agent = person.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
                    if agent and person.identity != other_than:
                        return person
                await asyncio.sleep(0.05)


@asynccontextmanager
async def calling(browser: Browser) -> AsyncIterator[Call]:
    """A call with a token of the token server; hangs up at the end."""
    status, answer = await browser.ask("POST", "/api/token", {})
    assert status == 201
    room = rtc.Room()
    await room.connect(answer["server_url"], answer["participant_token"])
    try:
        yield Call(browser, room)
    finally:
        await room.disconnect()


class Worker:
    """The worker's process and what its agents wrote down."""

    def __init__(self, process: asyncio.subprocess.Process, notes: Path) -> None:
        self.process = process
        self._notes = notes

    async def notes(self, count: int) -> list[dict[str, Any]]:
        """The first `count` notes, waited for."""
        async with asyncio.timeout(40):
            while True:
                lines = self._notes.read_text().splitlines() if self._notes.exists() else []
                if len(lines) >= count:
                    return [json.loads(line) for line in lines[:count]]
                await asyncio.sleep(0.05)


@asynccontextmanager
async def worker(livekit: LiveKitServer, folder: Path) -> AsyncIterator[Worker]:
    """A registered worker under the agent's name."""
    notes = folder / "notes.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "tests" / "token_server" / "agent_for_tests.py"),
        cwd=ROOT,
        env={
            **os.environ,
            **livekit.environment,
            "LIVEKIT_AGENT_NAME": CONFIG.agent_name,
            "AGENT_NOTES": str(notes),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"registered\n"
        yield Worker(process, notes)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_call_brings_an_agent_that_knows_whose_it_is(
    here: Service, livekit: LiveKitServer, tmp_path: Path
) -> None:
    """The agent is told the tag in the caller's attributes and their identity; there is one of it."""
    async with worker(livekit, tmp_path) as agents, calling(here.browser()) as call:
        await call.agent()
        [note] = await agents.notes(1)
        me = call.room.local_participant
        assert json.loads(note["metadata"]) == {
            "container_tag": me.attributes["supermemory_container_tag"],
            "participant_identity": me.identity,
            "session_id": call.room.name,
        }
        assert await call.ask_for_agent() == (409, "agent_present")


async def test_a_caller_cannot_change_whose_memory_it_is(here: Service, livekit: LiveKitServer) -> None:
    """The grant is missing, so the attribute stays what the server signed."""
    async with calling(here.browser()) as call:
        me = call.room.local_participant
        tag = me.attributes["supermemory_container_tag"]
        await me.set_attributes({"supermemory_container_tag": "alice"})
        async with api.LiveKitAPI(livekit.url, livekit.api_key, livekit.api_secret) as client:
            who = api.RoomParticipantIdentity(room=call.room.name, identity=me.identity)
            assert (await client.room.get_participant(who)).attributes["supermemory_container_tag"] == tag


async def test_a_call_without_an_agent_gets_one_when_it_asks(
    here: Service, livekit: LiveKitServer, tmp_path: Path
) -> None:
    """LiveKit forgets a job that nobody took; asking again brings the agent, with the same knowledge."""
    async with calling(here.browser()) as call, worker(livekit, tmp_path) as agents:
        assert await call.ask_for_agent() == (202, "")
        await call.agent()
        [note] = await agents.notes(1)
        metadata = json.loads(note["metadata"])
        assert metadata["session_id"] == call.room.name
        assert (
            metadata["container_tag"] == call.room.local_participant.attributes["supermemory_container_tag"]
        )


async def test_asking_twice_at_once_brings_one_agent(
    here: Service, livekit: LiveKitServer, tmp_path: Path
) -> None:
    """A double click must not start two agents that talk over each other."""
    async with calling(here.browser()) as call, worker(livekit, tmp_path) as agents:
        answers = await asyncio.gather(*(call.ask_for_agent() for _ in range(4)))
        assert sorted(status for status, _ in answers) == [202, 429, 429, 429]
        await call.agent()
        await agents.notes(1)
        assert await call.ask_for_agent() == (409, "agent_present")


async def test_an_agent_that_died_is_replaced_at_once(
    here: Service, livekit: LiveKitServer, tmp_path: Path
) -> None:
    """LiveKit keeps a dead agent in the room for 20 s; the page, which noticed sooner, names it."""
    async with worker(livekit, tmp_path) as agents, calling(here.browser()) as call:
        agent = await call.agent()
        for count in (1, 2):
            note = (await agents.notes(count))[-1]
            os.kill(note["pid"], signal.SIGKILL)
            assert await call.ask_for_agent() == (409, "agent_present"), "nobody can tell yet"
            assert await call.ask_until_heard(lost=agent.identity) == (202, "")
            agent = await call.agent(other_than=agent.identity)
        notes = await agents.notes(3)
        assert {note["metadata"] for note in notes} == {notes[0]["metadata"]}


async def test_a_caller_can_put_nobody_but_an_agent_out(here: Service) -> None:
    """Naming oneself changes nothing."""
    async with calling(here.browser()) as call:
        me = call.room.local_participant.identity
        assert await call.ask_for_agent(lost=me) == (202, "")
        assert call.room.isconnected()


async def test_no_agent_is_sent_where_no_caller_is(here: Service, livekit: LiveKitServer) -> None:
    """It would open the room again, and the agent would wait there for nobody."""
    browser = here.browser()
    claims = await browser.token()
    assert claims.video is not None
    never_opened = claims.video.room
    status, answer = await browser.ask("POST", "/api/dispatch", {"room": never_opened})
    assert (status, answer["code"]) == (404, "room_gone")
    async with calling(browser) as call:
        pass
    assert await call.ask_for_agent() == (404, "room_gone")
    async with api.LiveKitAPI(livekit.url, livekit.api_key, livekit.api_secret) as client:
        rooms = await client.room.list_rooms(api.ListRoomsRequest())
    assert never_opened not in {room.name for room in rooms.rooms}


async def test_another_visitor_cannot_send_an_agent_into_a_call(here: Service) -> None:
    """The room's name proves whose it is."""
    async with calling(here.browser()) as call:
        stranger = here.browser()
        await stranger.token()
        status, answer = await stranger.ask("POST", "/api/dispatch", {"room": call.room.name})
        assert (status, answer["code"]) == (403, "not_your_room")


async def test_a_second_participant_is_kept_out(here: Service, livekit: LiveKitServer) -> None:
    """A room is for one caller: even a valid token for it lets no other identity in."""
    async with calling(here.browser()) as call:
        grants = api.VideoGrants(room_join=True, room=call.room.name)
        token = api.AccessToken(livekit.api_key, livekit.api_secret).with_identity("mallory")
        with pytest.raises(rtc.ConnectError):
            await rtc.Room().connect(livekit.url, token.with_grants(grants).to_jwt())


async def test_a_wrong_key_is_livekits_refusal(start: StartService, livekit: LiveKitServer) -> None:
    """The operator's mistake: an answer in words, without LiveKit's text."""
    service = await start(livekit_url=livekit.url, api_key="nobody", api_secret="x" * 40)
    assert await _dispatch(service) == (502, "livekit_refused")


async def test_livekit_out_of_reach_is_said(start: StartService) -> None:
    """Nothing listens there: 502 and a sentence, at once."""
    service = await start(livekit_url="ws://127.0.0.1:9")
    assert await _dispatch(service) == (502, "livekit_unreachable")


async def _dispatch(service: Service) -> tuple[int, str]:
    browser = service.browser()
    _, answer = await browser.ask("POST", "/api/token", {})
    claims = api.TokenVerifier().verify(answer["participant_token"], verify_signature=False)
    assert claims.video is not None
    status, answer = await browser.ask("POST", "/api/dispatch", {"room": claims.video.room})
    return status, answer["code"]
