"""What a document is made of: the numbered lines of a call, or plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_LINE = re.compile(
    r"\[(?P<number>\d{1,9})\] (?P<when>\S{10,40}) (?P<speaker>[A-Z][\w ]{0,30}?)(?: \([a-z ]+\))?:"
    r" (?P<said>.*)",
    re.DOTALL,
)
_PIECE = 1000
_PIECES = 200


@dataclass(frozen=True)
class Line:
    number: int
    """Position in the document; the same line always has the same number, however often it is read."""
    speaker: str
    """`Caller`, `Agent` or whoever else; empty in a document that is not a transcript."""
    said: str
    time: str
    """As it is written; empty when the line says none."""
    prefix: str
    """What stood before the words: number, time and speaker."""

    @property
    def when(self) -> datetime | None:
        return moment(self.time)

    @property
    def by_caller(self) -> bool:
        return self.speaker in ("", "Caller")

    def passages(self) -> Iterator[str]:
        """The line in pieces short enough to be searched for, the first 200; each says who spoke and when."""
        for start in range(0, min(max(len(self.said), 1), _PIECE * _PIECES), _PIECE):
            yield self.prefix + self.said[start : start + _PIECE]


def parse(content: str) -> dict[int, Line]:
    """The lines of a document by number; of two with one number the first counts.

    In a transcript, what follows a numbered line without a number of its own belongs to that line, and
    what stands before the first is nobody's words. A document without any numbered line counts its lines
    itself, and its author counts as the caller.
    """
    rows = _rows(content)
    matches = [_LINE.fullmatch(row) for row in rows]
    if not any(matches):
        return {n: Line(n, "", row.strip(), "", "") for n, row in enumerate(rows, 1)}
    found: dict[int, Line] = {}
    last = Line(0, "Nobody", "", "", "")
    for row, match in zip(rows, matches, strict=True):
        if match:
            prefix = row[: match.start("said")]
            last = Line(int(match["number"]), match["speaker"], match["said"].strip(), match["when"], prefix)
        else:
            if found.get(last.number, last) is not last:
                continue
            said = f"{last.said} {row.strip()}".strip()
            last = Line(last.number, last.speaker, said, last.time, last.prefix)
            found.pop(last.number, None)
        found.setdefault(last.number, last)
    return found


def numbered(content: str) -> bool:
    """Whether the first thing in `content` is a numbered line."""
    rows = _rows(content[:2000])
    return bool(rows) and _LINE.match(rows[0]) is not None


def whole(content: str) -> dict[int, Line]:
    """A document of one statement, as one line."""
    text = " ".join(content.split())
    return {1: Line(1, "", text, "", "")} if text else {}


def _rows(content: str) -> list[str]:
    return [row for row in re.split(r"\r\n|\r|\n", content) if row.strip()]


def moment(text: str) -> datetime | None:
    """An ISO 8601 time in UTC, or None; one without a zone is taken as UTC."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
