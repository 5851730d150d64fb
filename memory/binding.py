"""One caller's memory in one call: what is recalled, what is stored, and what was asked to be kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

from . import identity, transcript
from .capture import Capture
from .errors import MemoryConfigurationError, MemoryStoreError
from .facts import DOCUMENT_FACT, Fact, new_document_id, same
from .forgetting import told
from .params import InputParams
from .recall import Recall
from .store import MemoryStore
from .telemetry import Summary

_SAID = "said:"
"""Starts the id of something said in this call that the service has not learned yet."""

_PAUSES = (1.0, 4.0, 15.0)
"""Seconds between attempts to take back what was stored under the wrong person."""

_ADDRESS = re.compile(r"\S+(?:://|\.)\S+")


class Binding:
    """Everything that belongs to the caller and not to the session; `unbind` lets go of all of it at once."""

    def __init__(
        self,
        store: MemoryStore,
        params: InputParams,
        summary: Summary,
        *,
        tag: str,
        session_id: str,
        on_recalled: Callable[[list[Fact], float], None],
    ) -> None:
        self.tag, self._session_id = tag, session_id
        self._store, self._summary = store, summary
        self._document_id = document_id = identity.document_id_for(session_id)
        self.recall = Recall(
            store, params, summary, tag=tag, document_id=document_id, on_recalled=on_recalled
        )
        self.capture = Capture(
            store,
            summary,
            tag=tag,
            document_id=document_id,
            session_id=session_id,
            interval=params.capture_interval,
        )
        self._remembered: list[Fact] = []
        # By what it says, the document of what may be stored without an answer: asked again, it is one fact.
        self._unanswered: dict[str, str] = {}
        self._remembering = asyncio.Lock()
        self._shown: dict[str, Fact] = {}
        self._released = False

    def show(self, facts: Sequence[Fact]) -> None:
        """Notes which facts this call has seen: no other can be forgotten from it."""
        self._shown.update({fact.id: fact for fact in facts if fact.id})

    async def remember(self, text: str) -> tuple[Fact, bool]:
        """Stores one fact; returns it, and whether it is new in this call."""
        text = transcript.plain(text)
        if not text:
            raise MemoryConfigurationError("There is nothing to remember in a blank text.")
        async with self._remembering:  # the same words twice at a time are one fact
            for fact in self._remembered:
                if same(fact.text) == same(text):
                    return fact, False
            # A bare address would be fetched and its page ingested.
            content = f"The caller asked to remember: {text}" if _ADDRESS.fullmatch(text) else text
            asked = self._unanswered.get(same(text))
            document_id = self._unanswered[same(text)] = asked or new_document_id()
            fact = await self._store.remember(
                self.tag, content, {"session_id": self._session_id}, document_id, again=asked is not None
            )
            self._unanswered.pop(same(text), None)
            self._remembered.append(fact)
        if self._released:  # stored under the wrong person while it was being let go
            await self._forget_remembered()
            raise MemoryConfigurationError("The memory was let go while the fact was being stored.")
        self._summary.remembered += 1
        self.recall.add(fact)
        self.show([fact])
        return fact, True

    async def preview_forget(self, query: str) -> list[Fact]:
        """What forgetting `query` would take."""
        found = self.recall.living(await self._store.matching(self.tag, query))
        # What was said in this call may not be learned yet; it would be, some minutes later.
        for text in self.capture.telling(query):
            if not any(told(text, fact.text) == 1 for fact in found):
                found.append(Fact(_SAID + text, f"The caller said: “{text}”", None, "search", False))
        self.show(found)
        return found

    def check_shown(self, ids: Sequence[str]) -> None:
        """Raises `MemoryConfigurationError` for an id that this call has not shown."""
        for fact_id in ids:
            if fact_id not in self._shown:
                raise MemoryConfigurationError(f"The fact id {fact_id!r} was not shown in this call.")

    async def forget(self, ids: Sequence[str]) -> list[Fact]:
        """Forgets in the store; what is gone there is gone from this call when it returns or raises."""
        stored = [fact_id for fact_id in ids if not fact_id.startswith(_SAID)]
        gone = [self._shown[fact_id] for fact_id in ids if fact_id.startswith(_SAID)]
        try:
            found = (
                await self._store.forget(self.tag, stored, except_document=self._document_id)
                if stored
                else []
            )
        except MemoryStoreError as error:
            self.drop(error.forgotten)
            raise
        # The service has no text any more for what an earlier attempt deleted; this call has shown it.
        gone += [fact if fact.text else self._shown.get(fact.id, fact) for fact in found]
        self.drop(gone)
        texts = [fact.text for fact in gone] + [
            fact_id.removeprefix(_SAID) for fact_id in ids if fact_id.startswith(_SAID)
        ]
        await self.capture.forget([text for text in texts if text], keep=self.recall.texts())
        return gone

    async def facts(self) -> list[Fact]:
        """All that is known of the caller; from here on each of it can be forgotten."""
        facts = await self._store.facts(self.tag)
        self.show(facts)
        return facts

    async def erase(self) -> tuple[list[Fact], dict[str, int]]:
        """Erases the caller's memory; returns what this call knew of it, and what the store counted."""
        async with self._remembering:  # after a fact that is being stored
            removed = await self.capture.erase(self.recall.texts())
            self._remembered.clear()
        gone = self.recall.clear()
        self._summary.forgotten += len(gone)
        return gone, removed

    def drop(self, facts: Sequence[Fact]) -> None:
        """Takes facts out of what this call knows, and asks for the profile again."""
        if not facts:
            return
        gone = [*facts, *self.recall.known(fact.id for fact in facts)]
        ids, texts = {fact.id for fact in gone}, {same(fact.text) for fact in gone}
        self._remembered = [f for f in self._remembered if f.id not in ids and same(f.text) not in texts]
        self.recall.remove(gone)
        self.recall.refresh()
        self._summary.forgotten += len(facts)

    async def release(self, flush: float) -> None:
        """Lets go of this caller and deletes what this call has stored for them. Never raises.

        A batch that is on its way has `flush` seconds to arrive: only then can it be deleted.
        """
        self._released = True
        self.capture.drop_unsent()
        await self.recall.aclose()
        await self.capture.flush(flush)
        await self._insist(self.capture.take_back)
        await self._forget_remembered()

    async def _forget_remembered(self) -> None:
        ids = [fact.id for fact in self._remembered]
        ids += [DOCUMENT_FACT + document_id for document_id in self._unanswered.values()]
        if ids:
            await self._insist(lambda: self._store.forget(self.tag, ids))
            self._remembered.clear()
            self._unanswered.clear()

    async def _insist(self, work: Callable[[], Awaitable[object]]) -> None:
        """Takes something back, and tries again where that can help. Never raises."""
        for pause in (*_PAUSES, None):
            try:
                await work()
                return
            except MemoryStoreError as error:
                self._summary.failed("take back", error)
                if pause is None or not error.retryable:
                    return
                await asyncio.sleep(pause)

    async def aclose(self, flush: float) -> None:
        """Stores what is left, for at most `flush` seconds, and ends all tasks. Never raises."""
        await self.capture.flush(flush)
        await self.recall.aclose()
