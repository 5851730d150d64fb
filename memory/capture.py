"""The write path: what was said in a call becomes one document, in order, without delaying a reply.

Handlers only append to a bounded queue. One worker sends batches of whole lines, one at a time, and is
the only writer of the document.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import uuid
from bisect import insort
from collections.abc import Sequence
from dataclasses import replace

from .errors import MemoryStoreError
from .forgetting import REPLACEMENT, rewritten, told
from .store import MemoryStore
from .telemetry import Summary
from .transcript import Line, parse, render

logger = logging.getLogger("memory")

MAX_UNSENT_LINES = 5_000
"""Lines waiting to be stored; hours of talk with the service away. Past it the oldest are given up."""

MAX_BATCH_CHARACTERS = 50_000

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

# Asking about a thing, or asking to forget it, tells nothing to forget.
_NO_STATEMENT = re.compile(r"\?\s*$|\bforget\b|" + re.escape(REPLACEMENT), re.IGNORECASE)


class Capture:
    """The transcript of one call on its way to the store."""

    def __init__(
        self,
        store: MemoryStore,
        summary: Summary,
        *,
        tag: str,
        document_id: str,
        session_id: str,
        interval: float,
    ) -> None:
        self._store, self._summary = store, summary
        self._tag, self._document_id = tag, document_id
        self._interval = interval
        # A lost answer is looked up by number; the writer tells our numbers from those of a call
        # that used the same session id before us.
        self._metadata = {"session_id": session_id, "writer": uuid.uuid4().hex[:12]}
        self._unsent: list[Line] = []
        self._sending: list[Line] = []
        self._forgotten: dict[str, None] = {}
        # One writer at a time: a rewrite of the document must not undo an append.
        self._writing = asyncio.Lock()
        self._last_number: int | None = None
        self._stored: list[Line] = []
        self._news = asyncio.Event()
        self._closing = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def add(self, line: Line) -> None:
        """Queues one line; those that are not sent yet are kept in the order of their times."""
        if line.speaker == "Agent" and self._forgotten:
            [line] = rewritten([line], list(self._forgotten))
        insort(self._unsent, line, key=lambda other: other.when)
        if len(self._unsent) > MAX_UNSENT_LINES:
            del self._unsent[0]
            self._lose(1)
        self._news.set()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="memory capture")

    def telling(self, query: str) -> list[str]:
        """What the caller said in this call that a search for `query` could find later."""
        said = [
            line.text for line in [*self._stored, *self._sending, *self._unsent] if line.speaker == "Caller"
        ]
        return [text for text in said if told(text, query) >= 0.5 and not _NO_STATEMENT.search(text)]

    async def forget(self, facts: Sequence[str], keep: Sequence[str]) -> None:
        """Takes what tells these facts out of this call, stored or not. Raises `MemoryStoreError`.

        `keep` are other facts, whose words stay. From here on the agent's lines are stored without the
        facts too, since it reads back what was forgotten; the caller may tell them again.
        """
        self._forgotten.update(dict.fromkeys(facts))
        self._unsent = rewritten(self._unsent, facts, keep)
        self._sending = rewritten(self._sending, facts, keep)
        self._stored = rewritten(self._stored, facts, keep)
        if facts:
            async with self._writing:
                await self._store.take_out(self._tag, self._document_id, facts)

    async def erase(self, facts: Sequence[str]) -> dict[str, int]:
        """Deletes the caller's whole memory, and what this call has not stored yet; `facts` are known ones.

        Returns how many documents and memories went. Raises `MemoryStoreError`.
        """
        self._forgotten.update(dict.fromkeys(facts))
        self._unsent, self._sending = [], []
        async with self._writing:  # after a batch that is on its way
            removed = await self._store.erase(self._tag)
            self._stored = []
            return removed

    def drop_current_turn(self, *, answering: bool) -> None:
        """Takes back the caller's lines that the agent has not answered yet.

        `answering` says that it has begun to: what it has said so far goes too, since it may repeat them.
        """
        while answering and self._unsent and self._unsent[-1].speaker == "Agent":
            self._unsent.pop()
        while self._unsent and self._unsent[-1].speaker == "Caller":
            self._unsent.pop()

    def drop_unsent(self) -> None:
        """Takes back all that is not stored yet."""
        self._unsent.clear()

    async def flush(self, within: float) -> None:
        """Sends what is left, for at most `within` seconds, and ends the worker. Never raises."""
        self._closing.set()
        self._news.set()
        if self._worker is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await asyncio.shield(self._worker)
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        left = len(self._sending) + len(self._unsent)
        if left:
            self._lose(left)
            self._sending, self._unsent = [], []

    async def take_back(self) -> None:
        """Removes from the store what this call put there. Raises `MemoryStoreError`."""
        self._unsent.clear()
        if not self._stored:
            return
        ours = {str(line) for line in self._stored}
        found = await self._store.document(self._tag, self._document_id)
        kept = [line for line in parse(found[0]) if str(line) not in ours] if found else []
        if kept:
            await self._store.replace(self._tag, self._document_id, render(kept))
        else:
            await self._store.delete_documents(self._tag, [self._document_id])
        self._stored.clear()

    async def _work(self) -> None:
        while not self._closing.is_set() or self._unsent:
            if not self._closing.is_set():
                await self._news.wait()
                self._news.clear()
                await self._pause(self._interval)
            self._sending, more = self._next_batch()
            if more:
                self._news.set()
            if self._sending:
                try:
                    await self._send()
                except Exception as error:  # one batch that cannot be sent must not end the rest of the call
                    logger.error("memory could not send a batch", extra={"error": type(error).__name__})
                    self._lose(len(self._sending))
                self._sending = []

    async def _pause(self, seconds: float) -> None:
        """Waits; the end of the call cuts it short."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    def _next_batch(self) -> tuple[list[Line], bool]:
        """The oldest lines, and whether more can be sent at once.

        Leaves out what the caller said last while it is not answered: `pause` must be able to drop it.
        """
        end = len(self._unsent)
        if end and not self._closing.is_set() and self._unsent[-1].speaker == "Caller":
            end -= 1
        fits, size = 0, 0
        for line in self._unsent[:end]:
            size += len(line.text)
            if fits and size > MAX_BATCH_CHARACTERS:
                break
            fits += 1
        batch, self._unsent[:fits] = self._unsent[:fits], []
        return batch, fits < end

    async def _send(self) -> None:
        """Stores one batch, however long the service is away; gives up only what it will never take."""
        pause, sent = _FIRST_PAUSE, False
        while True:
            last_try = self._closing.is_set()
            try:
                if self._last_number is None:
                    self._last_number = await self._count_stored()
                async with self._writing:
                    if not self._sending:  # erased while it waited
                        return
                    # Numbered at each attempt: something may have been forgotten since the last one.
                    first = self._last_number + 1
                    numbered = [
                        replace(line, number=first + index) for index, line in enumerate(self._sending)
                    ]
                    if not (sent and await self._is_stored(numbered)):
                        sent = True
                        await self._append(numbered)
                self._last_number = numbered[-1].number
                self._stored += numbered
                self._summary.lines_stored += len(numbered)
                return
            except MemoryStoreError as error:
                self._summary.failed("store", error)
                if error.cause == "invalid" or (last_try and not error.retryable):
                    self._lose(len(self._sending))
                    return
                sent = sent and error.ambiguous
                # A wrong key or an empty account is mended by people, who take longer than a busy service.
                wanted = error.retry_after or 0.0 if error.retryable else _LONGEST_PAUSE
                pause = min(max(pause, wanted), _LONGEST_PAUSE)
            if self._closing.is_set():
                await asyncio.sleep(_FIRST_PAUSE)
            else:
                await self._pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _append(self, lines: Sequence[Line]) -> None:
        await self._store.append(
            self._tag, self._document_id, render(lines), {**self._metadata, "last_line": lines[-1].number}
        )

    async def _count_stored(self) -> int:
        """The number of the last line of the document: a reconnected call goes on where it was cut."""
        found = await self._store.document(self._tag, self._document_id)
        if found is None:
            return 0
        text, metadata = found
        known = metadata.get("last_line")
        return max(
            [line.number for line in parse(text)] + [int(known) if isinstance(known, int | float) else 0]
        )

    async def _is_stored(self, lines: Sequence[Line]) -> bool:
        """Whether a request whose answer was lost was carried out all the same."""
        found = await self._store.document(self._tag, self._document_id)
        if found is None:
            return False
        text, metadata = found
        same_writer = metadata.get("writer") == self._metadata["writer"]
        known = metadata.get("last_line")
        if same_writer and isinstance(known, int | float) and known >= lines[-1].number:
            return True
        return str(lines[-1]) in text

    def _lose(self, count: int) -> None:
        self._summary.lines_lost += count
        self._summary.warn_once("memory could not store a part of this call; the summary says how many lines")
