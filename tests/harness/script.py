"""What a scripted model is asked and what it answers; shared by the text and the realtime model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from livekit.agents import llm


@dataclass(frozen=True)
class ToolCall:
    """One tool that the model calls, with its arguments by name."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments_json(self) -> str:
        return json.dumps(dict(self.arguments))


@dataclass(frozen=True)
class Reply:
    """One answer of the model: words, tool calls, or both (the words come first)."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    delay: float = 0.0
    """Seconds before the first word."""
    gate: asyncio.Event | None = None
    """Holds the first word back until the test sets it."""
    error: Exception | None = None
    """Raised instead of any word, after `delay` and `gate`."""

    async def ready(self) -> None:
        """Wait as scripted, then raise the scripted error if there is one."""
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error


@dataclass
class Request:
    """What one call of the model saw. The items are copies: what happens later does not change them."""

    items: list[llm.ChatItem]
    tools: list[str]
    """Names of the tools on offer."""
    tool_choice: Any = None
    at: float = field(default_factory=time.monotonic)
    """When the model was asked, in seconds of the monotonic clock."""
    cancelled: bool = False
    """True once the framework gave up on this call before the model had finished."""

    @property
    def messages(self) -> list[llm.ChatMessage]:
        return [item for item in self.items if item.type == "message"]

    @property
    def instructions(self) -> str:
        """The text of every system message, in order."""
        return "\n".join(m.text_content or "" for m in self.messages if m.role in ("system", "developer"))

    @property
    def user_text(self) -> str:
        """What the caller said last, or "" when the model was asked to speak first."""
        last = next((m for m in reversed(self.messages) if m.role == "user"), None)
        return (last.text_content or "") if last else ""

    @property
    def user_message_id(self) -> str | None:
        """Id of the caller's last message; a tool's follow-up request carries the same one."""
        return next((m.id for m in reversed(self.messages) if m.role == "user"), None)

    @property
    def tool_output(self) -> str | None:
        """The output being answered, when this request follows a tool call; else None."""
        last = self.items[-1] if self.items else None
        return last.output if last is not None and last.type == "function_call_output" else None

    @property
    def prompt(self) -> str:
        """Everything the model read, one line an item: for asserting that words are, or are not, there."""
        return "\n".join(_line(item) for item in self.items)

    @property
    def replies_so_far(self) -> int:
        """How many answers of the agent stand in the prompt; words and the calls after them are one."""
        count, inside = 0, False
        for item in self.items:
            spoken = item.type == "message" and item.role == "assistant"
            if spoken or item.type == "function_call":
                count += not (inside and not spoken)
                inside = True
            else:
                inside = False
        return count


Script: TypeAlias = "str | Reply | Sequence[str | Reply] | Callable[[Request], str | Reply]"
"""How a test scripts a model.

A text or `Reply` is the answer to everything. A sequence is one answer after the other: the n-th is
given when the prompt holds n answers, so a preemptive attempt that is thrown away uses none up, and
whatever the agent says by itself (a greeting) does. A function decides by what the model was shown.
"""


def answer(script: Script, request: Request) -> Reply:
    """The scripted reply to `request`; `AssertionError` when a sequence has run out."""
    if callable(script):
        reply = script(request)
    elif isinstance(script, (str, Reply)):
        reply = script
    else:
        done = request.replies_so_far
        if done >= len(script):
            raise AssertionError(f"the script has {len(script)} answers and was asked for one more")
        reply = script[done]
    return Reply(reply) if isinstance(reply, str) else reply


def copies(items: Iterable[llm.ChatItem]) -> list[llm.ChatItem]:
    """Deep copies, since the framework goes on using the items it handed over."""
    # A configuration item holds the agent's tools, which hold whatever they work on.
    return [item.model_copy(deep=item.type != "agent_config_update") for item in items]


def _line(item: llm.ChatItem) -> str:
    if item.type == "message":
        return f"{item.role}: {item.text_content or ''}"
    if item.type == "function_call":
        return f"call: {item.name}({item.arguments})"
    if item.type == "function_call_output":
        return f"output: {item.output}"
    return f"({item.type})"
