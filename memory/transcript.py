"""The lines of a stored call: `[12] 2026-11-30T18:03:11.250Z Caller: I moved to Boston`.

The number tells which lines are stored, the time which call and how long ago, the speaker whose words
they are; together they also keep a line from ever being a bare URL, which the service would fetch.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Speaker = Literal["Caller", "Agent"]

MAX_LINE = 20_000
"""Characters of one line; a longer one says that it was cut."""

_LINE = re.compile(
    r"^\[(?P<number>\d+)\] (?P<when>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) "
    r"(?P<speaker>Caller|Agent)(?P<interrupted> \(interrupted\))?: (?P<text>.*)$",
    re.MULTILINE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_MARKDOWN = re.compile(r"(\*{1,3}|_{2,3}|`{1,3}|~~)(?=\S)(.{1,300}?)(?<=\S)\1")
_LINE_START = re.compile(r"^\s*(?:#{1,6}|[*+-]|>)\s+", re.MULTILINE)
# Bidirectional overrides, zero width marks and tag characters: text that shows as something else.
# The joiners U+200C and U+200D stay, since Persian and emoji need them.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


@dataclass(frozen=True)
class Line:
    """One thing said in a call."""

    when: datetime
    speaker: Speaker
    text: str
    interrupted: bool = False
    number: int = 0
    """Position in the document from 1, or 0 while it is not assigned."""

    def __str__(self) -> str:
        moment = self.when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        mark = " (interrupted)" if self.interrupted else ""
        return f"[{self.number}] {moment} {self.speaker}{mark}: {self.text}"


def parse(text: str) -> list[Line]:
    """The lines in a document or a passage of one; what is no whole line is left out."""
    lines = []
    for match in _LINE.finditer(text):
        with contextlib.suppress(ValueError):  # a month 13: somebody's words that look like a line
            when = datetime.fromisoformat(match["when"])
            speaker: Speaker = "Caller" if match["speaker"] == "Caller" else "Agent"
            lines.append(Line(when, speaker, match["text"], bool(match["interrupted"]), int(match["number"])))
    return lines


def render(lines: Sequence[Line]) -> str:
    """The text to append for `lines`."""
    return "".join(f"{line}\n" for line in lines)


def plain(text: str) -> str:
    """`text` on one line, without control characters and invisible marks, at most `MAX_LINE` long."""
    visible = _INVISIBLE.sub("", text)
    spaced = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in visible)
    one_line = " ".join(spaced.split())
    return one_line if len(one_line) <= MAX_LINE else one_line[:MAX_LINE].rstrip() + " … [cut]"


def spoken(text: str) -> str:
    """What an agent's reply says aloud: `plain`, without speech directives (SSML) and markdown."""
    text = _LINE_START.sub("", _TAG.sub(" ", text))
    return plain(_MARKDOWN.sub(r"\2", text))
