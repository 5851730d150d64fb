"""What the browser hears for a microphone: WAV files, which Chromium plays over and over."""

from __future__ import annotations

import wave
from pathlib import Path

from tests.support.spoken import RATE, spoken

AFTER = 6.0
"""Seconds before the caller speaks, in which the agent comes and greets."""
BEFORE = 4.0
"""Seconds before it all begins again."""


def silence(path: Path) -> Path:
    """Of somebody who has a microphone and only types."""
    return _write(path, _quiet(1.0))


def speech(path: Path, text: str) -> Path:
    """Of somebody who says `text` again and again, with pauses that are long enough for an answer."""
    return _write(path, _quiet(AFTER) + bytes(spoken(text).data) + _quiet(BEFORE))


def _quiet(seconds: float) -> bytes:
    return bytes(2 * int(RATE * seconds))


def _write(path: Path, samples: bytes) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples)
    return path
