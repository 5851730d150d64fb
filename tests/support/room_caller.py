"""A caller in a room of a real LiveKit server, by livekit's own client: speaks, types, listens.

    asked = dispatch({"container_tag": "tag-1", "participant_identity": "alice"})
    async with joining(livekit, "room-1", "alice", dispatches=[asked]) as caller:
        assert "Hello" in await caller.reply()                # the greeting
        assert "Boston" in await caller.types("Where do I live?")
        await caller.says("I'm allergic to peanuts.")         # spoken, through the microphone
        await caller.calls("memory.pause", {"paused": True})  # a method of the agent

Leaving the block hangs up.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from livekit import api, rtc

from tests.harness import Board
from tests.support.livekit_server import LiveKitServer
from tests.support.spoken import RATE, is_loud, spoken

PATIENCE = 40.0
"""Seconds for anything that the agent does: what a new process needs on a busy machine."""

_PIECE = RATE // 50
_SILENCE = rtc.AudioFrame(bytes(2 * _PIECE), RATE, 1, _PIECE)
AGENT = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT

T = TypeVar("T")


@dataclass
class Line:
    """One row of the transcript as the page gets it."""

    text: str = ""
    whole: bool = False
    begun: float = 0.0
    """When its first words came, in seconds of `time.monotonic`."""


class RoomCaller:
    """One person in a room; made by `joining`."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.lines: list[Line] = []
        """What agents said, in the order in which it began."""
        self.understood: dict[str, str] = {}
        """What the agent understood of this caller, the last word for each utterance."""
        self.events: list[dict[str, Any]] = []
        """What came on the topic `memory.events`."""
        self.loud: list[float] = []
        """When sound of an agent was heard, a time per piece of it."""
        self.spoke_until = 0.0
        """When the last sound of `says` left the microphone."""
        self._read = 0
        self._board = Board()
        self._tasks: set[asyncio.Task[None]] = set()
        self._microphone: rtc.AudioSource | None = None
        self._to_say: list[rtc.AudioFrame] = []
        self._listened_to = False
        self.room.on("track_subscribed", self._on_track)
        self.room.on("local_track_subscribed", lambda _: self._listen_state(True))
        self.room.on("reconnecting", lambda: self._listen_state(False))
        for event in (
            "participant_connected",
            "participant_disconnected",
            "participant_attributes_changed",
            "connection_state_changed",
            "disconnected",
            "reconnected",
        ):
            self.room.on(event, lambda *_: self._board.changed())
        self.room.register_text_stream_handler("lk.transcription", self._on_transcription)
        self.room.register_text_stream_handler("memory.events", self._on_memory_event)

    @property
    def agents(self) -> list[rtc.RemoteParticipant]:
        """The agents in the room now; whoever only says that they are one is not among them."""
        people = self.room.remote_participants.values()
        return [person for person in people if person.kind == AGENT and "lk.agent.name" in person.attributes]

    async def agent(self) -> rtc.RemoteParticipant:
        """The agent, as soon as there is one."""
        return await self.until(lambda: next(iter(self.agents), None), "an agent in the room")

    async def greeted(self) -> None:
        """Returns with the first words of the greeting; what is typed now cuts the rest of it off."""
        await self.until(lambda: self.lines and self.lines[0].text, "a greeting")

    async def agent_listens(self) -> None:
        """Returns when the agent is silent and waits for words."""
        agent = await self.agent()
        await self.until(lambda: agent.attributes.get("lk.agent.state") == "listening", "a listening agent")

    async def comes_back(self) -> None:
        """Returns when a connection that was lost is there again and the agent listens to the microphone.

        What is typed earlier than that is lost: the agent does not see the caller yet.
        """
        await self.until(lambda: self._listened_to and self.agents, "the reconnection")

    async def reply(self) -> str:
        """The whole of the agent's next line that was not returned yet."""
        line = await self.until(lambda: self._line(self._read), "a line of the agent")
        self._read += 1
        return line.text

    async def types(self, text: str) -> str:
        """Sends a chat message; the whole of the agent's answer."""
        await self.sends(text)
        return await self.reply()

    async def sends(self, text: str) -> None:
        """Sends a chat message; the next `reply` is what the agent says from now on."""
        self._read = len(self.lines)
        await self.room.local_participant.send_text(text, topic="lk.chat")

    async def says(self, text: str) -> str:
        """Speaks; the whole of the agent's answer."""
        await self.speaks(text)
        return await self.reply()

    async def speaks(self, text: str) -> None:
        """Speaks, and returns with the last sound of it."""
        samples = np.frombuffer(spoken(text).data, np.int16)
        self._read = len(self.lines)
        self._to_say += [
            rtc.AudioFrame(samples[at : at + _PIECE].tobytes(), RATE, 1, _PIECE)
            for at in range(0, len(samples) - _PIECE + 1, _PIECE)
        ]
        await self.until(lambda: not self._to_say, "the end of the sentence")

    async def switches_microphone_on(self) -> None:
        """From here on the caller's silence is heard, and what they say."""
        self._microphone = rtc.AudioSource(RATE, 1, queue_size_ms=100)
        track = rtc.LocalAudioTrack.create_audio_track("microphone", self._microphone)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
        await self.room.local_participant.publish_track(track, options)
        self._spawn(self._send_sound(self._microphone))

    async def hears(self, since: float) -> float:
        """The time of the first sound of the agent after `since`."""
        return await self.until(
            lambda: next((at for at in self.loud if at > since), None), "a sound of the agent"
        )

    async def calls(self, method: str, payload: object = None) -> Any:
        """Calls a method of the agent; its answer, read as JSON where it is."""
        answer = await self.room.local_participant.perform_rpc(
            destination_identity=(await self.agent()).identity,
            method=method,
            payload="" if payload is None else json.dumps(payload),
        )
        try:
            return json.loads(answer)
        except ValueError:
            return answer

    async def told(self, kind: str) -> dict[str, Any]:
        """The first memory event of that type, waited for."""
        return await self.until(
            lambda: next((event for event in self.events if event["type"] == kind), None), f"{kind} events"
        )

    async def until(self, condition: Callable[[], T | None], what: str) -> T:
        """The first truthy value of `condition`, looked at whenever something happens in the room."""
        return await self._board.until(condition, what, deadline=PATIENCE)

    async def leaves(self) -> None:
        """Hangs up; leaving again changes nothing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.room.disconnect()
        if self._microphone is not None:
            await self._microphone.aclose()
            self._microphone = None

    def _line(self, number: int) -> Line | None:
        return self.lines[number] if number < len(self.lines) and self.lines[number].whole else None

    async def _send_sound(self, microphone: rtc.AudioSource) -> None:
        while True:
            saying = bool(self._to_say)
            await microphone.capture_frame(self._to_say.pop(0) if saying else _SILENCE)
            if saying and not self._to_say:
                self.spoke_until = time.monotonic() + microphone.queued_duration
                self._board.changed()

    def _listen_state(self, listened_to: bool) -> None:
        self._listened_to = listened_to
        self._board.changed()

    def _on_track(self, track: rtc.Track, _: object, person: rtc.RemoteParticipant) -> None:
        if track.kind == rtc.TrackKind.KIND_AUDIO and person in self.agents:
            self._spawn(self._listen(track))

    async def _listen(self, track: rtc.Track) -> None:
        stream = rtc.AudioStream(track, sample_rate=RATE, num_channels=1)
        try:
            async for event in stream:
                if is_loud(event.frame):
                    self.loud.append(time.monotonic())
                    self._board.changed()
        finally:
            await stream.aclose()

    def _on_transcription(self, reader: rtc.TextStreamReader, identity: str) -> None:
        attributes = reader.info.attributes or {}
        if attributes.get("lk.transcribed_track_id") in self.room.local_participant.track_publications:
            self._spawn(self._read_own(reader, attributes["lk.segment_id"]))
        elif identity in {agent.identity for agent in self.agents}:
            self.lines.append(Line())
            self._spawn(self._read_line(reader, self.lines[-1]))

    async def _read_own(self, reader: rtc.TextStreamReader, segment: str) -> None:
        self.understood[segment] = await reader.read_all()
        self._board.changed()

    async def _read_line(self, reader: rtc.TextStreamReader, line: Line) -> None:
        async for words in reader:
            line.begun = line.begun or time.monotonic()
            line.text += words
            self._board.changed()
        line.whole = True
        self._board.changed()

    def _on_memory_event(self, reader: rtc.TextStreamReader, identity: str) -> None:
        self._spawn(self._read_event(reader))

    async def _read_event(self, reader: rtc.TextStreamReader) -> None:
        self.events.append(json.loads(await reader.read_all()))
        self._board.changed()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="room caller")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def dispatch(
    metadata: Mapping[str, str] | None = None, *, agent: str = "memory-agent"
) -> api.RoomAgentDispatch:
    """An agent for the room, asked for by a token; without metadata as anybody's token server would."""
    return api.RoomAgentDispatch(
        agent_name=agent, metadata="" if metadata is None else json.dumps(dict(metadata))
    )


@asynccontextmanager
async def joining(
    server: LiveKitServer,
    room: str,
    identity: str,
    *,
    dispatches: Sequence[api.RoomAgentDispatch] = (),
    attributes: Mapping[str, str] | None = None,
    kind: str = "standard",
    microphone: bool = True,
    **grants: Any,
) -> AsyncIterator[RoomCaller]:
    """Somebody in `room`, with a token that asks for those agents; hangs up at the end.

    LiveKit tells of people without a microphone up to 3 s late, of their coming as of their leaving.
    """
    token = (
        api.AccessToken(server.api_key, server.api_secret)
        .with_identity(identity)
        .with_kind(kind)  # type: ignore[arg-type]  # a Literal that is not exported
        .with_attributes(dict(attributes or {}))
        .with_grants(api.VideoGrants(room_join=True, room=room, **grants))
        .with_room_config(api.RoomConfiguration(agents=dispatches))
    )
    caller = RoomCaller()
    try:
        await caller.room.connect(server.url, token.to_jwt())
        if microphone:
            await caller.switches_microphone_on()
        yield caller
    finally:
        await caller.leaves()
