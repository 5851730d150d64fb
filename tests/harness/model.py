"""A language model that answers by script and remembers every prompt."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from livekit.agents import NOT_GIVEN, APIConnectOptions, NotGivenOr, llm, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

from .script import Request, Script, answer, copies
from .waiting import Board


class ScriptedLLM(llm.LLM[Any]):
    """Answers as `script` says; `requests` holds what each call saw, in the order of the calls."""

    def __init__(self, script: Script = "Okay.") -> None:
        super().__init__()
        self.script: Script = script
        self.requests: list[Request] = []
        self.board = Board()

    @property
    def model(self) -> str:
        return "scripted"

    @property
    def last(self) -> Request:
        """The latest request; `IndexError` when the model was never asked."""
        return self.requests[-1]

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[dict[str, Any]] = NOT_GIVEN,
    ) -> llm.LLMStream:
        request = Request(
            items=copies(chat_ctx.items),
            tools=sorted(llm.ToolContext(tools or []).function_tools),
            tool_choice=tool_choice if utils.is_given(tool_choice) else None,
        )
        self.requests.append(request)
        self.board.changed()
        return _Stream(self, request, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class _Stream(llm.LLMStream):
    def __init__(
        self,
        model: ScriptedLLM,
        request: Request,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        conn_options: APIConnectOptions,
    ) -> None:
        super().__init__(model, chat_ctx=chat_ctx, tools=tools, conn_options=conn_options)
        self._model = model
        self._request = request
        self._id = utils.shortuuid("chat_")

    async def _run(self) -> None:
        try:
            reply = answer(self._model.script, self._request)
            await reply.ready()
            for word in re.findall(r"\s*\S+\s*", reply.text):
                self._send(llm.ChoiceDelta(role="assistant", content=word))
            for call in reply.calls:
                wanted = llm.FunctionToolCall(
                    name=call.name, arguments=call.arguments_json, call_id=utils.shortuuid("call_")
                )
                self._send(llm.ChoiceDelta(role="assistant", tool_calls=[wanted]))
        except asyncio.CancelledError:
            self._request.cancelled = True
            raise
        finally:
            self._model.board.changed()

    def _send(self, delta: llm.ChoiceDelta) -> None:
        self._event_ch.send_nowait(llm.ChatChunk(id=self._id, delta=delta))
