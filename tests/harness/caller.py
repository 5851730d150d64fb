"""The caller's voice: one set of verbs, whoever listens to it."""

from __future__ import annotations

from typing import Literal

from livekit.agents.stt import SpeechEventType

from .events import EventLog
from .line import Microphone
from .realtime import ScriptedRealtime
from .stt import ScriptedSTT
from .vad import ScriptedVAD
from .waiting import settle

TurnDetection = Literal["vad", "stt", "manual", "realtime_llm"]


class Caller:
    """Speaks to a recogniser and a voice activity detector, to a realtime model, or to all of them.

    Every verb returns when the session has acted on it.
    """

    def __init__(
        self,
        *,
        events: EventLog,
        microphone: Microphone,
        turn_detection: TurnDetection | None,
        stt: ScriptedSTT | None,
        vad: ScriptedVAD | None,
        realtime: ScriptedRealtime | None,
    ) -> None:
        self._events = events
        self._microphone = microphone
        self._turn_detection = turn_detection
        self._stt = stt
        self._vad = vad
        self._realtime = realtime
        self._heard = 0.0

    async def says(self, *texts: str) -> None:
        """Speak from beginning to end; each text becomes one final transcript, word by word if the
        recogniser has interim ones."""
        if len(texts) > 1 and not self._hears_while_speaking:
            raise ValueError(f"whoever listens here reports one transcript for each speech, not {texts!r}")
        await self.started()
        for text in texts if self._hears_while_speaking else ():
            words = text.split()
            for count in range(1, len(words) + 1) if self.recogniser.interims else ():
                await self.recogniser.push(SpeechEventType.INTERIM_TRANSCRIPT, " ".join(words[:count]))
            await self.recogniser.push(SpeechEventType.FINAL_TRANSCRIPT, text)
        await self.ended(" ".join(texts))

    async def started(self, heard: float = 0.6) -> None:
        self._heard = heard
        self._microphone.push()
        if self._turn_detection == "realtime_llm" and self._realtime is not None:
            self._realtime.current.speech_started()
            await settle()
        if self._vad is not None:
            await self._vad.speech_started(heard)
        if self._turn_detection == "stt":
            await self.recogniser.push(SpeechEventType.START_OF_SPEECH)

    async def ended(self, text: str | None = None) -> None:
        mark = len(self._events.happened)
        if text is not None and self._realtime is not None:
            if self._turn_detection == "realtime_llm":
                self._realtime.current.speech_stopped(text)
                await settle()
            else:
                self._realtime.current.will_hear(text)
        found_afterwards = text is not None and self._stt is not None and not self._hears_while_speaking
        if found_afterwards and text is not None:
            self.recogniser.will_hear(text)
        if self._vad is not None:
            await self._vad.speech_ended(self._heard)
        if self._turn_detection == "stt":
            await self.recogniser.push(SpeechEventType.END_OF_SPEECH)
        if found_afterwards:
            await self._events.wait_for("user_input_transcribed", lambda e: e.is_final, after=mark)

    @property
    def recogniser(self) -> ScriptedSTT:
        if self._stt is None:
            raise AssertionError("nobody transcribes the caller in this call: it has no recogniser")
        return self._stt

    @property
    def _hears_while_speaking(self) -> bool:
        return self._stt is not None and self._stt.capabilities.streaming
