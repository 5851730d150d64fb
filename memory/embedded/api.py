"""The endpoints: from a request to a status and a JSON body, as the Supermemory API answers it.

A field that this store has no use for but may ignore (`rerank`, `dreaming`) is taken; one that would
change the result (`filter`, `group`) is refused, so that nobody relies on it in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from . import answers, writing
from .answers import Json
from .checks import (
    Refused,
    Request,
    a_choice,
    a_number,
    a_text,
    an_id,
    an_object,
    body_of,
    draft_of,
    ids_of,
    included,
    invalid,
    namespace_of,
)
from .database import Database, Row, fresh_key, now, stamp
from .ranking import CHUNKS, HYBRID, MEMORIES, Ranking

MATCHING, NEXT_TO_BEST = 0.3, 0.75
"""Meant by the words with which something is to be forgotten: what is at least this similar to them, and
has at least this share of the best match's similarity. Tried with 29 requests over 60 facts."""

Endpoint = Callable[["Service", Request], Any]


class Service:
    """Answers requests from one database, on the thread that it belongs to."""

    def __init__(self, db: Database, ranking: Ranking) -> None:
        self.db = db
        self.ranking = ranking
        self.changed: int | None = None
        """The namespace that the last request added text to, for `Ranking.keep`."""

    def answer(self, request: Request) -> tuple[int, Json]:
        self.changed = None
        try:
            endpoint = _ENDPOINTS.get(name_of(request))
            if endpoint is None:
                raise Refused(404, "Not found", "The embedded memory has no such endpoint.")
            return 200, endpoint(self, request)
        except Refused as refused:
            return refused.status, refused.body

    def namespace(self, request: Request) -> Row | None:
        return self.db.row("SELECT * FROM namespaces WHERE name = ?", namespace_of(request))

    def known_namespace(self, request: Request) -> Row:
        row = self.namespace(request)
        if row is None:
            raise Refused(404, "Namespace not found")
        return row

    def document(self, namespace: Row | None, key: str) -> Row | None:
        return namespace and self.db.row(
            "SELECT * FROM documents WHERE namespace = ? AND key = ?", namespace["id"], key
        )

    def memory(self, namespace: Row | None, key: str) -> Row | None:
        return namespace and self.db.row(
            f"{answers.SELECT_ITEMS} AND kind = 'memory' AND items.key = ?", namespace["id"], key
        )


def name_of(request: Request) -> str:
    """The endpoint that a request is for, by the name that `Faults` knows it by; "" for none."""
    parts = request.parts
    if parts[0] == "namespaces" or parts == ["ns"]:
        return "namespaces" if request.method == "GET" and len(parts) == 1 else ""
    if parts[0] != "ns" or len(parts) < 2:
        return ""
    shape = "/".join(parts[2:3] + ["*" if part not in ("batch", "semantic") else part for part in parts[3:]])
    return _NAMES.get((request.method, shape), "")


_NAMES = {
    ("POST", "document"): "add",
    ("POST", "document/batch"): "batch",
    ("GET", "document/*"): "get",
    ("PATCH", "document/*"): "update",
    ("DELETE", "document"): "delete",
    ("POST", "search"): "search",
    ("POST", "profile"): "profile",
    ("POST", "list/*"): "list",
    ("GET", "memories/*"): "memory",
    ("DELETE", "memories"): "forget",
    ("DELETE", "memories/semantic"): "forget_matching",
    ("GET", ""): "namespace",
    ("PATCH", ""): "update_namespace",
    ("DELETE", ""): "delete_namespace",
}


def _add(service: Service, request: Request) -> Json:
    namespace, body = namespace_of(request), body_of(request)
    draft = draft_of(body, needs_content=True, fail=request.fail)
    key = an_id(body["id"], "id") if body.get("id") is not None else fresh_key()
    row = writing.add(service.db, namespace, key, draft)
    service.changed = row["namespace"]
    return {"id": row["key"], "status": row["status"]}


def _batch(service: Service, request: Request) -> Json:
    namespace, body = namespace_of(request), body_of(request)
    documents = body.get("documents")
    if not isinstance(documents, list) or not 1 <= len(documents) <= 600:
        raise invalid("documents", "must be a list of 1 to 600 documents")
    shared: Json = {name: body[name] for name in ("taskType", "dreaming") if name in body}
    accepted: list[Json] = []
    failed: list[Json] = []
    for document in documents:
        try:
            single = {**shared, **an_object(document, "documents")}
            accepted.append(_add(service, Request("POST", request.path, {}, single, request.fail)))
        except Refused as refused:
            key = document.get("id") if isinstance(document, dict) else None
            failed.append({"id": str(key or ""), "status": "error", "error": str(refused)})
    found = service.db.row("SELECT id FROM namespaces WHERE name = ?", namespace)
    service.changed = found["id"] if found else None
    return {"results": accepted + failed, "count": len(accepted), "failed": len(failed)}


def _get(service: Service, request: Request) -> Json:
    row = service.document(service.namespace(request), request.parts[3])
    if row is None:
        raise Refused(404, "Document not found")
    return answers.document(service.db, row, included(request, {"chunks", "memories"}))


def _update(service: Service, request: Request) -> Json:
    namespace = service.namespace(request)
    row = service.document(namespace, request.parts[3])
    if row is None:
        raise Refused(404, "Document not found")
    draft = draft_of(body_of(request), needs_content=False, fail=request.fail)
    row = writing.update(service.db, row, draft)
    if row is None:
        raise Refused(404, "Document not found")
    service.changed = row["namespace"]
    return {"id": row["key"], "status": row["status"]}


def _delete(service: Service, request: Request) -> Json:
    namespace = service.namespace(request)
    found: list[Row] = []
    errors: list[Json] = []
    for key in dict.fromkeys(ids_of(request, 100)):
        row = service.document(namespace, key)
        if row is None:
            errors.append({"id": key, "error": "Document not found"})
        else:
            found.append(row)
    if found:
        writing.delete(service.db, found)
    return {"count": len(found), "errors": errors}


def _search(service: Service, request: Request) -> Json:
    started = time.perf_counter()
    body = body_of(request)
    query = a_text(body, "query")
    mode = a_choice(body, "searchMode", (HYBRID, MEMORIES, CHUNKS))
    limit = a_number(body, "limit", 10, 1, 100)
    threshold = body.get("threshold", 0.3)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise invalid("threshold", "must be a number from 0 to 1")
    include = an_object(body.get("include") or {}, "include")
    namespace = service.namespace(request)
    found = (
        answers.search(service.db, service.ranking, namespace["id"], query, mode, limit, threshold)
        if namespace
        else []
    )
    service.changed = namespace["id"] if namespace else None
    return {
        "results": [answers.hit(row, score, bool(include.get("documents"))) for row, score in found],
        "searchTime": round((time.perf_counter() - started) * 1000, 1),
    }


def _profile(service: Service, request: Request) -> Json:
    buckets = body_of(request).get("buckets") or []
    if not isinstance(buckets, list) or not all(isinstance(bucket, str) for bucket in buckets):
        raise invalid("buckets", "must be a list of names")
    namespace = service.namespace(request)
    return answers.profile(service.db, namespace and namespace["id"], buckets)


def _list(service: Service, request: Request) -> Json:
    kind = request.parts[3]
    if kind not in ("documents", CHUNKS, MEMORIES):
        raise invalid("type", "must be documents, chunks or memories")
    sort = a_choice(request.query, "sort", ("createdAt", "updatedAt", "position"))
    if sort == "position" and kind != CHUNKS:
        raise invalid("sort", "can be position only for chunks")
    order = a_choice(request.query, "order", ("desc", "asc"))
    if kind == "documents":
        columns = ["updated" if sort == "updatedAt" else "created", "id"]
    else:
        columns = ["line", "part"] if sort == "position" else ["said", "items.id"]
    page = a_number(request.query, "page", 1, 1, 10**9)
    limit = a_number(request.query, "limit", 10, 1, 100)
    include = an_object(body_of(request).get("include") or {}, "include")
    namespace = service.namespace(request)
    by = ", ".join(f"{column} {order}" for column in columns)
    return answers.listing(service.db, namespace and namespace["id"], kind, page, limit, by, include)


def _memory(service: Service, request: Request) -> Json:
    row = service.memory(service.namespace(request), request.parts[3])
    if row is None:
        raise Refused(404, "Memory not found")
    most = a_number(request.query, "relatedLimit", 10, 1, 100)
    return answers.memory_details(service.db, row, included(request, {"related", "documents"}), most)


def _forget(service: Service, request: Request) -> Json:
    namespace = service.namespace(request)
    found: list[Row] = []
    errors: list[Json] = []
    for key in dict.fromkeys(ids_of(request, 500)):
        row = service.memory(namespace, key)
        if row is None:
            errors.append({"id": key, "error": "Memory not found"})
        else:
            found.append(row)
    if found:
        writing.forget(service.db, found)
    return _forgotten(found, errors)


def _forget_matching(service: Service, request: Request) -> Json:
    body = body_of(request)
    query = a_text(body, "query")
    if not isinstance(body.get("dryRun"), bool):
        raise invalid("dryRun", "is required: true or false")
    namespace = service.namespace(request)
    if namespace is None:
        return _forgotten([], [])
    hits = answers.search(service.db, service.ranking, namespace["id"], query, MEMORIES, 20, MATCHING)
    found = [row for row, similarity in hits if similarity >= NEXT_TO_BEST * hits[0][1]]
    if found and not body["dryRun"]:
        writing.forget(service.db, found)
    return _forgotten(found, [])


def _namespaces(service: Service, request: Request) -> Json:
    page = a_number(request.query, "page", 1, 1, 10**9)
    limit = a_number(request.query, "limit", 10, 1, 100)
    return answers.namespaces(service.db, page, limit, request.query.get("q", ""))


def _namespace(service: Service, request: Request) -> Json:
    return answers.namespace_details(service.known_namespace(request))


def _update_namespace(service: Service, request: Request) -> Json:
    body = body_of(request)
    if "supportingContext" not in body:
        raise invalid("supportingContext", "is required; null clears it")
    context = body["supportingContext"]
    if context is not None and (not isinstance(context, str) or len(context) > 1500):
        raise invalid("supportingContext", "must be null or a text of at most 1500 characters")
    row = service.known_namespace(request)
    with service.db.writing():
        service.db.run(
            "UPDATE namespaces SET context = ?, updated = ? WHERE id = ?", context, stamp(now()), row["id"]
        )
    return answers.namespace_details(service.known_namespace(request))


def _delete_namespace(service: Service, request: Request) -> Json:
    if request.query.get("moveTo"):
        raise Refused(400, "The embedded memory cannot move a namespace")
    row = service.known_namespace(request)
    documents, memories = writing.delete_namespace(service.db, row["id"])
    return {
        "status": "deleted",
        "namespace": row["name"],
        "deletedDocumentsCount": documents,
        "deletedMemoriesCount": memories,
    }


_ENDPOINTS: dict[str, Endpoint] = {
    "add": _add,
    "batch": _batch,
    "get": _get,
    "update": _update,
    "delete": _delete,
    "search": _search,
    "profile": _profile,
    "list": _list,
    "memory": _memory,
    "forget": _forget,
    "forget_matching": _forget_matching,
    "namespaces": _namespaces,
    "namespace": _namespace,
    "update_namespace": _update_namespace,
    "delete_namespace": _delete_namespace,
}


def _forgotten(found: Sequence[Row], errors: list[Json]) -> Json:
    matches = [{"id": row["key"], "memory": row["text"]} for row in found]
    return {"count": len(matches), "errors": errors, "matches": matches}
