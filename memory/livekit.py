"""`SupermemoryLiveKit`: recall and capture, wired to one `AgentSession`."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import uuid
import weakref
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

from livekit import rtc
from livekit.agents import (
    Agent,
    AgentSession,
    AgentStateChangedEvent,
    ChatContext,
    CloseEvent,
    ConversationItemAddedEvent,
    UserInputTranscribedEvent,
    UserStateChangedEvent,
    get_job_context,
)
from livekit.agents.llm import ChatMessage, RealtimeModel
from livekit.agents.utils import is_given

from . import blocks, identity, prompt
from .binding import Binding
from .errors import MemoryConfigurationError
from .facts import Fact, same
from .params import InputParams
from .store import MemoryStore, make_client
from .telemetry import Summary
from .tools import MemoryTools
from .turns import Turns, was_spoken
from .wrapping import AgentWrapper

if TYPE_CHECKING:
    from supermemory import AsyncSupermemory

logger = logging.getLogger("memory")

State = Literal["on", "paused", "off"]
EventName = Literal["recalled", "saved", "forgotten", "state_changed"]

FLUSH_TIMEOUT = 60.0
"""Seconds that the end of a call waits for the store."""

_LONGEST_RELEASE = 5.0
# LiveKit gives all shutdown callbacks together about 10 s.
_SHUTDOWN_JOIN = 8.0
_EMBEDDED_HOST = "memory.embedded"

P = ParamSpec("P")
_attached: weakref.WeakKeyDictionary[AgentSession[Any], SupermemoryLiveKit] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class MemoryEvent:
    """What `memory.on(name, handler)` hands to its handler, a plain function."""

    type: EventName
    facts: tuple[Fact, ...] = ()
    """What was recalled, saved or forgotten."""
    waited: float = 0.0
    """Seconds that the reply waited for memory."""
    state: State = "on"


def _guarded(
    handler: Callable[Concatenate[SupermemoryLiveKit, P], None],
) -> Callable[Concatenate[SupermemoryLiveKit, P], None]:
    """Keeps what fails in a handler of ours from LiveKit, where a TypeError would abort the reply."""

    @functools.wraps(handler)
    def guarded(self: SupermemoryLiveKit, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            handler(self, *args, **kwargs)
        except Exception as error:
            _log_failure("memory handler failed; the call goes on", error)

    return guarded


class SupermemoryLiveKit(rtc.EventEmitter[EventName]):
    """Memory for one call: recall before each reply, capture of what is said.

    ```python
    memory = SupermemoryLiveKit()
    memory.bind(participant=participant)
    session = AgentSession(..., tools=memory.tools())
    memory.attach(session)
    ```

    Without a tag there is no memory, and nothing fails. Emits `recalled`, `saved`, `forgotten` and
    `state_changed` with a `MemoryEvent`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        container_tag: str | None = None,
        session_id: str | None = None,
        params: InputParams | None = None,
        base_url: str | None = None,
        client: AsyncSupermemory | None = None,
    ) -> None:
        """`api_key` and `base_url` fall back to SUPERMEMORY_API_KEY and SUPERMEMORY_BASE_URL.

        A `client` given here stays open at the end; one made here is closed. Raises
        `MemoryConfigurationError` without key and client, or for values that cannot work.
        """
        super().__init__()
        self._params = params or InputParams()
        used = make_client(api_key, base_url) if client is None else client
        self._owned = used if client is None else None
        self._store = MemoryStore(used)
        self._summary = Summary(store="embedded" if _EMBEDDED_HOST in str(used.base_url) else "supermemory")
        self._session_id = (session_id or "").strip()
        self._binding: Binding | None = None
        self._session: AgentSession[Any] | None = None
        self._wrapper = AgentWrapper(self.enrich)
        self._tools = MemoryTools(self)
        self._enriched = ""
        self._turns = Turns(store=self._params.capture != "never")
        self._let_go_at = 0.0
        self._let_go: list[str] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing: asyncio.Task[None] | None = None
        if container_tag is not None:
            self.bind(container_tag=container_tag)

    # ------------------------------------------------------------------ whose memory

    @property
    def container_tag(self) -> str | None:
        """The tag in use, or None: no memory."""
        return self._binding.tag if self._binding else None

    @property
    def session_id(self) -> str:
        """Names this call's document; empty before `bind`."""
        return self._session_id

    @property
    def state(self) -> State:
        """`on`, `paused` (recall goes on, nothing is stored) or `off` (no memory, or the call is over)."""
        if self._binding is None or self._closing is not None:
            return "off"
        return "paused" if self._turns.paused else "on"

    @property
    def user_turns(self) -> int:
        """How many messages of the caller this call has had."""
        return self._turns.count

    def bind(
        self,
        container_tag: str | None = None,
        participant: identity.ParticipantLike | None = None,
        session_id: str | None = None,
    ) -> str | None:
        """Scopes this memory to one caller and starts to ask for their profile; returns the tag.

        An explicit tag beats the participant's attribute `supermemory_container_tag`, which beats its
        phone number and identity. Placeholders such as `default` give None: no memory, one warning. The
        first bind wins; another caller after `attach` raises `MemoryConfigurationError` unless `unbind`
        was called. A blank `session_id` counts as not given: then the job's room name, else a random
        id, names the call.
        """
        tag = None
        if container_tag is not None and container_tag.strip():
            tag = identity.container_tag_from(container_tag)
        elif participant is not None:
            tag = identity.container_tag_of(participant)
        if self._binding is not None:
            if tag != self._binding.tag and self._session is not None:
                raise MemoryConfigurationError(
                    "This memory is bound to a caller and attached. Call unbind() before binding another one."
                )
            if tag != self._binding.tag:
                self._summary.warn_once("memory is bound already; the first caller keeps it")
            return self._binding.tag
        if self._closing is not None:
            raise MemoryConfigurationError("This memory's call has ended: make a new one for another call.")
        if tag is None or tag in _names_of_the_job():
            self._summary.warn_once(
                "memory is off for this call: no identity that belongs to one caller. Pass container_tag, or "
                "give the participant an identity or the attribute supermemory_container_tag"
            )
            return None
        self._session_id = self._session_id or _session_id(session_id)
        # What an earlier binding to the same caller takes back must not be what this one stores.
        again = self._let_go.count(tag)

        def on_recalled(facts: list[Fact], waited: float) -> None:
            if self._binding is binding:
                self._tell("recalled", facts, waited)

        binding = self._binding = Binding(
            self._store,
            self._params,
            self._summary,
            tag=tag,
            session_id=f"{self._session_id}-{again + 1}" if again else self._session_id,
            on_recalled=on_recalled,
        )
        self._begin()
        self._tell("state_changed")
        return tag

    def unbind(self) -> None:
        """ "This is not my memory": recall and capture stop at once, and what this call stored is deleted.

        Deleting happens in the background and is waited for by `aclose`; `bind` may follow at once.
        """
        if self._binding is None:
            return
        binding, self._binding = self._binding, None
        self._turns.let_go()
        self._tools.reset()
        self._let_go_at = time.time()
        self._let_go.append(binding.tag)
        if _loop_is_running():  # without one nothing has been asked for or stored
            self._spawn(binding.release(FLUSH_TIMEOUT))
            self._spawn(self._wrapper.strip(self._let_go_at))
        self._tell("state_changed")

    # ------------------------------------------------------------------ what the model reads

    async def preload(self, chat_ctx: ChatContext) -> bool:
        """Puts the caller's profile at the end of `chat_ctx`, in place of an earlier one.

        Waits at most `recall_timeout`. Returns False, with nothing added, when there is no tag, no
        profile by then, or the mode is `query`; never raises.
        """
        try:
            blocks.strip(chat_ctx)
            binding = self._begin()
            if binding is None or self._params.mode == "query":
                return False
            facts = await binding.recall.profile()
            if not facts or self._binding is not binding:  # it may have been let go while this waited
                return False
            binding.show(facts)
            chat_ctx.insert(blocks.make(facts, time.time()))
            return True
        except Exception as error:
            _log_failure("memory recall failed; the call goes on", error)
            return False

    async def enrich(self, chat_ctx: ChatContext) -> ChatContext:
        """A copy of `chat_ctx` with the memory block just before the caller's last message.

        For an `llm_node` of one's own; `attach` does it for every agent. Doing both changes nothing: a
        block that is there is replaced. Waits as long as the turn's deadline allows, never raises.
        """
        enriched = chat_ctx.copy()
        try:
            blocks.strip(enriched)
            if self._let_go_at:
                blocks.disown(enriched, before=self._let_go_at)
            binding = self._begin()
            if binding is None:
                return enriched
            message = blocks.last_user_message(enriched)
            if message is None:
                facts = await binding.recall.for_greeting()
            else:
                text = message.text_content or ""
                self._enriched = same(text)
                facts = await binding.recall.for_message(message.id, text, spoken=was_spoken(message))
            note = self._note()
            if (facts or note) and self._binding is binding:  # it may have been let go meanwhile
                binding.show(facts)
                blocks.insert(enriched, facts, before=message, note=note)
        except Exception as error:
            _log_failure("memory recall failed; the call goes on", error)
        return enriched

    async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: ChatMessage) -> None:
        """The manual way, for an agent without `attach`: the block goes into `turn_ctx`.

        With preemptive generation this costs a second model call per turn, which `attach` does not.
        Never raises and never edits `new_message`.
        """
        try:
            text = new_message.text_content or ""
            binding = self._begin()
            if self._session is not None or binding is None or self._enriched == same(text):
                return
            self._turns.count += 1
            self._summary.warn_once(
                "memory recalls in on_user_turn_completed: with preemptive generation each turn calls the "
                "model twice. memory.attach(session) does not"
            )
            blocks.strip(turn_ctx)
            binding.recall.commit(new_message.id, text, spoken=False)
            # Nobody tells this object of the transcripts, so its turns have no time to count from.
            facts = await binding.recall.for_message(new_message.id, text, spoken=False)
            note = self._note()
            if (facts or note) and self._binding is binding:
                binding.show(facts)
                turn_ctx.insert(blocks.make(facts, blocks.just_before(new_message), note))
        except Exception as error:
            _log_failure("memory recall failed; the call goes on", error)

    # ------------------------------------------------------------------ the session

    def attach(self, session: AgentSession[Any]) -> None:
        """Recall before every reply of every agent in the session, and capture of what is said.

        Adds no tools: pass `tools=memory.tools()` to the session or the agent. Attaching again to the
        same session changes nothing; a second memory on one session, or a second session for one memory,
        raises `MemoryConfigurationError`. With a realtime model, which has no `llm_node`, give the agent a
        preloaded chat context; an agent handed to later needs `update_instructions` of its own.
        """
        if self._session is session:
            return
        if self._session is not None:
            raise MemoryConfigurationError("This memory is attached to another session: make one per call.")
        if session in _attached:
            raise MemoryConfigurationError("Another memory is attached to this session already.")
        self._session = session
        _attached[session] = self
        session.on("conversation_item_added", self._on_item)
        session.on("user_input_transcribed", self._on_transcript)
        session.on("agent_state_changed", self._on_agent_state)
        session.on("user_state_changed", self._on_user_state)
        session.on("close", self._on_close)
        self._wrapper.wrap(_current_agent(session))
        context = get_job_context(required=False)
        if context is not None:
            context.add_shutdown_callback(self._on_shutdown)
        self._begin()

    def attach_when_free(self, session: AgentSession[Any]) -> None:
        """`attach`, unless this or another memory is attached to the session."""
        if self._session is None and session not in _attached:
            self.attach(session)

    @_guarded
    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if item.type == "agent_handoff" and self._session is not None:
            self._wrapper.wrap(_current_agent(self._session))
            if self._let_go:  # it may have been made with a context that was preloaded for somebody else
                self._spawn(self._wrapper.strip(self._let_go_at))
        if isinstance(item, ChatMessage) and not blocks.is_block(item):
            self._turns.message(item, self._binding)

    @_guarded
    def _on_transcript(self, event: UserInputTranscribedEvent) -> None:
        text = event.transcript.strip()
        if event.is_final and text:
            self._turns.heard(text, self._binding, search=self._answers_from_prompts())

    @_guarded
    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        if event.new_state == "speaking":
            self._turns.agent_speaks(self._binding)

    @_guarded
    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.new_state == "speaking" and self._session is not None:
            self._turns.caller_speaks(self._binding, self._session.options.endpointing["max_delay"])

    @_guarded
    def _on_close(self, event: CloseEvent) -> None:
        self._turns.end(self._binding)
        self._wrapper.restore()
        self._close()

    # ------------------------------------------------------------------ the caller's own wishes

    def pause(self) -> None:
        """ "Do not remember this": nothing is stored until `resume`, the caller's current turn included.

        Recall goes on; the `remember` tool refuses.
        """
        if self._turns.paused:
            return
        self._turns.pause()
        if self._binding is not None:
            answering = self._session is not None and self._session.agent_state in ("thinking", "speaking")
            self._binding.capture.drop_current_turn(answering=answering)
        self._tell("state_changed")

    def resume(self) -> None:
        """Stores again from the caller's next turn on; what was said meanwhile is not recovered."""
        if self._turns.paused:
            self._turns.resume()
            self._tell("state_changed")

    def tools(self) -> list[Any]:
        """`search_memories`, `remember` and `forget` for a model: always the same objects."""
        return self._tools.tools()

    async def search(self, query: str) -> list[Fact]:
        """What is remembered about `query`, best first. Raises `MemoryStoreError`."""
        binding = self._bound()
        facts = await binding.recall.search(query)
        if self._binding is not binding:  # let go meanwhile: these are somebody else's
            return []
        binding.show(facts)
        return facts

    async def remember(self, text: str) -> Fact:
        """Stores one fact that the caller asked to keep; the same text again in this call is the same fact.

        Raises `MemoryConfigurationError` for blank text, without a tag, or while paused, and
        `MemoryStoreError`, with `.ambiguous` when it may be stored all the same.
        """
        binding = self._bound()
        if self._turns.paused:
            raise MemoryConfigurationError("Memory is paused: call resume() before remembering something.")
        fact, new = await binding.remember(text)
        if new:
            self._tell("saved", [fact])
        return fact

    async def facts(self) -> list[Fact]:
        """All that is remembered of the caller, newest first; what they asked to keep comes first.

        Raises `MemoryStoreError`.
        """
        binding = self._bound()
        facts = await binding.facts()
        return facts if self._binding is binding else []

    async def preview_forget(self, query: str) -> list[Fact]:
        """What forgetting `query` would take, without taking it. Raises `MemoryStoreError`."""
        binding = self._bound()
        facts = await binding.preview_forget(query)
        return facts if self._binding is binding else []

    async def forget(self, ids: Sequence[str]) -> list[Fact]:
        """Forgets exactly these facts, in the store and in this call at once; returns what is gone.

        Ids must come from this object's `search`, `facts`, `preview_forget`, `remember` or recall, else
        `MemoryConfigurationError` and nothing is sent. A partial failure raises `MemoryStoreError` with
        `.forgotten`.
        """
        binding = self._bound()
        binding.check_shown(ids)
        gone = await binding.forget(ids) if ids else []
        if self._binding is not binding:  # let go meanwhile: these were somebody else's
            return []
        if gone:
            self._tell("forgotten", gone)
        return gone

    async def erase(self) -> dict[str, int]:
        """Erases all that is stored of the caller, this call's words so far included; cannot be undone.

        Returns `{"documents": n, "memories": n}`, what the store had. What the caller says from their next
        turn on is stored again. Raises `MemoryStoreError`; what was not stored yet is gone all the same.
        """
        binding = self._bound()
        self._turns.cut()
        gone, removed = await binding.erase()
        if gone and self._binding is binding:
            self._tell("forgotten", gone)
        return removed

    # ------------------------------------------------------------------ the end

    async def aclose(self) -> None:
        """Stores what is left, for at most 60 s, and lets go of the session. Idempotent, never raises."""
        self._wrapper.restore()
        await asyncio.shield(self._close())
        await asyncio.gather(*self._tasks, return_exceptions=True)  # let go of after the end

    def _close(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = asyncio.create_task(self._finish(), name="memory close")
        return self._closing

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT + _LONGEST_RELEASE):
                if self._binding is not None:
                    await self._binding.aclose(FLUSH_TIMEOUT)
                await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._owned is not None:
                await self._owned.close()
        except Exception as error:
            _log_failure("memory could not end in order", error)
        self._summary.log()

    async def _on_shutdown(self) -> None:
        # Only joins: a callback that raises would end the others.
        await asyncio.wait([self._close()], timeout=_SHUTDOWN_JOIN)

    # ------------------------------------------------------------------ inside

    def _bound(self) -> Binding:
        if self._binding is None:
            raise MemoryConfigurationError("There is no memory in this call: bind() it to a caller first.")
        if self._closing is not None:
            raise MemoryConfigurationError("This memory's call has ended: use MemoryStore outside of a call.")
        return self._binding

    def _answers_from_prompts(self) -> bool:
        """Whether the agent's replies go through `llm_node`; a realtime model never asks for a search."""
        assert self._session is not None
        agent = _current_agent(self._session)
        model = agent.llm if agent is not None and is_given(agent.llm) else self._session.llm
        return not isinstance(model, RealtimeModel)

    def _note(self) -> str:
        """What the model is told of a pause; it would not know of it, since a switch is nothing said."""
        if self._turns.paused:
            return prompt.PAUSED
        return prompt.RESUMED if self._turns.was_paused else ""

    def _begin(self) -> Binding | None:
        """Starts what needs a running loop, since `bind` may have been called without one."""
        if self._closing is not None:
            return None
        if self._binding is not None and _loop_is_running():
            self._binding.recall.start()
        return self._binding

    def _tell(self, name: EventName, facts: Sequence[Fact] = (), waited: float = 0.0) -> None:
        try:
            self.emit(name, MemoryEvent(name, tuple(facts), waited, self.state))
        except Exception as error:  # emit lets a handler's TypeError through
            _log_failure("memory event handler failed", error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="memory unbind")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _log_failure(message: str, error: Exception) -> None:
    logger.error(message, extra={"error": type(error).__name__})


def _current_agent(session: AgentSession[Any]) -> Agent | None:
    try:
        return session.current_agent
    except RuntimeError:  # not started yet
        return None


def _names_of_the_job() -> set[str | None]:
    """The tags that the room's name and the agent's own identity would make: no caller's."""
    context = get_job_context(required=False)
    if context is None or context.is_fake_job():
        return set()
    names = {context.job.room.name, context.local_participant_identity}
    return names | {identity.container_tag_for(name) for name in names}


def _session_id(given: str | None) -> str:
    if given is not None and given.strip():
        return given.strip()
    context = get_job_context(required=False)
    if context is not None and not context.is_fake_job() and context.job.room.name:
        return context.job.room.name
    return f"call-{uuid.uuid4().hex}"


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
