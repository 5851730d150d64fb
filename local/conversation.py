"""One call of the terminal chat: the session, what the terminal shows of it, and the commands."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

from livekit.agents import AgentSession, APIConnectOptions
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.agents.voice.io import TextOutput
from supermemory import AsyncSupermemory

import settings
from memory import (
    Fact,
    InputParams,
    MemoryConfigurationError,
    MemoryEvent,
    MemoryStore,
    MemoryStoreError,
    SupermemoryLiveKit,
    container_tag_for,
)

from . import models
from .chat_agent import INSTRUCTIONS, ChatAgent
from .chat_text import in_full, in_short, lines, lost_lines, memory_is_off, what_failed, which_memory
from .demo_rules import LINES_TO_TRY, confirmation
from .memory_log import MemoryLog
from .terminal import BOLD, CYAN, RED, Lines, Terminal

GREETING = "Greet the caller in one short sentence, by name if you know it."

HELP = (
    ("/memory", "what is remembered about you"),
    ("/forget WORDS", "shows what matches, and asks before it is forgotten"),
    ("/forget all", "asks, and erases all that is remembered about you"),
    ("/pause", "remember nothing from here on"),
    ("/resume", "remember again"),
    ("/quit", "hang up; the end of input and Ctrl-C do it too"),
)

_PATIENCE = 1.0

# By default a session ends itself after the fourth failed reply; here a person decides when to give up.
_KEEP_GOING = SessionConnectOptions(
    llm_conn_options=APIConnectOptions(max_retry=1, timeout=60.0), max_unrecoverable_errors=sys.maxsize
)


async def converse(caller: str) -> None:
    """Holds one call with `caller`, from the opening lines to the moment that what was said is stored.

    Raises `settings.SettingsError`, before the call, for a setting that cannot work. Ctrl-C, SIGTERM and
    a closed window end the call as `/quit` does.
    """
    client, store_name = settings.memory_client()
    try:
        model, model_sentence = await models.for_chat()
        terminal = Terminal(sys.stdout)
        call = _Call(terminal, MemoryLog(terminal).listening(), client, store_name, caller, model)
        try:
            _open(terminal, caller, which_memory(store_name), model_sentence)
            await call.hold()
        finally:
            await call.end()
            await model.aclose()
    finally:
        await client.close()


class _Call:
    def __init__(
        self,
        terminal: Terminal,
        log: MemoryLog,
        client: AsyncSupermemory,
        store_name: str,
        caller: str,
        model: Any,
    ) -> None:
        self._terminal, self._log = terminal, log
        self._store_name, self._caller = store_name, caller
        self._store = MemoryStore(client)
        # A batch a second, so that /memory shows what was just said.
        self._memory = SupermemoryLiveKit(client=client, params=InputParams(capture_interval=1.0))
        self._tag = container_tag_for(caller)
        if self._tag is not None:
            self._memory.bind(container_tag=self._tag)
        self._memory.on("recalled", self._on_recalled)
        self._memory.on("saved", lambda event: terminal.note(f"saved: {in_short(event.facts)}"))
        self._memory.on("forgotten", lambda event: terminal.note(f"forgotten: {in_short(event.facts)}"))
        self._session: AgentSession[None] = AgentSession(
            llm=model,
            vad=None,
            turn_handling={"turn_detection": None},
            conn_options=_KEEP_GOING,
            user_away_timeout=None,
        )
        self._memory.attach(self._session)
        self._session.output.transcription = _Reply(terminal)
        self._known_before: list[Fact] = []
        self._put_back = ""

    async def hold(self) -> None:
        """Greets, then answers line by line until somebody hangs up."""
        task = asyncio.current_task()
        assert task is not None
        _cancel_on_signals(task)
        try:
            self._lines = Lines()
            self._known_before = await self._facts_at_once()
            agent = ChatAgent(self._memory, instructions=INSTRUCTIONS)
            await self._session.start(agent=agent, record=False)
            await self._greet()
            while (line := await self._next_line()) is not None and line.split()[0].lower() != "/quit":
                await self._answer(line)
        except asyncio.CancelledError:
            # The wish to leave, not a failure: what follows is the orderly end.
            task.uncancel()
            self._terminal.unprompt()

    async def end(self) -> None:
        """Hangs up and waits until what was said is stored; says what was kept."""
        await self._session.aclose()
        storing = asyncio.create_task(self._memory.aclose(), name="chat hangs up")
        try:
            done, _ = await asyncio.wait({storing}, timeout=_PATIENCE)
            if not done:
                self._terminal.line("Storing what was said takes a while. Ctrl-C leaves without it.")
                await storing
        except asyncio.CancelledError:
            self._terminal.line("Hung up before all that was said could be stored.", RED)
            raise
        self._terminal.line(await self._farewell())

    async def _greet(self) -> None:
        reply = self._session.generate_reply(instructions=GREETING, tool_choice="none")
        await reply
        if (error := reply.exception()) is not None:
            self._complain(error)

    async def _answer(self, line: str) -> None:
        if line.startswith("/"):
            await self._command(line)
            return
        try:
            await self._session.run(user_input=line)
        except Exception as error:
            self._complain(error)

    async def _command(self, line: str) -> None:
        name, rest = line.split()[0].lower(), line.partition(" ")[2]
        if name in ("/memory", "/forget", "/pause", "/resume") and self._tag is None:
            self._terminal.line(memory_is_off(self._caller))
        elif name == "/memory":
            await self._list()
        elif name == "/forget":
            await self._forget(rest.strip())
        elif name == "/pause":
            if self._memory.state == "paused":
                self._terminal.line("It is paused already: nothing is remembered. /resume ends it.")
                return
            self._memory.pause()
            self._terminal.line("Paused: nothing from here on is remembered. /resume ends it.")
        elif name == "/resume":
            if self._memory.state == "on":
                self._terminal.line("It is not paused: what you say is remembered.")
                return
            self._memory.resume()
            self._terminal.line("Remembering again, from your next line on.")
        else:
            if name != "/help":
                self._terminal.line(f"There is no command {name}.")
            for command, what in HELP:
                self._terminal.line(f"{command:15}{what}")

    async def _list(self) -> None:
        assert self._tag is not None
        try:
            facts = await self._store.facts(self._tag)
        except MemoryStoreError as error:
            self._terminal.line(str(error), RED)
            return
        if not facts:
            self._terminal.line("Nothing is remembered about you yet.")
        for fact in facts:
            self._terminal.line(in_full(fact))
        if self._memory.user_turns and self._memory.state == "on":
            self._terminal.note("what you said in the last seconds may still be on its way")

    async def _forget(self, words: str) -> None:
        if not words:
            self._terminal.line("Say what to forget, such as: /forget Lisbon")
            return
        try:
            if words.lower().rstrip(".!") in ("all", "everything"):
                await self._erase()
                return
            facts = [fact for fact in await self._memory.preview_forget(words) if fact.id]
            if not facts:
                self._terminal.line(f"Nothing that is remembered matches {words!r}.")
                return
            for fact in facts:
                self._terminal.line(in_full(fact))
            confirmed = await self._confirmed("Forget this for good? yes or no")
            if not confirmed or not await self._memory.forget([fact.id for fact in facts]):
                self._terminal.line("Nothing was forgotten.")
        except (MemoryStoreError, MemoryConfigurationError) as error:
            self._terminal.line(str(error), RED)

    async def _erase(self) -> None:
        if not await self._confirmed("Erase all that is remembered about you, for good? yes or no"):
            self._terminal.line("Nothing was forgotten.")
            return
        await self._memory.erase()
        self._known_before = []
        self._terminal.line("All that was remembered about you is erased.")

    async def _confirmed(self, question: str) -> bool:
        """Whether the next line is a plain yes; one that is no answer at all is the line after this."""
        self._terminal.line(question, BOLD)
        answer = await self._next_line()
        meant = "no" if answer is None else confirmation(answer)
        if answer is not None and meant == "other":
            self._put_back = answer
        return meant == "yes"

    async def _next_line(self) -> str | None:
        """What the caller enters next, blank lines skipped; None at the end of input."""
        if self._put_back:
            returned, self._put_back = self._put_back, ""
            return returned
        while True:
            self._terminal.prompt()
            line = await self._lines.next()
            if line is None:
                return None
            if line.strip() or self._lines.typed:
                self._terminal.entered(line, echo=not self._lines.typed)
            if line.strip():
                return line.strip()

    async def _farewell(self) -> str:
        if self._tag is None:
            return "Hung up. Memory was off, so nothing was kept."
        if self._log.lines_lost:
            return lost_lines(self._log.lines_stored, self._log.lines_lost)
        if self._store_name != "embedded":
            stored = lines(self._log.lines_stored)
            return f"Hung up. Stored: {stored}. Supermemory learns from them within some minutes."
        facts = await self._facts_at_once()
        known = {fact.text for fact in self._known_before}
        if fresh := [fact for fact in facts if fact.text not in known]:
            self._terminal.note(f"kept from this call: {in_short(fresh, most=8)}")
        count = "nothing" if not facts else "1 thing" if len(facts) == 1 else f"{len(facts)} things"
        return f"Hung up. About {self._caller}, {count} will be known next time."

    async def _facts_at_once(self) -> list[Fact]:
        """All facts, where reading them costs nothing and they are made as soon as something is stored."""
        if self._tag is None or self._store_name != "embedded":
            return []
        with contextlib.suppress(MemoryStoreError):
            return await self._store.facts(self._tag)
        return []

    def _on_recalled(self, event: MemoryEvent) -> None:
        self._terminal.note(
            f"recalled {len(event.facts)}, waited {event.waited * 1000:.0f} ms: {in_short(event.facts)}"
        )

    def _complain(self, error: BaseException) -> None:
        self._terminal.line(f"{what_failed(error)} The chat goes on.", RED)


class _Reply(TextOutput):
    """Where the session's replies go, piece by piece."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(label="terminal", next_in_chain=None)
        self._terminal = terminal

    async def capture_text(self, text: str) -> None:
        self._terminal.stream(text)

    def flush(self) -> None:
        self._terminal.end_reply()


def _cancel_on_signals(task: asyncio.Task[Any]) -> None:
    """SIGTERM and a closed window cancel `task`, as Ctrl-C does under `asyncio.run`."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            with contextlib.suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().add_signal_handler(getattr(signal, name), task.cancel)


def _open(terminal: Terminal, caller: str, memory: str, model: str) -> None:
    terminal.line(f"A chat that remembers. You are {caller}.", BOLD)
    terminal.labelled("memory", memory_is_off(caller) if container_tag_for(caller) is None else memory, CYAN)
    terminal.labelled("model", model, CYAN)
    for label, line in zip(("try", ""), LINES_TO_TRY, strict=True):
        terminal.labelled(label, line, CYAN)
    terminal.line()
