"""The caller's words as they are recognised, until a message of the conversation takes them.

LiveKit makes one message of the final transcripts of a turn, but not of all: a hook drops the turn, an
interruption was too short, a realtime model takes none. Closing may then join what was said in the whole
call into one message. Nothing of that is to be stored twice, and nothing left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .facts import same


@dataclass
class Words:
    """A stretch of what the caller said."""

    text: str = ""
    began: float | None = None
    """`time.time()` of its first final transcript; None without any."""


@dataclass
class _Final:
    text: str
    at: float = field(default_factory=time.time)
    settled: bool = False
    """Dealt with as words that no message took."""


class Heard:
    """Final transcripts that no message has taken yet."""

    def __init__(self) -> None:
        self._finals: list[_Final] = []

    @property
    def last_at(self) -> float | None:
        """`time.time()` of the latest final of the turn that is being spoken; None outside a turn."""
        return self._finals[-1].at if self._finals and not self._finals[-1].settled else None

    def add(self, text: str) -> None:
        self._finals.append(_Final(text))

    def settle(self) -> Words:
        """Ends the turn: its words, which nobody else tells from now on."""
        fresh = _fresh(self._finals)
        for final in fresh:
            final.settled = True
        return _joined(fresh)

    def take(self, message: str, *, spoken: bool) -> tuple[Words, Words]:
        """What was said before `message` and is not part of it, and what of the message is not settled yet.

        A message is made of the last finals, and where the call was cut off of a guess at what followed.
        One that is not was typed, which leaves the turn that is being spoken alone, or with `spoken` a hook
        has edited it: it is whole then.
        """
        end, count, rest = _find(self._finals, message)
        if not spoken and (not count or rest):
            return Words(), Words(message)
        finals, self._finals = self._finals[:end], self._finals[end:]
        if not count:
            return Words(), Words(message, _joined(_fresh(finals)).began)
        before, own = finals[:-count], finals[-count:]
        fresh = _fresh(own)
        words = _joined(fresh)
        text = message if fresh == own else f"{words.text} {rest}".strip()
        return _joined(_fresh(before)), Words(text, words.began)


def _fresh(finals: Sequence[_Final]) -> list[_Final]:
    return [final for final in finals if not final.settled]


def _find(finals: Sequence[_Final], message: str) -> tuple[int, int, str]:
    """Before which final `message` ends, how many finals it begins with, and what follows them in it.

    One that comes late ends before others: the caller has gone on meanwhile, and those are not its own.
    """
    count, rest = _split(finals, message)
    if not count:
        for end in range(len(finals) - 1, 0, -1):
            late, left = _split(finals[:end], message)
            if not left:
                return end, late, left
    return len(finals), count, rest


def _split(finals: Sequence[_Final], message: str) -> tuple[int, str]:
    """How many of the last finals `message` begins with, the most that fit, and what follows them."""
    said = [same(final.text).split() for final in finals]
    words = same(message).split()
    for first in range(len(said)):
        end = 0
        for final in said[first:]:
            if words[end : end + len(final)] != final:
                break
            end += len(final)
        else:
            return len(said) - first, _after(message, end)
    return 0, message


def _after(message: str, words: int) -> str:
    """`message` without so many of its words."""
    pieces = message.split()
    while pieces and words > 0:
        words -= len(same(pieces.pop(0)).split())
    return " ".join(pieces)


def _joined(finals: Sequence[_Final]) -> Words:
    return Words(" ".join(final.text for final in finals), finals[0].at if finals else None)
