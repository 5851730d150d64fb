"""A caller for the stack: asks the page's server for a token as a browser does, speaks, and listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import numpy as np
from livekit import rtc

RATE = 48_000
PIECE = RATE // 50
SILENCE = rtc.AudioFrame(bytes(2 * PIECE), RATE, 1, PIECE)
LOUD = 300
"""Samples of speech are louder than this; a silent track is all but zero."""
PAUSE = 1.5
"""Seconds of silence after which the agent has said what it had to say."""
ANSWER_TIMEOUT = 30.0


class Caller:
    def __init__(self) -> None:
        self.room = rtc.Room()
        self.microphone = rtc.AudioSource(RATE, 1, queue_size_ms=100)
        self.agent_came = asyncio.Event()
        self._to_say: deque[rtc.AudioFrame] = deque()
        self._said = asyncio.Event()
        self._heard: list[rtc.AudioFrame] = []
        self._quiet_since: float | None = None
        self._silent = asyncio.Event()
        self._tasks = {asyncio.create_task(self._speak(), name="microphone")}
        self.room.on("track_subscribed", self._hear)

    async def answer_to(self, speech: rtc.AudioFrame | None) -> rtc.AudioFrame:
        """Says it, or nothing for the greeting, and returns what the agent says after that."""
        if speech is not None:
            samples = np.frombuffer(speech.data, np.int16)
            for at in range(0, len(samples) - PIECE, PIECE):
                self._to_say.append(rtc.AudioFrame(samples[at : at + PIECE].tobytes(), RATE, 1, PIECE))
            self._said.clear()
            await self._said.wait()
            self._heard.clear()
        self._quiet_since = None
        self._silent.clear()
        await asyncio.wait_for(self._silent.wait(), ANSWER_TIMEOUT)
        answer = rtc.combine_audio_frames(self._heard)
        self._heard.clear()
        return answer

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.room.disconnect()
        await self.microphone.aclose()

    async def _speak(self) -> None:
        while True:
            await self.microphone.capture_frame(self._to_say.popleft() if self._to_say else SILENCE)
            if not self._to_say:
                self._said.set()

    def _hear(self, track: rtc.Track, *_: object) -> None:
        self.agent_came.set()
        self._tasks.add(asyncio.create_task(self._listen(track), name="loudspeaker"))

    async def _listen(self, track: rtc.Track) -> None:
        loop = asyncio.get_running_loop()
        async for event in rtc.AudioStream(track, sample_rate=RATE, num_channels=1):
            if np.abs(np.frombuffer(event.frame.data, np.int16)).max(initial=0) > LOUD:
                self._quiet_since = loop.time()
            if self._quiet_since is not None:
                self._heard.append(event.frame)
                if loop.time() - self._quiet_since > PAUSE:
                    self._silent.set()


@asynccontextmanager
async def call(page_url: str) -> AsyncIterator[Caller]:
    """A call in which the agent has come. Hangs up at the end."""
    async with (
        aiohttp.ClientSession() as browser,
        browser.post(
            f"{page_url}/api/token", json={}, headers={"Origin": page_url}, raise_for_status=True
        ) as answer,
    ):
        token = await answer.json()
    caller = Caller()
    try:
        await caller.room.connect(token["server_url"], token["participant_token"])
        track = rtc.LocalAudioTrack.create_audio_track("microphone", caller.microphone)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
        await caller.room.local_participant.publish_track(track, options)
        await asyncio.wait_for(caller.agent_came.wait(), ANSWER_TIMEOUT)
        yield caller
    finally:
        await caller.aclose()
