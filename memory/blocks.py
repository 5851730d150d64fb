"""The memory block as an item of a chat context: made, found, placed and taken out again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from livekit.agents import ChatContext
from livekit.agents.llm import ChatItem, ChatMessage
from livekit.agents.llm.chat_context import DYNAMIC_INSTRUCTIONS_MESSAGE_ID

from . import prompt
from .facts import Fact

MARK = "supermemory_block"
"""Key in a message's `extra`: LiveKit copies it, compares nothing by it and sends it to no provider."""

_TELLING = ("search_memories", "forget")
_DISOWNED = "This was about another person."


def is_block(item: ChatItem) -> bool:
    """Whether a chat item is a memory block."""
    return isinstance(item, ChatMessage) and bool(item.extra.get(MARK))


def make(facts: Sequence[Fact], created_at: float, note: str = "") -> ChatMessage:
    """A block of these facts, with the caller's privilege: what callers said is no system text."""
    text = prompt.block(facts, datetime.now(UTC), note)
    return ChatMessage(role="user", content=[text], extra={MARK: True}, created_at=created_at)


def strip(chat_ctx: ChatContext) -> None:
    """Takes every block out."""
    if any(is_block(item) for item in chat_ctx.items):
        chat_ctx.items = [item for item in chat_ctx.items if not is_block(item)]


def disown(chat_ctx: ChatContext, before: float) -> None:
    """Takes out what the memory's tools answered before that time: it was about somebody else."""
    chat_ctx.items = [_disowned(item) if _tells(item, before) else item for item in chat_ctx.items]


def _tells(item: ChatItem, before: float) -> bool:
    return (
        item.type == "function_call_output"
        and item.name in _TELLING
        and item.output != _DISOWNED
        and item.created_at < before
    )


def _disowned(item: ChatItem) -> ChatItem:
    # A realtime model is told what changed by the ids of the items.
    return item.model_copy(update={"id": f"{item.id}_disowned", "output": _DISOWNED})


def last_user_message(chat_ctx: ChatContext) -> ChatMessage | None:
    """The caller's last message, in a context without blocks."""
    for item in reversed(chat_ctx.items):
        if isinstance(item, ChatMessage) and item.role == "user":
            return item
    return None


def insert(chat_ctx: ChatContext, facts: Sequence[Fact], before: ChatMessage | None, note: str = "") -> None:
    """Puts a block just before the message `before`, else behind the agent's instructions.

    In the last place it would be what the model answers, in the first it would demote the instructions.
    """
    items = list(chat_ctx.items)
    if before is not None:
        index, created_at = items.index(before), just_before(before)
    else:
        index = next((i + 1 for i, item in enumerate(items) if _is_instructions(item)), 0)
        if items[index : index + 1] and items[index].id == DYNAMIC_INSTRUCTIONS_MESSAGE_ID:
            index += 1  # the second half of the instructions
        created_at = items[index - 1].created_at if index else time.time()
    items.insert(index, make(facts, created_at, note))
    chat_ctx.items = items


def just_before(message: ChatMessage) -> float:
    """A time that sorts before `message` and behind all that was there before it."""
    return message.created_at - 1e-6


def _is_instructions(item: ChatItem) -> bool:
    return isinstance(item, ChatMessage) and item.role in ("system", "developer")
