"""A speech-to-speech model that answers by script, on livekit-agents' own realtime interface."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, Literal

from livekit import rtc
from livekit.agents import NOT_GIVEN, NotGivenOr, llm, utils

from .script import Request, Script, answer, copies
from .voice import WORD_SECONDS, silence
from .waiting import Board

Transcripts = Literal["before", "after", "never"]


class ScriptedRealtime(llm.RealtimeModel):
    """Hears the caller itself and speaks without a synthesiser.

    `turn_detection` says who decides that the caller has finished: the provider ("server") or the
    session's voice activity detector ("client"). `transcripts` says when the provider reports the
    caller's words: before it answers, after the answer was played (so the caller's item comes late),
    or never. As the real ones do, a server that detects turns stamps a transcript with the time the
    turn began. `mutable=False` is a provider that takes no new instructions, context or tools.
    """

    def __init__(
        self,
        script: Script = "Okay.",
        *,
        turn_detection: Literal["server", "client"] = "server",
        transcripts: Transcripts = "before",
        mutable: bool = True,
    ) -> None:
        super().__init__(
            capabilities=llm.RealtimeCapabilities(
                message_truncation=True,
                turn_detection=turn_detection == "server",
                user_transcription=transcripts != "never",
                auto_tool_reply_generation=False,
                audio_output=True,
                manual_function_calls=True,
                mutable_chat_context=mutable,
                mutable_instructions=mutable,
                mutable_tools=mutable,
                per_response_tool_choice=True,
            )
        )
        self.script: Script = script
        self.transcripts = transcripts
        self.requests: list[Request] = []
        self.sessions: list[ScriptedRealtimeSession] = []
        self.board = Board()

    @property
    def last(self) -> Request:
        """The latest request; `IndexError` when the model was never asked."""
        return self.requests[-1]

    @property
    def current(self) -> ScriptedRealtimeSession:
        """The provider session in use; a handoff may have opened a new one."""
        return self.sessions[-1]

    def session(self, *, turn_detection_disabled: bool = False) -> ScriptedRealtimeSession:
        session = ScriptedRealtimeSession(self)
        self.sessions.append(session)
        self.board.changed()
        return session

    async def aclose(self) -> None:
        for session in self.sessions:
            await session.aclose()


class ScriptedRealtimeSession(llm.RealtimeSession[Any]):
    """One connection to the provider. The lists hold what the framework asked of it, in order."""

    def __init__(self, model: ScriptedRealtime) -> None:
        super().__init__(model)
        self._model = model
        self._items = llm.ChatContext.empty()
        self._tools = llm.ToolContext.empty()
        self._generation: asyncio.Task[None] | None = None
        self._words: dict[str, str] = {}
        self._untranscribed: list[tuple[str, float | None]] = []
        self._coming: list[str] = []
        self._turn_began: float | None = None
        self.instructions: list[str] = []
        self.contexts: list[list[llm.ChatItem]] = []
        self.truncated: list[tuple[str, int]] = []
        """Message id and the millisecond at which the caller's interruption cut it."""
        self.commits = 0

    # The caller, as the provider hears them

    def speech_started(self) -> None:
        self._turn_began = time.time()
        self.emit("input_speech_started", llm.InputSpeechStartedEvent())

    def speech_stopped(self, text: str) -> None:
        """The server noticed the end of a turn in which `text` was said, and answers it."""
        transcribes = self._model.capabilities.user_transcription
        self.emit("input_speech_stopped", llm.InputSpeechStoppedEvent(user_transcription_enabled=transcribes))
        self._hear(text)
        self._respond(user_initiated=False)

    def will_hear(self, text: str) -> None:
        """What is in the audio that the session is about to commit, with client turn detection."""
        self._coming.append(text)

    def transcribe(self) -> None:
        """Report the words of every turn that were not reported yet."""
        for item_id, began in self._untranscribed:
            self._replace_text(item_id, self._words[item_id])
            self.emit(
                "input_audio_transcription_completed",
                llm.InputTranscriptionCompleted(
                    item_id=item_id, transcript=self._words[item_id], is_final=True, turn_started_at=began
                ),
            )
        self._untranscribed.clear()

    def _hear(self, text: str) -> None:
        item = llm.ChatMessage(role="user", content=[])
        self._words[item.id] = text
        self._append(item)
        if self._model.transcripts != "never":
            self._untranscribed.append((item.id, self._turn_began))
        if self._model.transcripts == "before":
            self.transcribe()
        self._turn_began = None

    # What the framework asks

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return self._items.copy()

    @property
    def tools(self) -> llm.ToolContext:
        return self._tools.copy()

    async def update_instructions(self, instructions: str) -> None:
        self.instructions.append(instructions)

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        self._items = chat_ctx.copy(exclude_handoff=True, exclude_config_update=True)
        self.contexts.append(copies(self._items.items))

    async def update_tools(self, tools: list[llm.Tool]) -> None:
        self._tools = llm.ToolContext(tools)

    def update_options(self, *, tool_choice: NotGivenOr[llm.ToolChoice | None] = NOT_GIVEN) -> None:
        pass

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        pass

    def push_video(self, frame: rtc.VideoFrame) -> None:
        pass

    def commit_audio(self) -> None:
        self.commits += 1
        if self._coming:
            self._hear(self._coming.pop(0))

    def clear_audio(self) -> None:
        self._coming.clear()

    def generate_reply(
        self,
        *,
        instructions: NotGivenOr[str] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> asyncio.Future[llm.GenerationCreatedEvent]:
        created = asyncio.get_running_loop().create_future()
        created.set_result(
            self._respond(
                user_initiated=True,
                instructions=instructions or "",
                tools=llm.ToolContext(tools) if utils.is_given(tools) else None,
                tool_choice=tool_choice or None,
            )
        )
        return created

    def interrupt(self) -> None:
        if self._generation is not None:
            self._generation.cancel()

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Literal["text", "audio"]],
        audio_end_ms: int,
        audio_transcript: NotGivenOr[str] = NOT_GIVEN,
    ) -> None:
        self.truncated.append((message_id, audio_end_ms))
        self._replace_text(message_id, audio_transcript or "")

    async def aclose(self) -> None:
        if self._generation is not None:
            await utils.aio.cancel_and_wait(self._generation)

    # The answer

    def _respond(
        self,
        *,
        user_initiated: bool,
        instructions: str = "",
        tools: llm.ToolContext | None = None,
        tool_choice: Any = None,
    ) -> llm.GenerationCreatedEvent:
        self.interrupt()
        request = Request(
            items=self._seen(instructions),
            tools=sorted((tools or self._tools).function_tools),
            tool_choice=tool_choice,
        )
        self._model.requests.append(request)
        messages = utils.aio.Chan[llm.MessageGeneration]()
        calls = utils.aio.Chan[llm.FunctionCall]()
        self._generation = asyncio.create_task(
            self._generate(request, messages, calls), name="scripted realtime answer"
        )
        # Not in a `finally` of the task: one that is cancelled before its first step runs none.
        self._generation.add_done_callback(lambda _: messages.close())
        self._generation.add_done_callback(lambda _: calls.close())
        event = llm.GenerationCreatedEvent(
            message_stream=messages,
            function_stream=calls,
            user_initiated=user_initiated,
            response_id=utils.shortuuid("resp_"),
        )
        self.emit("generation_created", event)
        self._model.board.changed()
        return event

    def _seen(self, instructions: str) -> list[llm.ChatItem]:
        """What the model knows: it heard the caller's words even where nobody wrote them down."""
        items = copies(self._items.items)
        for item in items:
            if item.type == "message" and not item.content and item.id in self._words:
                item.content = [self._words[item.id]]
        system = [text for text in (self.instructions[-1] if self.instructions else "", instructions) if text]
        return [*(llm.ChatMessage(role="system", content=[text]) for text in system), *items]

    async def _generate(
        self,
        request: Request,
        messages: utils.aio.Chan[llm.MessageGeneration],
        calls: utils.aio.Chan[llm.FunctionCall],
    ) -> None:
        try:
            reply = answer(self._model.script, request)
            await reply.ready()
            if reply.text:
                self._speak(reply.text, messages)
            for call in reply.calls:
                item = llm.FunctionCall(
                    call_id=utils.shortuuid("call_"), name=call.name, arguments=call.arguments_json
                )
                self._append(item)
                calls.send_nowait(item)
        except asyncio.CancelledError:
            request.cancelled = True
            raise
        except Exception as error:
            self.emit(
                "error",
                llm.RealtimeModelError(
                    timestamp=time.time(), label=self._model.label, error=error, recoverable=True
                ),
            )
        finally:
            self._model.board.changed()

    def _speak(self, text: str, messages: utils.aio.Chan[llm.MessageGeneration]) -> None:
        item = llm.ChatMessage(role="assistant", content=[])
        self._append(item)
        words = utils.aio.Chan[str]()
        audio = utils.aio.Chan[rtc.AudioFrame]()
        modalities = asyncio.get_running_loop().create_future()
        modalities.set_result(["audio", "text"])
        messages.send_nowait(
            llm.MessageGeneration(
                message_id=item.id, text_stream=words, audio_stream=audio, modalities=modalities
            )
        )
        for word in re.findall(r"\s*\S+\s*", text):
            words.send_nowait(word)
            audio.send_nowait(silence(WORD_SECONDS))
        words.close()
        audio.close()
        self._replace_text(item.id, text)

    def _append(self, item: llm.ChatItem) -> None:
        before = self._items.items[-1].id if self._items.items else None
        self._items.items.append(item)
        self.emit(
            "remote_item_added",
            llm.RemoteItemAddedEvent(previous_item_id=before, item=item.model_copy(deep=True)),
        )

    def _replace_text(self, item_id: str, text: str) -> None:
        index = self._items.index_by_id(item_id)
        if index is not None:
            self._items.items[index] = self._items.items[index].model_copy(update={"content": [text]})
