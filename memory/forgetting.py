"""Taking what was forgotten out of transcripts, where a search would find it again. Pure functions.

Whole clauses go, judged by the words they share with the fact: rather a clause too many than one that
tells it after all. The line stays, with what else was said in it.
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
    ["about", "again", "also", "and", "are", "asked", "been", "but", "called", "caller", "can", "does"]
    + ["for", "forget", "from", "good", "had", "has", "have", "her", "his", "know", "lived", "lives", "live"]
    + ["like", "likes", "moved", "name", "named", "not", "now", "remember", "remembered", "said", "say"]
    + ["that", "the", "their", "them", "they", "this", "was", "want", "wants", "what", "when", "where"]
    + ["will", "with", "work", "works", "would", "you", "your"]
)


def holds(text: str, fact: str) -> bool:
    """Whether `text` tells `fact`: it shares at least half of the words that make the fact."""
    wanted = _stems(fact)
    return bool(wanted) and 2 * len(wanted & _stems(text)) >= len(wanted)


def without(text: str, facts: Sequence[str]) -> str:
    """`text` without the clauses that tell one of `facts`; unchanged where none does."""
    clauses = _CLAUSES.split(text)
    kept = [clause for clause in clauses if not any(holds(clause, fact) for fact in facts)]
    if len(kept) == len(clauses):
        # Spread over clauses a fact can be told by the whole line only.
        return REPLACEMENT if any(_stems(fact) and _stems(fact) <= _stems(text) for fact in facts) else text
    return " ".join([*kept, REPLACEMENT])


def rewritten(lines: Iterable[Line], facts: Sequence[str]) -> list[Line]:
    """The lines, with what tells one of `facts` taken out."""
    return [replace(line, text=without(line.text, facts)) for line in lines]


def _stems(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return {word[:_STEM] for word in words if len(word) > 2 and word not in _COMMON}
