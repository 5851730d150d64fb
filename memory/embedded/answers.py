"""What the service answers with: rows of the database in the shapes of the Supermemory API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .database import Database, Row
from .ranking import CHUNKS, HYBRID, Ranking

Json = dict[str, Any]

_PROFILE = 100
SELECT_ITEMS = (
    "SELECT items.*, documents.key AS source, documents.metadata, documents.created, documents.updated"
    " FROM items JOIN documents ON documents.id = items.document WHERE items.namespace = ?"
)


def document(db: Database, row: Row, include: frozenset[str] = frozenset()) -> Json:
    found: Json = {
        "id": row["key"],
        "title": None,
        "type": "text",
        "summary": None,
        "content": row["content"],
        "metadata": json.loads(row["metadata"]),
        "system": {
            "status": row["status"],
            "dreamingStatus": "done",
            **_times(row["created"], row["updated"]),
        },
    }
    for kind, shape in (("chunks", chunk), ("memories", memory)):
        if kind in include:
            rows = db.rows(
                f"{SELECT_ITEMS} AND items.document = ? AND kind = ? ORDER BY line, part",
                row["namespace"],
                row["id"],
                kind.removesuffix("s") if kind == "chunks" else "memory",
            )
            found[kind] = [shape(item) for item in rows]
    return found


def memory(row: Row) -> Json:
    return {
        "id": row["key"],
        "memory": row["text"],
        "metadata": {**json.loads(row["metadata"]), "line": row["line"]},
        "isStatic": bool(row["static"]),
        "isInference": False,
        "isLatest": bool(row["latest"]),
        "isForgotten": False,
        "version": row["version"],
        "system": _times(row["said"], row["said"]),
    }


def memory_details(db: Database, row: Row, include: frozenset[str], most: int) -> Json:
    found = memory(row)
    included: Json = {}
    if "related" in include:
        versions = db.rows(
            f"{SELECT_ITEMS} AND kind = 'memory' AND about = ? AND items.id != ? ORDER BY version",
            row["namespace"],
            row["about"],
            row["id"],
        )
        earlier = [_related(version) for version in versions if version["version"] < row["version"]]
        later = [_related(version) for version in versions if version["version"] > row["version"]]
        included["related"] = {"parents": earlier[::-1][:most], "children": later[:most], "siblings": []}
    if "documents" in include:
        included["document"] = _source(row)
    return {**found, "included": included} if included else found


def chunk(row: Row) -> Json:
    return {
        "id": row["key"],
        "position": row["line"],
        "content": row["text"],
        "type": "text",
        "metadata": json.loads(row["metadata"]),
        "system": {"createdAt": row["said"]},
    }


def profile(db: Database, namespace: int | None, buckets: list[str]) -> Json:
    """Everything that holds now, newest first, at most 100 of each kind."""

    def facts(static: bool) -> list[Json]:
        rows = db.rows(
            "SELECT key, text FROM items WHERE namespace = ? AND kind = 'memory' AND latest = 1"
            " AND static = ? ORDER BY said DESC, id DESC LIMIT ?",
            namespace,
            static,
            _PROFILE,
        )
        return [{"id": row["key"], "memory": row["text"]} for row in rows]

    return {
        "profile": {
            "static": facts(True),
            "dynamic": facts(False),
            "buckets": {bucket: [] for bucket in buckets},
        }
    }


def search(
    db: Database, ranking: Ranking, namespace: int, query: str, mode: str, limit: int, threshold: float
) -> list[tuple[Row, float]]:
    """Items that fit, best first.

    A hybrid search leaves out a passage when a memory from the same line is among the results, or was
    replaced by a newer one: the caller who moved would else be told where they lived before.
    """
    found: list[tuple[Row, float]] = []
    shown: set[tuple[int, int]] = set()
    outdated: set[tuple[int, int]] = set()
    if mode == HYBRID:
        old = db.rows("SELECT document, line FROM items WHERE namespace = ? AND latest = 0", namespace)
        outdated = {_place(row) for row in old}
    for item, similarity in ranking.similarities(namespace, query, mode, threshold):
        if len(found) == limit:
            break
        row = db.row(f"{SELECT_ITEMS} AND items.id = ?", namespace, item)
        if row is None:
            continue
        place = _place(row)
        if row["kind"] == "memory":
            shown.add(place)
            if mode == HYBRID:
                found = [hit for hit in found if hit[0]["kind"] != "chunk" or _place(hit[0]) != place]
        elif mode == HYBRID and place in shown | outdated:
            continue
        found.append((row, similarity))
    return found


def hit(row: Row, similarity: float, with_document: bool) -> Json:
    passage = row["kind"] == "chunk"
    found: Json = {
        "id": row["key"],
        "chunk" if passage else "memory": row["text"],
        "metadata": {**json.loads(row["metadata"]), "line": row["line"]},
        "similarity": round(similarity, 4),
        "isLatest": bool(row["latest"]),
        "isInference": False,
        "system": _times(row["said"], row["said"]),
    }
    if with_document:
        found["included"] = {"document": _source(row)}
    return found


def listing(
    db: Database, namespace: int | None, kind: str, page: int, limit: int, order: str, include: Json
) -> Json:
    """One page of documents, chunks or memories; the two other lists are empty."""
    answer: Json = {"documents": [], "chunks": [], "memories": []}
    if kind == "documents":
        total = db.number("SELECT count(*) FROM documents WHERE namespace = ?", namespace)
        rows = db.rows(
            f"SELECT * FROM documents WHERE namespace = ? ORDER BY {order} LIMIT ? OFFSET ?",
            namespace,
            limit,
            (page - 1) * limit,
        )
        answer[kind] = [_listed_document(db, row, include) for row in rows]
    else:
        single = "chunk" if kind == CHUNKS else "memory"
        total = db.number("SELECT count(*) FROM items WHERE namespace = ? AND kind = ?", namespace, single)
        rows = db.rows(
            f"{SELECT_ITEMS} AND kind = ? ORDER BY {order} LIMIT ? OFFSET ?",
            namespace,
            single,
            limit,
            (page - 1) * limit,
        )
        shape: Callable[[Row], Json] = memory if single == "memory" else _listed_chunk
        answer[kind] = [shape(row) for row in rows]
    return {**answer, "pagination": pagination(page, limit, total)}


def namespace_details(row: Row) -> Json:
    return {
        "namespace": row["name"],
        "supportingContext": row["context"],
        "system": _times(row["created"], row["updated"]),
    }


def namespaces(db: Database, page: int, limit: int, part: str) -> Json:
    pattern = f"%{part}%"
    total = db.number("SELECT count(*) FROM namespaces WHERE name LIKE ?", pattern)
    rows = db.rows(
        "SELECT namespaces.*,"
        " (SELECT count(*) FROM documents WHERE namespace = namespaces.id) AS documents,"
        " (SELECT count(*) FROM items"
        " WHERE namespace = namespaces.id AND kind = 'memory' AND latest = 1) AS memories"
        " FROM namespaces WHERE name LIKE ? ORDER BY id DESC LIMIT ? OFFSET ?",
        pattern,
        limit,
        (page - 1) * limit,
    )
    found = [
        {
            "id": str(row["id"]),
            "namespace": row["name"],
            "documentCount": row["documents"],
            "memoryCount": row["memories"],
            "description": None,
            "system": _times(row["created"], row["updated"]),
        }
        for row in rows
    ]
    return {"namespaces": found, "pagination": pagination(page, limit, total)}


def pagination(page: int, limit: int, total: int) -> Json:
    return {"currentPage": page, "limit": limit, "totalItems": total, "totalPages": -(-total // limit)}


def _listed_document(db: Database, row: Row, include: Json) -> Json:
    found = document(db, row)
    if not include.get("content"):
        found["content"] = None
    if include.get("memoryCount"):
        found["system"]["memoryCount"] = db.number(
            "SELECT count(*) FROM items WHERE document = ? AND kind = 'memory' AND latest = 1", row["id"]
        )
    return {**found, "url": None}


def _listed_chunk(row: Row) -> Json:
    return {**chunk(row), "documentId": row["source"]}


def _related(row: Row) -> Json:
    return {
        "id": row["key"],
        "relation": "updates",
        "version": row["version"],
        "memory": row["text"],
        "metadata": json.loads(row["metadata"]),
        "system": {"updatedAt": row["said"]},
    }


def _source(row: Row) -> Json:
    return {
        "id": row["source"],
        "title": None,
        "type": "text",
        "metadata": json.loads(row["metadata"]),
        "summary": None,
        "system": _times(row["created"], row["updated"]),
    }


def _place(row: Row) -> tuple[int, int]:
    return row["document"], row["line"]


def _times(created: str, updated: str) -> Json:
    return {"createdAt": created, "updatedAt": updated}
