"""What one person's memory holds, for the page: to read, to take along and to forget."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aiohttp import web

from memory.errors import MemoryConfigurationError, MemoryStoreError
from memory.facts import Fact
from memory.identity import is_container_tag
from memory.store import MemoryStore
from server.callers import caller_of
from server.errors import ApiError
from server.guard import json_object

logger = logging.getLogger(__name__)

STORE = web.AppKey("store", MemoryStore)
STORE_NAME = web.AppKey("store_name", str)


async def show(request: web.Request) -> web.Response:
    """`GET /api/memories`: what is known of this person, and which store knows it."""
    caller = await caller_of(request)
    with _failures():
        facts = await request.app[STORE].facts(caller.container_tag)
    return web.json_response({"facts": _as_json(facts), "store": request.app[STORE_NAME]})


async def forget_one(request: web.Request) -> web.Response:
    """`DELETE /api/memories/{id}`: forgets one fact; the same again answers the same."""
    caller = await caller_of(request)
    fact_id = request.match_info["id"]
    if not is_container_tag(fact_id):
        raise ApiError(400, "bad_id", "That is not the id of a memory. Use one that GET /api/memories gave.")
    with _failures(writing=True):
        gone = await request.app[STORE].forget(caller.container_tag, [fact_id])
    return web.json_response({"forgotten": _as_json(gone)})


async def forget_all(request: web.Request) -> web.Response:
    """`DELETE /api/memories` with `{"confirm": true}`: erases this person's whole memory."""
    caller = await caller_of(request)
    body = await json_object(request) if request.can_read_body else {}
    if body.get("confirm") is not True:
        raise ApiError(
            400, "not_confirmed", 'This erases everything and cannot be undone. Send {"confirm": true}.'
        )
    with _failures(writing=True):
        removed = await request.app[STORE].erase(caller.container_tag)
    return web.json_response({"removed": removed})


async def export(request: web.Request) -> web.Response:
    """`GET /api/memories/export`: everything that is stored of this person, as a file."""
    caller = await caller_of(request)
    with _failures():
        everything = await request.app[STORE].export(caller.container_tag)
    return web.Response(
        text=json.dumps(everything, ensure_ascii=False, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="memories.json"'},
    )


def _as_json(facts: Sequence[Fact]) -> list[dict[str, object]]:
    return [
        {
            "id": fact.id,
            "text": fact.text,
            "when": fact.when.isoformat() if fact.when else None,
            "source": fact.source,
            "inferred": fact.inferred,
        }
        for fact in facts
    ]


@contextmanager
def _failures(*, writing: bool = False) -> Iterator[None]:
    """The memory's failures as answers: 503 for what the operator or time mends, 502 for a broken store."""
    try:
        yield
    except MemoryConfigurationError:
        # What the service concluded from several memories has no id of its own to be forgotten by.
        raise ApiError(400, "not_possible", "That cannot be forgotten by itself.") from None
    except MemoryStoreError as error:
        logger.warning("the memory failed", extra={"cause": error.cause, "memory_status": error.status})
        details = {"forgotten": _as_json(error.forgotten)} if error.forgotten else {}
        if error.cause in ("unauthorized", "payment", "forbidden", "redirected", "client"):
            status, text = 503, "The memory is not available: its operator has to look at the settings."
        elif error.cause in ("rate_limited", "conflict"):
            status, text = 503, "The memory is busy. Try again in a moment."
        elif error.ambiguous and writing:
            status, text = 502, "The memory did not confirm that. Look whether it is done, then try again."
        elif error.ambiguous:
            status, text = 502, "The memory did not answer. Try again in a moment."
        else:
            status, text = 502, "The memory could not do that."
        if error.forgotten:
            text = "Only a part was forgotten. Try the rest again."
        raise ApiError(
            status, f"memory_{error.cause}", text, retry_after=error.retry_after, details=details
        ) from None
