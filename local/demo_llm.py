"""The demo model: a language model's place in a session, filled by rules.

It gets what any model gets, the chat context with its memory block and the tools, and it has nothing
else to answer from. So it shows that memory reaches the prompt and that the tools work, on a machine
with no model at all. It says nothing about how well a real model would use them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from livekit.agents import llm, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr

from memory.prompt import PAUSED

from .demo_rules import (
    ASK,
    LONGEST_MESSAGE,
    ToolCall,
    on_confirmation,
    on_message,
    on_order,
    on_tool_output,
)
from .demo_words import about_caller, content_words, facts_in, plain, sentences, to_you


class DemoLLM(llm.LLM[Any]):
    """Answers by rules from the chat context, and calls the memory tools when they are offered."""

    @property
    def model(self) -> str:
        return "demo"

    @property
    def provider(self) -> str:
        return "rules"

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
        offered = [] if tool_choice == "none" else tools or []
        return _DemoStream(self, chat_ctx=chat_ctx, tools=offered, conn_options=conn_options)


class _DemoStream(llm.LLMStream):
    async def _run(self) -> None:
        move = next_move(self.chat_ctx, frozenset(llm.ToolContext(self.tools).function_tools))
        reply = move if isinstance(move, str) else move.says
        deltas = [llm.ChoiceDelta(role="assistant", content=token) for token in re.findall(r"\S+\s*", reply)]
        if isinstance(move, ToolCall):
            call = llm.FunctionToolCall(
                name=move.name, arguments=json.dumps(move.arguments), call_id=utils.shortuuid("call_")
            )
            deltas.append(llm.ChoiceDelta(role="assistant", tool_calls=[call]))
        chunk_id = utils.shortuuid("demo_")
        for delta in deltas:
            self._event_ch.send_nowait(llm.ChatChunk(id=chunk_id, delta=delta))


def next_move(chat_ctx: llm.ChatContext, tools: frozenset[str]) -> str | ToolCall:
    """What the demo model says next, or the one tool it calls first."""
    items = [item for item in chat_ctx.items if not _is_block(item)]
    asked_at = max((at for at, item in enumerate(items) if _role(item) == "user"), default=-1)
    told = _told_in_this_call(items[:asked_at])
    facts = [*told, *_remembered(chat_ctx)]

    outputs = [item for item in items[asked_at + 1 :] if isinstance(item, llm.FunctionCallOutput)]
    question = _text(items[asked_at]) if asked_at >= 0 else ""
    if outputs:
        last = outputs[-1]
        return on_tool_output(last.name, last.output, failed=last.is_error, question=question)
    if asked_at < 0 or _role(items[-1]) in ("system", "developer"):
        return on_order(_text(items[-1]) if items else "", facts)

    pending = _pending_forget(items[:asked_at])
    if pending is not None and (answer := on_confirmation(question, pending)):
        return answer
    return on_message(question, facts, tools, paused=PAUSED in _block_lines(chat_ctx))


def _pending_forget(before: Sequence[llm.ChatItem]) -> str | None:
    """The query of a forget that was previewed in the turn just before, if it awaits the caller's word."""
    for item in reversed(before):
        if isinstance(item, llm.FunctionCallOutput) and ASK not in item.output:
            return None
        if isinstance(item, llm.FunctionCall):
            arguments = _arguments(item)
            awaits = item.name == "forget" and not arguments.get("confirmed")
            return str(arguments.get("query")) if awaits else None
        if _role(item) == "user":
            return None
    return None


def _told_in_this_call(before: Sequence[llm.ChatItem]) -> list[str]:
    """What the caller said about themselves earlier in this call, newest first, but for what is forgotten."""
    told: list[str] = []
    for item in before:
        if isinstance(item, llm.FunctionCall) and item.name == "forget" and _arguments(item).get("confirmed"):
            gone = content_words(str(_arguments(item).get("query")))
            told = [fact for fact in told if not gone & content_words(fact)]
        elif _role(item) == "user":
            told[:0] = [to_you(sentence) for sentence in sentences(_text(item)) if about_caller(sentence)]
    return told


def _remembered(chat_ctx: llm.ChatContext) -> list[str]:
    notes = (line[2:] for line in _block_lines(chat_ctx) if line.startswith("- "))
    return [to_you(fact) for fact in facts_in(notes)]


def _block_lines(chat_ctx: llm.ChatContext) -> list[str]:
    block = next((item for item in reversed(chat_ctx.items) if _is_block(item)), None)
    return (block.text_content or "").splitlines() if isinstance(block, llm.ChatMessage) else []


def _is_block(item: llm.ChatItem) -> bool:
    return isinstance(item, llm.ChatMessage) and bool(item.extra.get("supermemory_block"))


def _role(item: llm.ChatItem) -> str | None:
    return item.role if isinstance(item, llm.ChatMessage) else None


def _text(item: llm.ChatItem) -> str:
    return plain(item.text_content or "")[:LONGEST_MESSAGE] if isinstance(item, llm.ChatMessage) else ""


def _arguments(call: llm.FunctionCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}
