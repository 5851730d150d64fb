"""The read path: what to tell the model about the caller, in time for the reply or not at all.

Searches start when the caller's words arrive, not when the model is asked: a reply waits only for what
is still missing at its deadline. Everything here fails open.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from . import prompt
from .errors import MemoryStoreError
from .facts import Fact, Hit, same
from .params import InputParams
from .store import MemoryStore
from .telemetry import Summary

MAX_QUERY = 1000
"""Characters of a search query; of a longer turn its end, where the question usually is."""

_TURNS_KEPT = 16
_PROFILE_ATTEMPTS = 3
_BACKCHANNEL = re.compile(
    r"(?:\W|\b(?:a+h+|a?ha|bye|cool|good|great|h+m+|huh|mm+|mhm+|no|nope|oh|ok|okay|right|sure|thanks|"
    r"thank|uh|um|wow|yeah|yep|yes|you|hello|hi|hey)\b)*",
    re.IGNORECASE,
)


@dataclass
class Turn:
    """The caller's words up to one user message, and what was recalled for them."""

    finals: list[str] = field(default_factory=list)
    """Final transcripts in their order; empty for a typed turn."""
    deadline: float | None = None
    """Loop time after which a reply waits no more; one per turn, however often its reply is made."""
    query: str = ""
    search: asyncio.Task[list[Hit]] | None = None
    committed: bool = False
    """Whether its message is in the conversation, so that the reply to it is not a guess any more."""
    facts: list[Fact] = field(default_factory=list)
    """What the latest reply to it was told."""
    waited: float = 0.0
    answered: bool = False
    reported: bool = False


class Recall:
    """Profile and searches of one caller in one call."""

    def __init__(
        self,
        store: MemoryStore,
        params: InputParams,
        summary: Summary,
        *,
        tag: str,
        document_id: str,
        on_recalled: Callable[[list[Fact], float], None],
    ) -> None:
        self._store, self._params, self._summary = store, params, summary
        self._tag, self._document_id = tag, document_id
        self._on_recalled = on_recalled
        self._since = datetime.now(UTC)
        self._bound_at: float | None = None
        self._profile: list[Fact] = []
        self._profile_task: asyncio.Task[None] | None = None
        self._profile_attempts = 0
        self._profile_known = False
        self._added: list[Fact] = []
        self._gone_ids: set[str] = set()
        self._gone_texts: set[str] = set()
        self._turn: Turn | None = None
        self._dropped: Turn | None = None
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._unanswered: list[str] = []
        self._replied = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Asks for the profile, once; needs a running loop."""
        if self._bound_at is None:
            self._bound_at = asyncio.get_running_loop().time()
            self._fetch_profile()

    # ---------------------------------------------------------------- the caller's turn

    def hear(self, text: str) -> None:
        """A final transcript arrived: the turn grows, its deadline moves, its search starts."""
        turn = self._turn = self._turn or Turn()
        turn.finals.append(text)
        turn.deadline = self._deadline(spoken=True)
        self._search(turn, " ".join([*self._unanswered, *turn.finals]))

    def commit(self, message_id: str, text: str, *, spoken: bool) -> None:
        """The caller's message is in the conversation: after a spoken one the next words begin a turn."""
        turn = self._turn_of(message_id, text, spoken)
        turn.committed = True
        if turn is self._turn:
            self._turn = None
        self._unanswered = [*self._unanswered, text][-3:]
        self._report(turn)

    def drop_turn(self) -> None:
        """Ends a turn that became no message so far; one that comes late still finds its search."""
        self._dropped, self._turn = self._turn or self._dropped, None

    def agent_spoke(self) -> None:
        """The agent is heard: what the caller says next does not continue the last sentence."""
        self._replied = True
        self._unanswered = []

    # ---------------------------------------------------------------- what the model is told

    async def for_message(self, message_id: str, text: str, *, spoken: bool) -> list[Fact]:
        """The facts for the reply to one user message, most relevant first; waits to its deadline."""
        turn = self._turn_of(message_id, text, spoken)
        if turn.deadline is None:
            turn.deadline = self._deadline(spoken)
        if turn.search is None:
            self._search(turn, text)
        if not self._profile_known and self._profile_task is not None and self._profile_task.done():
            self._fetch_profile()
        waited = await self._settle(turn.search, turn.deadline)
        turn.waited = max(turn.waited, waited)
        self._replied = True
        hits = (
            turn.search.result() if turn.search and turn.search.done() and not turn.search.cancelled() else []
        )
        turn.facts = self._shown(self._from_hits(hits, turn.query))
        turn.answered = True
        self._report(turn)
        return turn.facts

    async def for_greeting(self) -> list[Fact]:
        """The facts for a reply before the caller said anything: the profile."""
        waited = await self._settle(None, (self._bound_at or 0.0) + self._params.recall_timeout)
        facts = self._shown([])
        if not self._replied:
            self._recalled(facts, waited)
        return facts

    async def profile(self) -> list[Fact]:
        """The profile, at most `recall_timeout` from now; empty when it is not there by then."""
        await self._settle(None, asyncio.get_running_loop().time() + self._params.recall_timeout)
        return self._shown([])

    async def search(self, query: str) -> list[Fact]:
        """Looks something up on purpose. Raises `MemoryStoreError`, unlike the rest of this class."""
        hits = await self._store.search(
            self._tag,
            query[-MAX_QUERY:],
            limit=self._params.search_limit,
            threshold=self._params.search_threshold,
        )
        self._summary.searches += 1
        known = self.living([*self._added, *self._profile])
        words = prompt.words(query)
        found = [*self._from_hits(hits, query), *(fact for fact in known if words & prompt.words(fact.text))]
        return prompt.shown(
            found, datetime.now(UTC), max_facts=self._params.search_limit, max_characters=10**6
        )

    # ---------------------------------------------------------------- changes during the call

    def add(self, fact: Fact) -> None:
        """Something was remembered in this call; it is known from now on."""
        self._gone_texts.discard(same(fact.text))
        self._added = [fact, *(other for other in self._added if same(other.text) != same(fact.text))]

    def remove(self, facts: Iterable[Fact]) -> None:
        """Something was forgotten: it leaves the profile, the hits and the next prompt at once."""
        gone = list(facts)
        self._gone_ids.update(fact.id for fact in gone if fact.id)
        self._gone_texts.update(same(fact.text) for fact in gone if same(fact.text))
        self._added = self.living(self._added)
        for turn in self._turns.values():
            turn.facts = self.living(turn.facts)

    def clear(self) -> list[Fact]:
        """Everything was erased: takes all of it out of this call at once, and returns it."""
        told = [fact for turn in self._turns.values() for fact in turn.facts]
        facts = {same(fact.text): fact for fact in self.living([*told, *self._profile, *self._added])}
        for turn in [*self._turns.values(), self._turn, self._dropped]:
            if turn is not None and turn.search is not None:
                turn.search.cancel()
                turn.search, turn.query = None, ""
        self._profile = []
        self.remove(facts.values())
        self.refresh()
        return list(facts.values())

    def known(self, ids: Iterable[str]) -> list[Fact]:
        """Facts with these ids among what this call has seen; unknown ids come without a text."""
        seen = {fact.id: fact for turn in self._turns.values() for fact in turn.facts}
        seen |= {fact.id: fact for fact in [*self._profile, *self._added]}
        return [seen.get(fact_id) or Fact(fact_id, "", None, "profile", False) for fact_id in ids]

    def texts(self) -> list[str]:
        """What is known of the caller and not forgotten."""
        return [fact.text for fact in self.living([*self._added, *self._profile])]

    def living(self, facts: Iterable[Fact]) -> list[Fact]:
        """`facts` without those that were forgotten in this call; the service may still list them."""
        return [fact for fact in facts if self._alive(fact)]

    def refresh(self) -> None:
        """Asks for the profile again, since it was changed."""
        self._profile_attempts = 0
        self._fetch_profile()

    async def aclose(self) -> None:
        """Cancels what is under way and waits for it. Never raises."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---------------------------------------------------------------- inside

    def _fetch_profile(self) -> None:
        if self._params.mode == "query" or self._profile_attempts >= _PROFILE_ATTEMPTS:
            return
        self._profile_attempts += 1
        if self._profile_task is not None:
            self._profile_task.cancel()  # an older answer must not replace a newer one
        self._profile_task = self._spawn("memory profile", self._load_profile())

    async def _load_profile(self) -> None:
        self._summary.profiles += 1
        try:
            self._profile = await self._store.profile(self._tag)
            self._profile_known = True
        except MemoryStoreError as error:
            self._profile_known = self._profile_known or not error.retryable
            self._summary.failed("profile", error)

    def _search(self, turn: Turn, text: str) -> None:
        query = text.strip()[-MAX_QUERY:]
        if self._params.mode == "profile" or query == turn.query or _BACKCHANNEL.fullmatch(query):
            return
        if turn.search is not None:
            turn.search.cancel()  # it asked for a part of what the caller has said by now
        turn.query = query
        turn.search = self._spawn("memory search", self._load_hits(query))

    async def _load_hits(self, query: str) -> list[Hit]:
        self._summary.searches += 1
        try:
            return await self._store.search(
                self._tag,
                query,
                limit=self._params.search_limit,
                threshold=self._params.search_threshold,
            )
        except MemoryStoreError as error:
            self._summary.failed("search", error)
            return []

    async def _settle(self, search: asyncio.Task[list[Hit]] | None, deadline: float) -> float:
        """Waits for profile and search to the deadline; returns the seconds it took.

        `asyncio.wait` leaves its tasks alone when this is cancelled, as a discarded reply is: the next
        reply to the same turn waits for the same tasks.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        profile = None if self._profile_known else self._profile_task
        pending = {task for task in (profile, search) if task is not None and not task.done()}
        if pending and deadline > begun:
            await asyncio.wait(pending, timeout=deadline - begun)
        return loop.time() - begun if pending else 0.0

    def _from_hits(self, hits: Iterable[Hit], query: str) -> list[Fact]:
        facts = []
        for hit in sorted(hits, key=lambda hit: -hit.similarity):
            own = hit.document_id == self._document_id
            if hit.chunk:
                fact = prompt.passage(hit, query, since=self._since if own else None)
            else:
                when = hit.fact.when
                fact = None if own and (when is None or when >= self._since) else hit.fact
            if fact is not None and self._alive(fact):
                facts.append(fact)
        return facts

    def _shown(self, hits: list[Fact]) -> list[Fact]:
        return prompt.shown(
            [*hits, *self._added, *self.living(self._profile)],
            datetime.now(UTC),
            max_facts=self._params.max_facts,
            max_characters=self._params.max_block_characters,
        )

    def _alive(self, fact: Fact) -> bool:
        if fact.id and fact.id in self._gone_ids:
            return False
        text = same(fact.text)
        if fact.id:
            return text not in self._gone_texts
        # A synthesis or a passage can hold a forgotten fact among others.
        return not any(
            f" {gone} " in f" {text} " or prompt.covers(fact.text, gone) for gone in self._gone_texts
        )

    def _report(self, turn: Turn) -> None:
        """Tells about a recall once its reply is no guess any more, and once only."""
        if turn.committed and turn.answered and not turn.reported:
            turn.reported = True
            self._recalled(turn.facts, turn.waited)

    def _recalled(self, facts: list[Fact], waited: float) -> None:
        self._summary.waited(waited)
        self._summary.facts_shown += len(facts)
        if facts:
            self._on_recalled(list(facts), waited)

    def _turn_of(self, message_id: str, text: str, spoken: bool) -> Turn:
        """The turn of a message; the one that is being spoken belongs to no message that was typed."""
        turn = self._turns.get(message_id) or (self._spoken(text) if spoken else None) or Turn()
        self._turns[message_id] = turn
        self._turns.move_to_end(message_id)
        while len(self._turns) > _TURNS_KEPT:
            self._turns.popitem(last=False)
        return turn

    def _spoken(self, text: str) -> Turn | None:
        if self._turn is None and self._dropped and same(" ".join(self._dropped.finals)) == same(text):
            return self._dropped
        return self._turn

    def _deadline(self, spoken: bool) -> float:
        """Counted from now: a budget for speech, more for what was typed and for the first reply."""
        longest = self._params.recall_timeout
        budget = min(self._params.reply_budget, longest) if spoken and self._replied else longest
        return asyncio.get_running_loop().time() + budget

    def _spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
