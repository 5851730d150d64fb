"""What is stored, and what becomes of it: passages to search, and memories by the rules of `statements`.

Everything happens within the request: the next search knows it. A line of a document is read once, until
it is rewritten; its passages are the record that it was. So a memory that was forgotten is not learned
again from where it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import lines
from .database import Database, Row, fresh_key, now, stamp
from .lines import Line
from .ranking import searchable
from .statements import Statement, off_the_record, remembered, statements
from .topics import Topic

REMEMBERED = "remembered"


@dataclass(frozen=True)
class Draft:
    """A document to add, or the fields of one to change; None leaves a field as it is."""

    content: str | None = None
    metadata: dict[str, Any] | None = None
    date: str | None = None
    learn: bool | None = None
    """False stores the text for search only and draws no memories from it."""
    failed: bool = False
    """Stored, and not processed: what a service calls `failed`."""


def add(db: Database, namespace: str, key: str, draft: Draft) -> Row:
    """Makes a document, or appends to the one that has this key."""
    moment = stamp(now())
    with db.writing():
        db.run(
            "INSERT OR IGNORE INTO namespaces (name, created, updated) VALUES (?, ?, ?)",
            namespace,
            moment,
            moment,
        )
        space = db.number("SELECT id FROM namespaces WHERE name = ?", namespace)
        db.run(
            "INSERT OR IGNORE INTO documents"
            " (namespace, key, content, metadata, status, learn, created, updated)"
            " VALUES (?, ?, '', '{}', 'done', 1, ?, ?)",
            space,
            key,
            moment,
            moment,
        )
        old = db.row("SELECT * FROM documents WHERE namespace = ? AND key = ?", space, key)
        assert old is not None
        joint = "" if not old["content"] or old["content"].endswith("\n") else "\n"
        metadata = {**json.loads(old["metadata"]), **(draft.metadata or {})}
        return _store(db, old, draft, old["content"] + joint + (draft.content or ""), metadata)


def update(db: Database, document: Row, draft: Draft) -> Row | None:
    """Changes the fields that are given; new content takes the place of the old, with all it taught.

    None when another process deleted the document meanwhile.
    """
    with db.writing():
        # As it is now, under the lock: another process may have appended since it was looked up.
        old = db.row("SELECT * FROM documents WHERE id = ?", document["id"])
        if old is None:
            return None
        content = old["content"] if draft.content is None else draft.content
        metadata = json.loads(old["metadata"]) if draft.metadata is None else draft.metadata
        row = _store(db, old, draft, content, metadata)
    if draft.content is not None:
        db.wipe()
    return row


def delete(db: Database, documents: Sequence[Row]) -> None:
    """Deletes documents and what they taught; what their memories had replaced holds again."""
    with db.writing():
        for document in documents:
            topics = _topics(db, "document = ?", document["id"])
            db.run("DELETE FROM documents WHERE id = ?", document["id"])
            _settle(db, document["namespace"], topics)
    db.wipe()


def forget(db: Database, memories: Sequence[Row]) -> None:
    """Deletes memories for good, each with the older versions that it had replaced.

    Search finds the lines they came from no more; their text stays in the document until it is rewritten.
    """
    with db.writing():
        for memory in memories:
            versions = db.rows(
                "SELECT * FROM items WHERE namespace = ? AND kind = 'memory' AND about = ?"
                " AND (id = ? OR (latest = 0 AND version < ?))",
                memory["namespace"],
                memory["about"],
                memory["id"],
                memory["version"],
            )
            for version in versions:
                db.run("DELETE FROM items WHERE id = ?", version["id"])
                db.run(
                    "UPDATE items SET latest = 0 WHERE document = ? AND line = ? AND kind = 'chunk'",
                    version["document"],
                    version["line"],
                )
            _settle(db, memory["namespace"], {memory["about"]})
    db.wipe()


def delete_namespace(db: Database, namespace: int) -> tuple[int, int]:
    """Deletes all there is of one namespace; returns how many documents and memories that was."""
    with db.writing():
        documents = db.number("SELECT count(*) FROM documents WHERE namespace = ?", namespace)
        memories = db.number("SELECT count(*) FROM items WHERE namespace = ? AND kind = 'memory'", namespace)
        db.run("DELETE FROM namespaces WHERE id = ?", namespace)
    db.wipe()
    return documents, memories


def _store(db: Database, old: Row, draft: Draft, content: str, metadata: dict[str, Any]) -> Row:
    learn = bool(old["learn"]) if draft.learn is None else draft.learn
    db.run(
        "UPDATE documents SET content = ?, metadata = ?, date = ?, learn = ?, status = ?, updated = ?"
        " WHERE id = ?",
        content,
        json.dumps(metadata, ensure_ascii=False),
        draft.date or old["date"],
        learn,
        "failed" if draft.failed else "done",
        stamp(now()),
        old["id"],
    )
    row = db.row("SELECT * FROM documents WHERE id = ?", old["id"])
    assert row is not None
    if not draft.failed and old["status"] == "failed":
        _process(db, row)
    elif not draft.failed and content != old["content"]:
        _process(db, row, old["content"])
    return row


def _process(db: Database, document: Row, before: str = "") -> None:
    """Reads the lines that are new or changed, and drops what the gone and changed ones had taught.

    `before` is content that was read already; it saves looking at it again when a call goes on.
    """
    single = json.loads(document["metadata"]).get("kind") == REMEMBERED
    content: str = document["content"]
    added = content[len(before) :] if content.startswith(before) else ""
    goes_on = not single and lines.numbered(before) and lines.numbered(added)
    wanted = lines.whole(content) if single else lines.parse(added if goes_on else content)
    read: dict[int, list[str]] = {}
    for row in db.rows(
        "SELECT line, text FROM items WHERE document = ? AND kind = 'chunk' ORDER BY line, part",
        document["id"],
    ):
        read.setdefault(row["line"], []).append(row["text"])
    touched: set[str] = set()
    for number, passages in read.items():
        if goes_on or (number in wanted and list(wanted[number].passages()) == passages):
            continue
        touched |= _topics(db, "document = ? AND line = ?", document["id"], number)
        db.run("DELETE FROM items WHERE document = ? AND line = ?", document["id"], number)
        read[number] = []
    for number, line in wanted.items():
        if not read.get(number):
            touched |= _read(db, document, line, single)
    _settle(db, document["namespace"], touched)


def _read(db: Database, document: Row, line: Line, single: bool) -> set[str]:
    """One line as passages and memories; returns the topics of the memories."""
    when = line.when or lines.moment(document["date"] or "") or now()
    for part, passage in enumerate(line.passages()):
        _item(db, document, line, part, "chunk", passage, stamp(when), passage.removeprefix(line.prefix))
    if line.by_caller and not single and off_the_record(line.said):
        # Its model should not have sent it: the text stays where it is, and no search finds it.
        db.run(
            "UPDATE items SET latest = 0 WHERE document = ? AND line = ? AND kind = 'chunk'",
            document["id"],
            line.number,
        )
        return set()
    if not document["learn"] or not line.by_caller:
        return set()
    found: list[Statement] = [remembered(line.said, when)] if single else statements(line.said, when)
    topics: set[str] = set()
    for part, fact in enumerate(found):
        item = _item(db, document, line, part, "memory", fact.text, stamp(when), searchable(fact.text))
        db.run(
            "UPDATE items SET static = ?, about = ?, value = ?, denied = ? WHERE id = ?",
            single,
            fact.topic.about,
            fact.topic.value,
            fact.topic.denied,
            item,
        )
        topics.add(fact.topic.about)
    return topics


def _item(
    db: Database, document: Row, line: Line, part: int, kind: str, text: str, said: str, words: str
) -> int:
    item = db.run(
        "INSERT INTO items (key, namespace, document, kind, line, part, text, said)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        fresh_key(),
        document["namespace"],
        document["id"],
        kind,
        line.number,
        part,
        text,
        said,
    )
    db.run(
        "INSERT INTO words (rowid, scope, text) VALUES (?, ?, ?)", item, f"n{document['namespace']}", words
    )
    return item


def _topics(db: Database, where: str, *values: object) -> set[str]:
    rows = db.rows(f"SELECT DISTINCT about FROM items WHERE kind = 'memory' AND {where}", *values)
    return {row["about"] for row in rows}


def _settle(db: Database, namespace: int, topics: Iterable[str]) -> None:
    """Decides in each topic which memories hold now: the later statement counts, not the later arrival."""
    for about in topics:
        rows = db.rows(
            "SELECT id, value, denied, latest, version FROM items"
            " WHERE namespace = ? AND kind = 'memory' AND about = ? ORDER BY said, id",
            namespace,
            about,
        )
        known = [Topic(about, row["value"], bool(row["denied"])) for row in rows]
        for place, row in enumerate(rows):
            latest = not any(newer.replaces(known[place]) for newer in known[place + 1 :])
            if (latest, place + 1) != (bool(row["latest"]), row["version"]):
                db.run("UPDATE items SET latest = ?, version = ? WHERE id = ?", latest, place + 1, row["id"])
