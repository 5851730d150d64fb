"""The caller's end of the line: a microphone, a loudspeaker and the captions under it."""

from __future__ import annotations

import re
import time

from livekit import rtc
from livekit.agents import utils
from livekit.agents.voice import io

from .voice import WORD_SECONDS, silence
from .waiting import Board


class Microphone(io.AudioInput):
    """Audio the caller sends. It carries no words, the scripted recogniser has those; it makes the
    session's audio path run as it does in a room."""

    def __init__(self) -> None:
        super().__init__(label="scripted microphone")
        self._frames = utils.aio.Chan[rtc.AudioFrame]()

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.__anext__()

    def push(self, seconds: float = 0.02) -> None:
        self._frames.send_nowait(silence(seconds))


class Captions(io.TextOutput):
    """What the page would show of the agent's speech: one text for each reply, in `shown`."""

    def __init__(self) -> None:
        super().__init__(label="scripted captions", next_in_chain=None)
        self.shown: list[str] = []
        self._ended = True

    async def capture_text(self, text: str) -> None:
        if self._ended:
            self.shown.append("")
            self._ended = False
        self.shown[-1] += text

    def flush(self) -> None:
        self._ended = True

    def first_words(self, count: int) -> str:
        """The beginning of the latest text, up to and with its `count`-th word."""
        words = list(re.finditer(r"\S+", self.shown[-1])) if self.shown else []
        return self.shown[-1][: words[min(count, len(words)) - 1].end()] if words and count else ""


class Speaker(io.AudioOutput):
    """What the caller hears, in time that the test owns.

    It plays everything at once. After `hold()` it stands still at the beginning of what it is given
    and moves only when told to `play(words)`, so that a reply can be cut at an exact word. As a real
    room does, it reports how much of the text an interrupted reply has got to, and it can be paused
    (`can_pause=False` is an output that cannot, and is cut off at once instead).
    """

    def __init__(self, captions: Captions, board: Board, *, can_pause: bool = True) -> None:
        super().__init__(label="scripted speaker", capabilities=io.AudioOutputCapabilities(pause=can_pause))
        self._captions = captions
        self._board = board
        self.held = False
        """Whether it stands still until told to play; see `hold`."""
        self.cuts = 0
        """How many replies were cut off so far."""
        self._paused = False
        self._arrived = 0.0
        self._played = 0.0
        self._complete = False
        self._started = False

    @property
    def playing(self) -> bool:
        """Whether a reply has been started and is neither over nor cut."""
        return self._started

    @property
    def waiting_words(self) -> int:
        """Words that have arrived and were not played yet."""
        return _words(self._arrived - self._played)

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False
        self._advance()

    def play(self, words: int) -> None:
        """Play that many words more of what has arrived; only while held."""
        self._played = min(self._arrived, self._played + words * WORD_SECONDS)
        self._finish_if_over()

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self._arrived += frame.duration
        self._advance()

    def flush(self) -> None:
        super().flush()
        self._complete = self._arrived > 0
        self._advance()

    def clear_buffer(self) -> None:
        if self._arrived:
            self._finish(interrupted=True)

    def pause(self) -> None:
        super().pause()
        self._paused = True
        self._board.changed()

    def resume(self) -> None:
        super().resume()
        self._paused = False
        self._advance()

    def _advance(self) -> None:
        if self._arrived and not self._paused:
            if not self._started:
                self._started = True
                self.on_playback_started(created_at=time.time())
            if not self.held:
                self._played = self._arrived
                self._finish_if_over()
        self._board.changed()

    def _finish_if_over(self) -> None:
        if self._complete and self._played >= self._arrived:
            self._finish(interrupted=False)
        self._board.changed()

    def _finish(self, *, interrupted: bool) -> None:
        played = self._played
        self._arrived = self._played = 0.0
        self._complete = self._started = False
        self.cuts += interrupted
        self.on_playback_finished(
            playback_position=played,
            interrupted=interrupted,
            synchronized_transcript=self._captions.first_words(_words(played)) if interrupted else None,
        )
        self._board.changed()


def _words(seconds: float) -> int:
    return int(seconds / WORD_SECONDS + 1e-6)
