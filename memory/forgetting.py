"""Taking what was forgotten out of transcripts, where a search would find it again. Pure functions.

Clauses are judged by the words they share with the fact that goes and with those that stay. Where one
clause tells both, only the words of the one that goes are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .transcript import Line

REPLACEMENT = "[the caller asked to forget something]"

_CLAUSES = re.compile(r"(?<=[.!?;,:])\s+|\s+(?=(?:and|but|because|so)\s)", re.IGNORECASE)
_STEM = 5
"""Letters that two forms of a word share: allergic, allergy; vegetarian, vegetarians."""

# Words that say nothing about what a fact is about.
_COMMON = frozenset(
    ["about", "again", "also", "am", "an", "and", "are", "as", "asked", "at", "be", "been", "but", "by"]
    + ["called", "caller", "can", "do", "does", "don", "for", "forget", "from", "go", "good", "had", "has"]
    + ["have", "he", "her", "his", "if", "in", "is", "it", "its", "know", "like", "likes", "live", "lived"]
    + ["lives", "ll", "me", "moved", "my", "name", "named", "no", "not", "now", "of", "ok", "on", "or"]
    + ["please", "re", "remember", "remembered", "said", "say", "she", "so", "that", "the", "their", "them"]
    + ["they", "this", "to", "up", "us", "ve", "want", "wants", "was", "we", "what", "when", "where", "will"]
    + ["with", "work", "works", "would", "yes", "you", "your"]
)


def told(text: str, fact: str) -> float:
    """How much of `fact` is told by `text`, 0 to 1: the share of the words that make the fact."""
    wanted = _stems(fact)
    return len(wanted & _stems(text)) / len(wanted) if wanted else 0.0


def without(text: str, facts: Sequence[str], keep: Sequence[str] = ()) -> str:
    """`text` without what tells one of `facts`, and with what tells one of `keep`."""
    clauses = _CLAUSES.split(text)
    left = [_clause_without(clause, facts, keep, text) for clause in clauses]
    if left == clauses:
        return text
    return " ".join([*(clause for clause in left if clause), REPLACEMENT])


def rewritten(lines: Iterable[Line], facts: Sequence[str], keep: Sequence[str] = ()) -> list[Line]:
    """The lines, with what tells one of `facts` taken out."""
    return [replace(line, text=without(line.text, facts, keep)) for line in lines]


def _clause_without(clause: str, facts: Sequence[str], keep: Sequence[str], line: str) -> str:
    for fact in facts:
        # A fact that is spread over the clauses of a line is told by all of them together.
        enough = 0.5 if told(line, fact) < 1 else 0.01
        if told(clause, fact) < enough:
            continue
        # What says less than the fact does is told elsewhere: "works at X" is no part of "hates X maps".
        rivals = [
            other
            for other in keep
            if told(clause, other) >= told(clause, fact) and not _stems(other) < _stems(fact)
        ]
        if not rivals:
            return ""
        clause = _without_words(clause, _stems(fact).difference(*(_stems(other) for other in rivals)))
    return clause


def _without_words(text: str, stems: set[str]) -> str:
    return re.sub(r"\w+", lambda word: "…" if _stem(word[0]) in stems else word[0], text)


def _stems(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return {_stem(word) for word in words if len(word) > 1 and word not in _COMMON}


def _stem(word: str) -> str:
    return word.casefold().removesuffix("s")[:_STEM]
