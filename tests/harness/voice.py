"""Speech without sound: silence of a known length for each word."""

from __future__ import annotations

from typing import Any

from livekit import rtc
from livekit.agents import APIConnectOptions, tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

SAMPLE_RATE = 8000
WORD_SECONDS = 0.2
"""How long every word lasts, which makes "interrupted after three words" an exact place."""


def silence(seconds: float) -> rtc.AudioFrame:
    """One frame of silence."""
    samples = round(seconds * SAMPLE_RATE)
    return rtc.AudioFrame(
        data=bytes(2 * samples), sample_rate=SAMPLE_RATE, num_channels=1, samples_per_channel=samples
    )


def spoken(words: int) -> bytes:
    """The samples of that many words."""
    return bytes(2 * round(words * WORD_SECONDS * SAMPLE_RATE))


class ScriptedTTS(tts.TTS[Any]):
    """Speaks every word in `WORD_SECONDS`; `said` holds each text it was given, in order.

    `streaming=False` is a synthesiser that takes whole sentences, as many local ones do.
    """

    def __init__(self, *, streaming: bool = True) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=streaming), sample_rate=SAMPLE_RATE, num_channels=1
        )
        self.said: list[str] = []

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return _Sentence(self, text, conn_options)

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.SynthesizeStream:
        return _Stream(self, conn_options)


class _Sentence(tts.ChunkedStream):
    def __init__(self, voice: ScriptedTTS, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, input_text=text, conn_options=conn_options)
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid(), sample_rate=SAMPLE_RATE, num_channels=1, mime_type="audio/pcm"
        )
        self._voice.said.append(self.input_text)
        output_emitter.push(spoken(len(self.input_text.split())))
        output_emitter.flush()


class _Stream(tts.SynthesizeStream):
    def __init__(self, voice: ScriptedTTS, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, conn_options=conn_options)
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        segment = utils.shortuuid()
        output_emitter.initialize(
            request_id=segment,
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
            stream=True,
        )
        output_emitter.start_segment(segment_id=segment)
        text, done = "", 0
        async for chunk in self._input_ch:
            if isinstance(chunk, self._FlushSentinel):
                continue
            self._mark_started()
            text += chunk
            # The last word may still grow until white space follows it.
            whole = len(text.split()) - (not text[-1].isspace())
            output_emitter.push(spoken(whole - done))
            done = whole
        output_emitter.push(spoken(len(text.split()) - done))
        self._voice.said.append(text)
