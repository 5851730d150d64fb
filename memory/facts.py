"""What is known of a caller, read out of the service's answers.

The SDK's models are unchecked: any field can be missing or null. A function here may fail with whatever
such an answer provokes; `store.py` calls them under its guard.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from .errors import MemoryStoreError

Source = Literal["profile", "search", "remembered"]

REMEMBERED, TRANSCRIPT = "remembered", "transcript"
DOCUMENT_FACT = "doc:"
"""Starts the id of a fact that is a document made by `remember`."""

AGGREGATED = "aggregated_"
"""Starts the id of a synthesis, which the service does not forget by its id."""


@dataclass(frozen=True)
class Fact:
    """One thing known about a caller."""

    id: str
    """Opaque; empty for a fact that cannot be forgotten alone, such as a passage of a transcript."""
    text: str
    when: datetime | None
    """When it was learned, aware and in UTC; None where the service does not say."""
    source: Source
    inferred: bool
    """Concluded by the service rather than said by the caller."""


@dataclass(frozen=True)
class Hit:
    """One search hit, before anybody decided what to show of it."""

    fact: Fact
    similarity: float
    document_id: str
    """The document it comes from, empty when the service did not say."""
    chunk: bool
    """A passage of a document instead of a memory."""
    kind: str
    """What we called that document, `remembered` or `transcript`; empty for somebody else's."""


def same(text: str) -> str:
    """What two spellings of one fact share: letters and digits, without case and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def make_fact(fact_id: str, text: str, when: datetime | None, source: Source, inferred: bool | None) -> Fact:
    return Fact(_usable(fact_id), " ".join(text.split()), when, source, bool(inferred))


def _usable(fact_id: str | None) -> str:
    """A synthesis has an id that the service does not forget by: it counts as having none."""
    return "" if not fact_id or fact_id.startswith(AGGREGATED) else fact_id


@dataclass(frozen=True)
class Detail:
    """What one fact consists of."""

    fact: Fact
    memories: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    """Made by `remember`, for this fact alone."""
    transcripts: tuple[str, ...] = ()
    """It was said in these, among other things."""


def known_memory(item: Any) -> Fact | None:
    if not item.memory or item.is_latest is False or item.is_forgotten:
        return None
    return make_fact(
        item.id, item.memory, _when(item), "remembered" if item.is_static else "profile", item.is_inference
    )


def remembered_document(item: Any) -> Fact | None:
    """A fact that is promised and not read yet; of one that is read, the memories say what still holds."""
    read = (
        item.system is not None
        and item.system.status == "done"
        and item.system.dreaming_status in (None, "done")
    )
    if _kind(item) != REMEMBERED or not item.content or read:
        return None
    return make_fact(DOCUMENT_FACT + item.id, item.content, _when(item), "remembered", False)


def exported_document(item: Any) -> dict[str, Any]:
    return {"id": item.id, "content": item.content, "metadata": item.metadata, "when": iso(_when(item))}


def deleted_counts(answer: Any) -> dict[str, int]:
    return {
        "documents": int(getattr(answer, "deleted_documents_count", 0) or 0),
        "memories": int(getattr(answer, "deleted_memories_count", 0) or 0),
    }


def still_there(answer: Any) -> set[str]:
    """The ids that are still there; one that was gone before is not."""
    return {e.id for e in answer.errors or [] if "not found" not in e.error.lower()}


def profile_facts(answer: Any) -> list[Fact]:
    profile = answer.profile
    items = [*(profile.static or []), *(profile.dynamic or [])] if profile else []
    return [make_fact(item.id, item.memory, None, "profile", False) for item in items if item.memory]


def new_document_id() -> str:
    """For the document of one remembered fact."""
    return f"lk-fact-{uuid.uuid4().hex}"


def hits_of(answer: Any) -> list[Hit]:
    hits = []
    for item in answer.results or []:
        text = item.memory or item.chunk
        if not text or not isinstance(text, str) or item.is_latest is False:
            continue
        chunk = not item.memory
        fact = Fact("" if chunk else _usable(item.id), text, _when(item), "search", bool(item.is_inference))
        document = getattr(item.included, "document", None)
        kind = str(_kind(document) or "") if document is not None else ""
        document_id = getattr(document, "id", None) or ""
        hits.append(Hit(fact, float(item.similarity or 0.0), document_id, chunk, kind))
    return hits


def matches(answer: Any) -> list[Fact]:
    return [
        make_fact(item.id, item.memory, None, "search", False)
        for item in answer.matches or []
        if item.memory and _usable(item.id)
    ]


def remembered_chunks(answer: Any) -> list[Fact]:
    found = []
    for item in answer.results or []:
        document = getattr(item.included, "document", None)
        if document is not None and item.chunk and _kind(document) == REMEMBERED:
            found.append(make_fact(DOCUMENT_FACT + document.id, item.chunk, _when(item), "remembered", False))
    return found


def check_accepted(answer: Any) -> None:
    """`failed` can come with HTTP 200."""
    if answer.status == "failed":
        raise MemoryStoreError(
            "Supermemory took the text and failed to process it.", cause="server", status=200
        )


def content_of(answer: Any) -> tuple[str, dict[str, Any]]:
    return answer.content or "", dict(answer.metadata or {})


def transcript_of(answer: Any) -> tuple[str, list[str]]:
    """The text of a document, and what was learned from it."""
    return answer.content or "", [item.memory for item in answer.memories or [] if item.memory]


def document_detail(answer: Any) -> Detail:
    fact = make_fact(DOCUMENT_FACT + answer.id, answer.content or "", _when(answer), "remembered", False)
    return Detail(fact, tuple(item.id for item in answer.memories or []), (answer.id,))


def memory_detail(answer: Any) -> Detail:
    source = getattr(answer.included, "document", None)
    kind, place = (_kind(source), (source.id,)) if source is not None else (None, ())
    fact = make_fact(answer.id, answer.memory or "", _when(answer), "profile", answer.is_inference)
    return Detail(
        fact,
        memories=(answer.id,),
        documents=place if kind == REMEMBERED else (),
        transcripts=place if kind == TRANSCRIPT else (),
    )


def _kind(item: Any) -> object:
    return (item.metadata or {}).get("kind")


def _when(item: Any) -> datetime | None:
    system = getattr(item, "system", None)
    value = getattr(system, "updated_at", None) or getattr(system, "created_at", None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def seconds(when: datetime | None) -> float:
    return when.timestamp() if when else 0.0


def iso(when: datetime | None) -> str | None:
    return when.isoformat() if when else None
