"""A call with a real `AgentSession`, told as a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any

from livekit.agents import NOT_GIVEN, Agent, AgentSession, APIConnectOptions, TurnHandlingOptions, llm
from livekit.agents.stt import SpeechEventType
from livekit.agents.voice.agent_session import SessionConnectOptions

from .caller import Caller, TurnDetection
from .events import EventLog
from .line import Captions, Microphone, Speaker
from .model import ScriptedLLM
from .realtime import ScriptedRealtime
from .script import Script
from .stt import ScriptedSTT
from .vad import ScriptedVAD
from .voice import ScriptedTTS
from .waiting import DEADLINE, Board, settle

_ONCE = APIConnectOptions(max_retry=0, timeout=DEADLINE)


class Call:
    """One caller, one agent, no server, no sound.

    `call.session` is there from the start, so that listeners can be attached before the call begins
    with `async with call:`, which ends it too. Every verb returns when the session has dealt with it,
    and fails with `AssertionError` or `TimeoutError` when that takes more than `DEADLINE` seconds.
    Options that are not named here go to `AgentSession` as they are.
    """

    def __init__(
        self,
        agent: Agent | None,
        *,
        model: ScriptedLLM | ScriptedRealtime | Script = "Okay.",
        turn_detection: TurnDetection = "vad",
        preemptive: bool = True,
        min_delay: float = 0.02,
        stt: ScriptedSTT | None = None,
        tts: ScriptedTTS | None = None,
        vad: bool = True,
        audio: bool = True,
        can_pause: bool = True,
        turn_handling: TurnHandlingOptions | None = None,
        make_session: Callable[..., AgentSession[Any]] = AgentSession,
        **options: Any,
    ) -> None:
        """`min_delay` is the endpointing delay in seconds. `audio=False` is a bot that only types;
        `vad=False` leaves the recogniser alone to hear the caller. A realtime model listens and speaks
        itself: it gets a recogniser or a synthesiser only when one is passed. `agent=None` is a call
        that somebody else starts."""
        self.agent = agent
        self.board = Board()
        self.model = model if isinstance(model, (ScriptedLLM, ScriptedRealtime)) else ScriptedLLM(model)
        realtime = self.model if isinstance(self.model, ScriptedRealtime) else None
        if realtime is not None and realtime.capabilities.turn_detection:
            turn_detection, vad = "realtime_llm", False
        self.turn_detection = turn_detection
        self.stt = (stt or (None if realtime else ScriptedSTT())) if audio else None
        self.tts = (tts or (None if realtime else ScriptedTTS())) if audio else None
        self.vad = ScriptedVAD() if audio and vad else None
        for part in (self.model, self.stt, self.vad):
            if part is not None:
                part.board = self.board
        turns: TurnHandlingOptions = {
            "turn_detection": turn_detection if audio else None,
            "endpointing": {"min_delay": min_delay},
            # The other way to tell interruptions apart asks a cloud service.
            "interruption": {"mode": "vad"},
            "preemptive_generation": {"enabled": preemptive},
        }
        ours: dict[str, Any] = {
            "aec_warmup_duration": None,
            "user_away_timeout": None,
            "session_close_transcript_timeout": 0.05,
            "conn_options": SessionConnectOptions(_ONCE, _ONCE, _ONCE),
        }
        self.session = make_session(
            llm=self.model,
            stt=self.stt or NOT_GIVEN,
            tts=self.tts or NOT_GIVEN,
            vad=self.vad,
            turn_handling={**turns, **(turn_handling or {})},
            **{**ours, **options},
        )
        self.events = EventLog(self.session, self.board)
        self.captions = Captions()
        self.microphone = Microphone()
        self.speaker = Speaker(self.captions, self.board, can_pause=can_pause)
        if audio:
            self.session.input.audio = self.microphone
            self.session.output.audio = self.speaker
        self.session.output.transcription = self.captions
        self._realtime = realtime
        self._caller = Caller(
            events=self.events,
            microphone=self.microphone,
            turn_detection=turn_detection,
            stt=self.stt,
            vad=self.vad,
            realtime=realtime,
        )
        self._replies_given = 0

    async def __aenter__(self) -> Call:
        if self.agent is None:
            raise ValueError("this call is started by somebody else: use its verbs once it is")
        async with asyncio.timeout(DEADLINE):
            await self.session.start(self.agent, record=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.hang_up()

    # What was said

    @property
    def transcript(self) -> list[tuple[str, str]]:
        """The conversation as role and text, in the order in which it was added."""
        return [(message.role, message.text_content or "") for message in self.events.messages]

    @property
    def replies(self) -> list[llm.ChatMessage]:
        """The agent's messages, in the order in which they were added."""
        return [message for message in self.events.messages if message.role == "assistant"]

    # The caller speaks

    async def says(self, *finals: str, reply: bool = True) -> str:
        """A whole spoken turn; the agent's reply, or "" with `reply=False`.

        Several texts are several final transcripts of one turn. With `reply=False` it returns when
        the turn is over: dropped, or answered as far as a held speaker plays.
        """
        await self._speak(*finals)
        if reply:
            return await self._answered()
        await self.turn_over()
        self._late_words()
        return ""

    async def speech_started(self, heard: float = 0.6) -> None:
        """The caller began to speak, `heard` seconds ago; from half a second on it interrupts."""
        await self._caller.started(heard)

    async def interim(self, text: str) -> None:
        """The recogniser's guess so far, of the current sentence."""
        await self._caller.recogniser.push(SpeechEventType.INTERIM_TRANSCRIPT, text)

    async def preflight(self, text: str) -> None:
        """A guess the recogniser is so sure of that a reply may be prepared."""
        await self._caller.recogniser.push(SpeechEventType.PREFLIGHT_TRANSCRIPT, text)

    async def final(self, text: str) -> None:
        """A final transcript. After `speech_ended` it is a late one."""
        await self._caller.recogniser.push(SpeechEventType.FINAL_TRANSCRIPT, text)

    async def speech_ended(self, text: str | None = None) -> None:
        """The caller stopped. `text` is for those who find the words only now: a recogniser that does
        not stream, a realtime model."""
        await self._caller.ended(text)

    async def commit(self) -> None:
        """The caller lets go of the button: with manual turn detection this ends the turn."""
        async with asyncio.timeout(DEADLINE):
            await self.session.commit_user_turn(transcript_timeout=0.1)

    async def interrupt_at(self, words: int, saying: str) -> str:
        """Cut the agent off after it has played `words` words, and say something; the new reply.

        The speaker must have been told to `hold()` before the agent spoke; it plays freely after.
        """
        await self.agent_speaking(words)
        self.speaker.play(words)
        cuts, replies = self.speaker.cuts, len(self.replies)
        await self._speak(saying)
        await self.until(lambda: self.speaker.cuts > cuts, "the speaker to be cut off")
        self.speaker.release()
        if words:
            await self.until(lambda: len(self.replies) > replies, "the interrupted reply")
            self._replies_given = replies + 1
        return await self._answered()

    # The caller types

    async def types(self, text: str) -> str:
        """One typed turn through `session.run`; the agent's reply. Raises what the model raised."""
        async with asyncio.timeout(DEADLINE):
            await self.session.run(user_input=text)
        return await self.reply()

    # The agent

    async def reply(self) -> str:
        """The agent's next message that no verb has returned yet, once it is in the conversation."""
        wanted = self._replies_given + 1
        await self.until(lambda: len(self.replies) >= wanted, f"reply {wanted} of the agent")
        self._replies_given = wanted
        # The message is announced one step before the agent counts as silent.
        await settle()
        return self.replies[wanted - 1].text_content or ""

    async def agent_speaking(self, words: int = 0) -> None:
        """Wait until the agent is heard, with that many words still to be played."""
        await self.until(
            lambda: self.speaker.playing and self.speaker.waiting_words >= words, "the agent to speak"
        )

    async def turn_over(self) -> None:
        """Wait until nothing is going on: no open turn of the caller, no reply being made or played.

        A reply that a held speaker has begun counts as played, since it would never end.
        """
        held = asyncio.ensure_future(
            self.until(lambda: self.speaker.held and self.speaker.playing, "the turn to be over")
        )
        idle = asyncio.ensure_future(self.session.wait_for_idle())
        try:
            done, _ = await asyncio.wait({held, idle}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            held.cancel()
            idle.cancel()
        await settle()

    async def handoff(self, agent: Agent) -> None:
        """Hand the call to another agent, and wait until it has taken over."""
        mark = len(self.events.happened)
        self.session.update_agent(agent)
        await self.wait_for(
            "conversation_item_added",
            lambda e: e.item.type == "agent_handoff" and e.item.new_agent_id == agent.id,
            after=mark,
        )
        await self.turn_over()

    async def _speak(self, *finals: str) -> None:
        await self._caller.says(*finals)
        if self.turn_detection == "manual":
            await self.commit()

    async def _answered(self) -> str:
        text = await self.reply()
        self._late_words()
        return text

    def _late_words(self) -> None:
        if self._realtime is not None and self._realtime.transcripts == "after":
            self._realtime.current.transcribe()

    # The end, and waiting

    async def hang_up(self) -> None:
        """End the call, as when the caller leaves; nothing happens when it is over already."""
        async with asyncio.timeout(DEADLINE):
            await self.session.aclose()

    async def wait_for(
        self, name: str, predicate: Callable[[Any], bool] | None = None, *, after: int = 0
    ) -> Any:
        """The first event of that name, past or coming, for which `predicate` holds.

        `after=len(call.events.happened)` leaves out what has happened so far.
        """
        return await self.events.wait_for(name, predicate, after=after)

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until `condition` holds; looked at when any scripted part or the session changes."""
        try:
            await self.board.until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.events}") from None
