"""The memory service as the rest of this module sees it.

The only place, with `embedded/`, that knows the Supermemory SDK: its models become `Fact`s here, every
call has a deadline, and every way to fail becomes a `MemoryStoreError` that says what to do. The SDK's
own texts never leave: they can hold what the caller said.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from supermemory import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncSupermemory,
)

from . import identity
from .errors import Cause, MemoryConfigurationError, MemoryStoreError
from .facts import (
    AGGREGATED,
    DOCUMENT_FACT,
    REMEMBERED,
    TRANSCRIPT,
    Detail,
    Fact,
    Hit,
    check_accepted,
    content_of,
    deleted_counts,
    document_detail,
    exported_document,
    hits_of,
    iso,
    known_memory,
    make_fact,
    matches,
    memory_detail,
    new_document_id,
    profile_facts,
    remembered_chunks,
    remembered_document,
    same,
    seconds,
    still_there,
    transcript_of,
)
from .forgetting import rewritten
from .transcript import parse, render

T = TypeVar("T")
DEFAULT_TIMEOUT = 15.0
_PAGE = 100

SUPPORTING_CONTEXT = (
    "Transcript of a call between one caller and a voice agent. Each line is [number] time speaker: words. "
    "Only what 'Caller' states about themselves is a fact about the caller. What 'Agent' says is not, nor is "
    "anything about other people, a question, a guess or a request made during the call. A newer statement "
    "replaces an older one about the same thing."
)


def make_client(api_key: str | None = None, base_url: str | None = None) -> AsyncSupermemory:
    """A client that talks to one host only: redirects are not followed, nothing is retried behind our back.

    `api_key` and `base_url` fall back to SUPERMEMORY_API_KEY and SUPERMEMORY_BASE_URL. Raises
    `MemoryConfigurationError` for a key or an address that cannot work. The caller closes the client.
    """
    key = _setting("SUPERMEMORY_API_KEY", api_key)
    if key is None:
        raise MemoryConfigurationError(
            "No Supermemory key: pass api_key=..., set SUPERMEMORY_API_KEY, or pass client=... "
            "(for instance memory.embedded.client(path), which needs none)."
        )
    url = _setting("SUPERMEMORY_BASE_URL", base_url)
    try:
        parts = urlsplit(url) if url else None
        usable = parts is None or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        usable = False
    if not usable:
        raise MemoryConfigurationError(
            f"SUPERMEMORY_BASE_URL={url!r} is not an address like https://host or http://127.0.0.1:6767."
        )
    http = httpx.AsyncClient(
        verify=False if parts and parts.scheme == "http" else _tls(),
        follow_redirects=False,
        timeout=httpx.Timeout(DEFAULT_TIMEOUT, connect=5.0),
    )
    # The SDK leaves a client that it was given open; ours must close with it.
    return _OwningClient(
        api_key=key, base_url=url.rstrip("/") if url else None, max_retries=0, http_client=http
    )


class _OwningClient(AsyncSupermemory):
    def __init__(self, *, http_client: httpx.AsyncClient, **kwargs: Any) -> None:
        super().__init__(http_client=http_client, **kwargs)
        self._owned = http_client

    async def close(self) -> None:
        await self._owned.aclose()


class MemoryStore:
    """One person's memory, outside a call or in it.

    `facts`, `export`, `erase` and `forget` are for commands, pages and servers; the rest is what recall
    and capture use. Every method raises `MemoryStoreError` when the service fails or takes too long, and
    `MemoryConfigurationError` for a container tag that could reach another person's memory. The client
    stays the property of whoever made it.
    """

    def __init__(self, client: AsyncSupermemory) -> None:
        if not isinstance(client, AsyncSupermemory):
            raise MemoryConfigurationError(
                f"client is a {type(client).__name__}, which would stop the call for each request: pass an "
                "AsyncSupermemory."
            )
        self._client = client.with_options(max_retries=0)
        # The SDK imports each of these on first use, 50 ms that would fall into the conversation.
        _ = client.documents, client.memories, client.namespaces
        # What a forget that failed half-way left to do, by tag and fact.
        self._unfinished: dict[tuple[str, str], Detail] = {}

    async def facts(self, tag: str) -> list[Fact]:
        """All that is known of one person, newest first; what they asked to remember comes first."""
        known, documents = await asyncio.gather(
            self._pages(tag, "memories", known_memory),
            self._pages(tag, "documents", remembered_document, include={"content": True}),
        )
        texts = {same(fact.text) for fact in known}
        # A remembered document that the service has not processed yet is a promise already made.
        known += [fact for fact in documents if same(fact.text) not in texts]
        return sorted(known, key=lambda fact: (fact.source != "remembered", -seconds(fact.when)))

    async def export(self, tag: str) -> dict[str, Any]:
        """All that is stored of one person, ready for `json.dump`: facts, and documents with their text."""
        facts, documents = await asyncio.gather(
            self.facts(tag), self._pages(tag, "documents", exported_document, include={"content": True})
        )
        return {
            "container_tag": tag,
            "facts": [{**asdict(fact), "when": iso(fact.when)} for fact in facts],
            "documents": documents,
        }

    async def erase(self, tag: str) -> dict[str, int]:
        """Deletes one person's whole memory; returns how many documents and memories went."""
        try:
            return await self._ask(tag, self._client.namespaces.delete(tag), deleted_counts, within=60.0)
        except MemoryStoreError as error:
            if error.status == 404:
                return {"documents": 0, "memories": 0}
            raise

    async def forget(self, tag: str, ids: Sequence[str], *, except_document: str = "") -> list[Fact]:
        """Forgets exactly these facts; returns what is gone.

        The remembered documents they came from are deleted, and what tells them is taken out of the
        transcripts they came from, else a search would find it there; `except_document` is left to the
        caller of this method, who is writing it. Raises `MemoryStoreError` with `.forgotten` when only a
        part went. An id that is gone already counts as gone.
        """
        wanted = list(dict.fromkeys(ids))
        for fact_id in wanted:
            if not fact_id or fact_id.startswith(AGGREGATED):
                raise MemoryConfigurationError(f"The fact id {fact_id!r} cannot be forgotten by itself.")
        details = await asyncio.gather(*(self._detail(tag, fact_id) for fact_id in wanted))
        for fact_id, detail in zip(wanted, details, strict=True):
            self._unfinished[tag, fact_id] = detail
        failure: MemoryStoreError | None = None
        failed: set[str] = set()
        memories = sorted({memory for detail in details for memory in detail.memories})
        documents = sorted({document for detail in details for document in detail.documents})
        for targets, request in (
            (memories, self._client.memories.forget),
            (documents, self._client.documents.delete),
        ):
            if targets and failure is None:
                try:
                    failed |= await self._ask(tag, request(tag, ids=targets), still_there)
                except MemoryStoreError as error:
                    failure = error
            if failure is not None:
                failed.update(targets)
        gone = []
        for fact_id, detail in zip(wanted, details, strict=True):
            try:
                if failed & {*detail.memories, *detail.documents}:
                    continue
                for transcript in detail.transcripts:
                    if transcript != except_document:
                        await self.take_out(tag, transcript, [detail.fact.text])
            except MemoryStoreError as error:
                failure = error
                continue
            self._unfinished.pop((tag, fact_id), None)
            gone.append(detail.fact)
        if len(gone) < len(wanted):
            raise MemoryStoreError(
                f"{len(wanted) - len(gone)} of {len(wanted)} facts could not be forgotten.",
                cause=failure.cause if failure else "conflict",
                status=failure.status if failure else None,
                forgotten=gone,
            )
        return gone

    async def profile(self, tag: str, *, within: float = DEFAULT_TIMEOUT) -> list[Fact]:
        """What is known of the caller without a question: lasting facts first, then recent ones."""
        return await self._ask(tag, self._client.profile(tag), profile_facts, within=within)

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, within: float = DEFAULT_TIMEOUT
    ) -> list[Hit]:
        """Memories and passages that match `query`, best first. Versions that were replaced are left out."""
        request = self._client.search(
            tag,
            query=query,
            limit=limit,
            threshold=threshold,
            search_mode="hybrid",
            include={"documents": True},
        )
        return await self._ask(tag, request, hits_of, within=within)

    async def matching(self, tag: str, query: str) -> list[Fact]:
        """The memories that `query` would make the service forget, and remembered documents that match."""
        chunks = self._client.search(
            tag, query=query, limit=20, threshold=0.5, search_mode="chunks", include={"documents": True}
        )
        found, remembered = await asyncio.gather(
            self._ask(tag, self._client.memories.forget_matching(tag, query=query, dry_run=True), matches),
            self._ask(tag, chunks, remembered_chunks),
        )
        texts = {same(fact.text) for fact in found}
        return found + [fact for fact in remembered if same(fact.text) not in texts]

    async def remember(
        self, tag: str, text: str, metadata: Mapping[str, str], document_id: str = "", *, again: bool = False
    ) -> Fact:
        """Stores one fact as a document of its own; the id is ours, so that a lost answer can be checked.

        `again` looks first whether an earlier attempt with this id was carried out after all.
        """
        document_id = document_id or new_document_id()
        made = make_fact(DOCUMENT_FACT + document_id, text, datetime.now(UTC), "remembered", False)
        if again and await self.document(tag, document_id) is not None:
            return made
        request = self._client.add(
            tag,
            id=document_id,
            content=text,
            metadata={"kind": REMEMBERED, **metadata},
            date=iso(datetime.now(UTC)),
        )
        try:
            await self._ask(tag, request, check_accepted)
        except MemoryStoreError as error:
            if not error.ambiguous or await self.document(tag, document_id) is None:
                raise
        return made

    async def append(self, tag: str, document_id: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Adds `content` to a document, which is made when it is not there."""
        request = self._client.add(
            tag,
            id=document_id,
            content=content,
            metadata={"kind": TRANSCRIPT, **metadata},
            date=iso(datetime.now(UTC)),
            supporting_context=SUPPORTING_CONTEXT,
        )
        await self._ask(tag, request, check_accepted)

    async def document(self, tag: str, document_id: str) -> tuple[str, dict[str, Any]] | None:
        """Text and metadata of a document, or None when there is none."""
        try:
            return await self._ask(tag, self._client.documents.get(tag, _checked(document_id)), content_of)
        except MemoryStoreError as error:
            if error.status == 404:
                return None
            raise

    async def replace(self, tag: str, document_id: str, content: str) -> None:
        """Replaces the text of a document, which the service then reads anew."""
        update = self._client.documents.update(tag, _checked(document_id), content=content)
        await self._ask(tag, update, check_accepted)

    async def take_out(self, tag: str, document_id: str, facts: Sequence[str]) -> None:
        """Rewrites a transcript without what tells one of these facts; what else it taught stays."""
        try:
            asked = self._client.documents.get(tag, _checked(document_id), include=["memories"])
            text, learned = await self._ask(tag, asked, transcript_of)
        except MemoryStoreError as error:
            if error.status == 404:
                return
            raise
        gone = {same(fact) for fact in facts}
        lines = parse(text)
        left = rewritten(lines, facts, [fact for fact in learned if same(fact) not in gone])
        if left != lines:
            await self.replace(tag, document_id, render(left))

    async def delete_documents(self, tag: str, ids: Iterable[str]) -> None:
        """Deletes documents by their own ids, with what was learned from them."""
        wanted = [_checked(document_id) for document_id in ids]
        if wanted:
            await self._ask(tag, self._client.documents.delete(tag, ids=wanted), still_there)

    async def _detail(self, tag: str, fact_id: str) -> Detail:
        """What one fact consists of: forgetting the memory alone would let its document teach it again."""
        try:
            if fact_id.startswith(DOCUMENT_FACT):
                document_id = _checked(fact_id.removeprefix(DOCUMENT_FACT))
                document = self._client.documents.get(tag, document_id, include=["memories"])
                return await self._ask(tag, document, document_detail)
            memory = self._client.memories.get(tag, _checked(fact_id), include=["documents"])
            return await self._ask(tag, memory, memory_detail)
        except MemoryStoreError as error:
            if error.status != 404:
                raise
            gone = Detail(make_fact(fact_id, "", None, "profile", False))
            return self._unfinished.get((tag, fact_id), gone)

    async def _pages(
        self, tag: str, kind: Any, read: Callable[[Any], T | None], include: Any = None
    ) -> list[T]:
        """All items of one kind; `read` returns None for one to leave out."""
        items: list[T] = []
        extra = {"include": include} if include else {}
        page, seen = 1, set[str]()
        while True:
            request = self._client.list(tag, kind, page=page, limit=_PAGE, **extra)
            try:
                found = await self._ask(
                    tag,
                    request,
                    lambda answer: [(item.id, read(item)) for item in getattr(answer, kind) or []],
                )
            except MemoryStoreError as error:
                if error.status == 404:  # nobody has stored anything under this tag yet
                    return items
                raise
            fresh = [(item_id, item) for item_id, item in found if item_id not in seen]
            items += [item for _, item in fresh if item is not None]
            # A server that ignores the page number would otherwise be asked for ever.
            if len(found) < _PAGE or not fresh:
                return items
            seen.update(item_id for item_id, _ in fresh)
            page += 1

    async def _ask(
        self, tag: str, request: Awaitable[Any], read: Callable[[Any], T], within: float = DEFAULT_TIMEOUT
    ) -> T:
        """Awaits one SDK call under a deadline (httpx's own is per read: a slow trickle outlives it), and
        reads the answer under the same guard, since the SDK's models are unchecked."""
        try:
            if not identity.is_container_tag(tag):
                raise MemoryConfigurationError(
                    f"The container tag {tag!r} is not 1 to {identity.MAX_TAG_LENGTH} letters, digits "
                    "or _ : -. Make it with memory.container_tag_for(identity)."
                )
            async with asyncio.timeout(within):
                return read(await request)
        except (MemoryConfigurationError, MemoryStoreError):
            if asyncio.iscoroutine(request):
                request.close()
            raise
        except Exception as error:
            raise _mapped(error) from None


_ADVICE: dict[Cause, str] = {
    "unauthorized": "Supermemory refused the key. Check SUPERMEMORY_API_KEY and the address it is sent to.",
    "payment": "The Supermemory account has no balance left for this. Top it up or lower the usage.",
    "forbidden": "The Supermemory key may not use this container tag. Check what the key is scoped to.",
    "not_found": "Supermemory does not know this path. Upgrade a self-hosted server older than SDK 5.",
    "conflict": "Supermemory was busy with the same memory.",
    "invalid": "Supermemory refused the request as invalid.",
    "rate_limited": "Supermemory limits the rate of requests. Slow down or raise the account's limit.",
    "redirected": "The memory address redirects. Set SUPERMEMORY_BASE_URL to the final address.",
    "server": "Supermemory has a problem of its own.",
    "timeout": "Supermemory did not answer in time.",
    "network": "Supermemory could not be reached. Check the network and SUPERMEMORY_BASE_URL.",
    "malformed": "The answer is not one of Supermemory's. Check SUPERMEMORY_BASE_URL.",
    "client": "The Supermemory client is closed or belongs to another event loop.",
}
_STATUS: dict[int, Cause] = {
    400: "invalid",
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "invalid",
    422: "invalid",
    429: "rate_limited",
}


def _mapped(error: Exception) -> MemoryStoreError:
    status: int | None = None
    retry_after: float | None = None
    cause: Cause
    if isinstance(error, TimeoutError | APITimeoutError | httpx.TimeoutException):
        cause = "timeout"
    elif isinstance(error, APIConnectionError | httpx.TransportError | OSError):
        cause = "network"
    elif isinstance(error, APIStatusError):
        status = error.status_code
        cause = _STATUS.get(status) or (
            "server"
            if status >= 500
            else "redirected"
            if 300 <= status < 400
            else "malformed"
            if status < 300
            else "invalid"
        )
        retry_after = _retry_after(error.headers or {})
    elif isinstance(error, RuntimeError | UnicodeEncodeError):
        cause = "client"
    else:  # whatever an answer that is not the service's provokes in the SDK
        cause = "malformed"
    # The embedded store's own sentences name its file and the way out, and hold no words of anybody.
    own = str(error) if getattr(error, "fit_to_show", False) else ""
    text = own or _ADVICE[cause] + (f" (HTTP {status})" if status else "")
    return MemoryStoreError(text, cause=cause, status=status, retry_after=retry_after)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = {name.lower(): text for name, text in headers.items()}.get("retry-after", "")
    return float(value) if value.isdigit() else None


def _setting(name: str, given: str | None) -> str | None:
    value = (given if given is not None else os.environ.get(name, "")).strip()
    if not value:
        return None
    if not value.isascii() or not value.isprintable() or any(mark in value for mark in " \"'"):
        raise MemoryConfigurationError(
            f"{name} holds a quote, a blank or a character that cannot be sent. Copy it again without them."
        )
    return value


@functools.cache
def _tls() -> ssl.SSLContext:
    # 150 ms of reading certificates: once per process, not once per call.
    return httpx.create_ssl_context()


def _checked(identifier: str) -> str:
    if not identity.is_container_tag(identifier):
        raise MemoryConfigurationError(f"The id {identifier!r} holds characters that do not belong in an id.")
    return identifier
