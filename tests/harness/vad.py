"""A voice activity detector that hears speech start and stop when the test says so."""

from __future__ import annotations

import time

from livekit.agents import vad

from .voice import silence
from .waiting import Board


class ScriptedVAD(vad.VAD):
    """Reports to every open stream: the session's own, and that of a recogniser which needs one."""

    def __init__(self) -> None:
        super().__init__(capabilities=vad.VADCapabilities(update_interval=0.1))
        self.board = Board()
        self._streams: list[_Stream] = []

    def stream(self) -> vad.VADStream:
        stream = _Stream(self)
        self._streams.append(stream)
        self.board.changed()
        return stream

    async def speech_started(self, heard: float) -> None:
        """Speech began and has gone on for `heard` seconds by now."""
        await self._report(vad.VADEventType.START_OF_SPEECH, heard=min(heard, 0.05))
        await self._report(vad.VADEventType.INFERENCE_DONE, heard=heard)

    async def speech_ended(self, heard: float) -> None:
        """Speech of `heard` seconds stopped just now."""
        await self._report(vad.VADEventType.END_OF_SPEECH, heard=heard)

    async def _report(self, kind: vad.VADEventType, heard: float) -> None:
        streams = await self.board.until(self._open_streams, "a voice activity stream")
        for stream in streams:
            stream.report(kind, heard)
        await self.board.until(
            lambda: all(stream.idle for stream in streams), f"the session to take in {kind.value}"
        )

    def _open_streams(self) -> list[_Stream]:
        self._streams = [stream for stream in self._streams if not stream.closed]
        return self._streams


class _Stream(vad.VADStream):
    def __init__(self, detector: ScriptedVAD) -> None:
        super().__init__(detector)
        self._board = detector.board
        self._reported = 0
        self._asked = 0

    @property
    def closed(self) -> bool:
        return self._event_ch.closed

    @property
    def idle(self) -> bool:
        """Whether everything reported was acted on: the reader comes back for more only then."""
        return self.closed or self._asked > self._reported

    def report(self, kind: vad.VADEventType, heard: float) -> None:
        speaking = kind is not vad.VADEventType.END_OF_SPEECH
        self._reported += 1
        self._event_ch.send_nowait(
            vad.VADEvent(
                type=kind,
                samples_index=0,
                timestamp=time.time(),
                speech_duration=heard,
                silence_duration=0.0,
                frames=[silence(0.02)],
                probability=1.0 if speaking else 0.0,
                speaking=speaking,
                raw_accumulated_speech=heard if speaking else 0.0,
            )
        )

    async def __anext__(self) -> vad.VADEvent:
        self._asked += 1
        self._board.changed()
        return await super().__anext__()

    async def _main_task(self) -> None:
        async for _ in self._input_ch:
            pass
