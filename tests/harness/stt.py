"""A speech recogniser that hears what the test says it hears, when the test says so."""

from __future__ import annotations

from typing import Any

from livekit.agents import NOT_GIVEN, APIConnectOptions, NotGivenOr, stt
from livekit.agents.language import LanguageCode
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS
from livekit.agents.utils import AudioBuffer

from .waiting import Board, settle


class ScriptedSTT(stt.STT[Any]):
    """Streaming with interim transcripts by default.

    `interims=False` is a recogniser that reports finals only. `streaming=False` is one that is handed
    the whole sentence once the caller stopped (local whisper is of that kind): say what it will find
    with `will_hear` before the speech ends.
    """

    def __init__(self, *, interims: bool = True, streaming: bool = True) -> None:
        super().__init__(
            capabilities=stt.STTCapabilities(streaming=streaming, interim_results=interims and streaming)
        )
        self.board = Board()
        self._streams: list[_Stream] = []
        self._unheard: list[str] = []

    @property
    def interims(self) -> bool:
        return self.capabilities.interim_results

    def stream(
        self,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.RecognizeStream:
        stream = _Stream(self, conn_options)
        self._streams.append(stream)
        self.board.changed()
        return stream

    async def push(self, kind: stt.SpeechEventType, text: str = "") -> None:
        """Report one recognition event; returns when the session has taken it in.

        Waits for a stream first: while one agent hands over to another there may be none.
        """
        stream = await self.board.until(self._open_stream, "a recogniser stream")
        stream.report(kind, text)
        await self.board.until(lambda: stream.idle, f"the session to take in {kind.value}")
        await settle()

    def will_hear(self, text: str) -> None:
        """The transcript of the next whole sentence, for a recogniser that does not stream."""
        self._unheard.append(text)

    def _open_stream(self) -> _Stream | None:
        self._streams = [stream for stream in self._streams if not stream.closed]
        return self._streams[-1] if self._streams else None

    async def _recognize_impl(
        self, buffer: AudioBuffer, *, language: NotGivenOr[str] = NOT_GIVEN, conn_options: APIConnectOptions
    ) -> stt.SpeechEvent:
        text = self._unheard.pop(0) if self._unheard else ""
        return _event(stt.SpeechEventType.FINAL_TRANSCRIPT, text)


class _Stream(stt.RecognizeStream):
    def __init__(self, recogniser: ScriptedSTT, conn_options: APIConnectOptions) -> None:
        super().__init__(stt=recogniser, conn_options=conn_options)
        self._board = recogniser.board
        self._reported = 0
        self._asked = 0

    @property
    def closed(self) -> bool:
        return self._event_ch.closed

    @property
    def idle(self) -> bool:
        """Whether everything reported was taken: the reader comes back for more only then."""
        return self.closed or self._asked > self._reported

    def report(self, kind: stt.SpeechEventType, text: str) -> None:
        self._reported += 1
        self._event_ch.send_nowait(_event(kind, text))

    async def __anext__(self) -> stt.SpeechEvent:
        self._asked += 1
        self._board.changed()
        return await super().__anext__()

    async def _run(self) -> None:
        async for _ in self._input_ch:
            pass


def _event(kind: stt.SpeechEventType, text: str) -> stt.SpeechEvent:
    heard = stt.SpeechData(language=LanguageCode("en"), text=text, confidence=1.0)
    return stt.SpeechEvent(type=kind, alternatives=[heard])
