"""Finding what fits a question: by meaning where an embedding model is installed, else by words.

With vectors a hit is ranked by the cosine of the two texts plus a little for shared words, which finds
names and numbers that embeddings blur. Without them the share of the question's words that it holds
counts, rare words more than common ones.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .database import Database
from .grammar import word_set

MEMORIES, CHUNKS, HYBRID = "memories", "chunks", "hybrid"

_FLOOR = 0.1
"""The cosine at which two texts have nothing to do with each other. Measured with all-MiniLM-L6-v2 on 60
facts: a threshold of 0.1 keeps 98 % of 40 fitting pairs, and 8 % of the pairs with 20 stray questions."""
_PER_BM25 = 0.02
_CANDIDATES = 500
_MOST_WORDS = 24

_STOP = word_set(
    """
    a about again all also am an and any anything are as at be because been but by can caller could did do
    does doing for from had has have he her here him his how i if in is it its just let me mine more my no not
    now of on or our out please said she should so some something tell than that the their them then there
    these they this those to too up us user was we were what when where which who whom whose why will with
    would yes you your s t m ve d ll re
    """
)
# What people call one thing by different words; a word brings the others of its group, at half its weight.
_RELATED = [
    frozenset(group.split(" "))
    for group in (
        "job work works working career occupation profession employer employed",
        "address live lives living moved reside",
        "kid kids child children son daughter sons daughters family",
        "pet pets dog cat animal animals",
        "car drive drives vehicle",
        "eat eats food diet meal vegetarian vegan meat",
        "allergy allergies allergic intolerant",
        "wife husband married partner spouse",
        "age old born birthday",
        "call called name",
        "music song band jazz instrument plays play",
        "language speak speaks",
        "favourite favorite likes like love loves prefer prefers",
        "colour color",
    )
]
_QUOTED = re.compile(r'(?:On [\w ]+ the|The) caller said: "(?P<said>.*)"\.?', re.DOTALL)


def searchable(text: str) -> str:
    """A memory as the caller would say it, which is how they will ask: "The caller is" → "I am"."""
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted["said"]
    for third, first in (
        ("the caller's ", "My "),
        ("the caller is ", "I am "),
        ("the caller has ", "I have "),
        ("the caller ", "I "),
    ):
        if text.lower().startswith(third):
            return first + text[len(third) :]
    return text


class Ranking:
    """Similarities of everything in a namespace to a question. Belongs to the thread of its database."""

    def __init__(self, db: Database, *, vectors: bool = True) -> None:
        self._db = db
        self._wanted = vectors
        self._vectors: Any = None

    def similarities(
        self, namespace: int, query: str, mode: str, least: float = 0.0
    ) -> list[tuple[int, float]]:
        """Ids of items that fit at least so well, 0 to 1, best first, newer before older among equals."""
        words = _terms(query)
        vectors = self._loaded()
        scores: dict[int, float] = {}
        if vectors is not None:
            shared = self._bm25(namespace, words)
            for item, cosine in vectors.cosines(self._db, namespace, query).items():
                scores[item] = (cosine - _FLOOR) / (1 - _FLOOR) + _PER_BM25 * shared.get(item, 0.0)
        kept = {
            row["id"]
            for row in self._db.rows(
                "SELECT id FROM items WHERE namespace = ? AND latest = 1 AND kind != ?",
                namespace,
                {MEMORIES: "chunk", CHUNKS: "memory"}.get(mode, ""),
            )
        }
        if not kept <= scores.keys():
            scores = {**self._by_words(namespace, words), **scores}
        found = sorted(
            (-min(score, 1.0), -item)
            for item, score in scores.items()
            if score >= least and score > 0 and item in kept
        )
        return [(-item, -score) for score, item in found]

    def warm(self) -> None:
        """Loads the model, which takes half a second, before somebody waits for it."""
        self._loaded()

    def keep(self, namespace: int) -> bool:
        """Stores vectors that are missing; returns whether there are more, for another round."""
        vectors = self._loaded()
        return vectors is not None and vectors.keep(self._db, namespace)

    def _loaded(self) -> Any:
        if self._wanted and self._vectors is None:
            try:
                from .vectors import load
            except ImportError:
                self._wanted = False
            else:
                self._vectors = load()
                self._wanted = self._vectors is not None
        return self._vectors

    def _bm25(self, namespace: int, words: list[str]) -> dict[int, float]:
        if not words:
            return {}
        rows = self._db.rows(
            "SELECT rowid AS id, -bm25(words, 0.0, 1.0) AS score FROM words WHERE words MATCH ?"
            " ORDER BY score DESC LIMIT ?",
            _match(namespace, words),
            _CANDIDATES,
        )
        return {row["id"]: row["score"] for row in rows}

    def _by_words(self, namespace: int, words: list[str]) -> dict[int, float]:
        """The share of the question's words that an item holds; rare words weigh more."""
        everything = max(self._db.number("SELECT count(*) FROM items WHERE namespace = ?", namespace), 1)
        shares: dict[int, float] = {}
        total = 0.0
        for word in words:
            exact = self._holding(namespace, [word])
            others = [other for group in _RELATED if word in group for other in sorted(group)]
            found = exact | self._holding(namespace, others)
            weight = math.log(1 + everything / (len(found) + 0.5))
            total += weight
            for item in found:
                shares[item] = shares.get(item, 0.0) + weight * (1.0 if item in exact else 0.5)
        closer = self._bm25(namespace, words)
        # The root keeps one good word in a long spoken question above the usual threshold. Among equals
        # BM25 decides, which prefers the shorter text.
        return {
            item: 0.98 * math.sqrt(share / total) + 0.02 * min(closer.get(item, 0.0), 1.0)
            for item, share in shares.items()
        }

    def _holding(self, namespace: int, words: list[str]) -> set[int]:
        if not words:
            return set()
        rows = self._db.rows("SELECT rowid AS id FROM words WHERE words MATCH ?", _match(namespace, words))
        return {row["id"] for row in rows}


def _terms(query: str) -> list[str]:
    found = dict.fromkeys(re.findall(r"\w+", query.lower()))
    return [word for word in found if word not in _STOP][:_MOST_WORDS]


def _match(namespace: int, words: list[str]) -> str:
    """An FTS5 query for any of the words in one namespace. Only letters and digits get in, and quoted."""
    terms: list[str] = []
    for word in words:
        terms.append(f'"{word}"')
        # Stemming alone does not bring "allergy" and "allergic" together; their beginning does.
        if len(word) >= 6 and word.isalpha():
            terms.append(f'"{word[: max(5, len(word) - 4)]}"*')
    return f'scope:"n{namespace}" AND text:({" OR ".join(terms)})'
