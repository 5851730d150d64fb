"""Recall in front of an agent's `llm_node`, the one place that every reply goes through."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from livekit.agents import Agent, ChatContext

from . import blocks

logger = logging.getLogger("memory")

_MARK = "_supermemory_original"


class AgentWrapper:
    """Puts `enrich` in front of the `llm_node` of agents, and takes it away again.

    LiveKit has no session-wide hook, but looks `llm_node` up on the agent for each reply. One agent has
    one wrapper: a later session's replaces an earlier one's, else an agent that is used twice would show
    the first caller's memory to the second.
    """

    def __init__(self, enrich: Callable[[ChatContext], Awaitable[ChatContext]]) -> None:
        self._enrich = enrich
        self._wrapped: list[tuple[Agent, Callable[..., Any]]] = []

    def wrap(self, agent: Agent | None) -> None:
        """Wraps `agent`, unless it is wrapped by this object or None."""
        if agent is None or any(
            agent is known and vars(agent).get("llm_node") is ours for known, ours in self._wrapped
        ):
            return
        current = agent.llm_node
        original = getattr(current, _MARK, current)

        async def llm_node(chat_ctx: ChatContext, tools: list[Any], model_settings: Any) -> Any:
            try:
                chat_ctx = await self._enrich(chat_ctx)
            except Exception as error:  # LiveKit would answer it with silence
                _log_failure("memory recall failed; the call goes on", error)
            reply = original(chat_ctx, tools, model_settings)
            return await reply if inspect.iscoroutine(reply) else reply

        setattr(llm_node, _MARK, original)
        agent.llm_node = llm_node  # type: ignore[method-assign]  # LiveKit awaits a coroutine here
        self._wrapped.append((agent, llm_node))

    async def strip(self, before: float) -> None:
        """Takes what memory has told until then out of what the agents know. Never raises.

        The prompts of `llm_node` are made without it anyway; a realtime model has read it, and is told.
        """
        for agent in {id(agent): agent for agent, _ in self._wrapped}.values():
            try:
                chat_ctx = agent.chat_ctx.copy()
                blocks.strip(chat_ctx)
                blocks.disown(chat_ctx, before)
                if chat_ctx.items != list(agent.chat_ctx.items):
                    await agent.update_chat_ctx(chat_ctx, exclude_invalid_function_calls=False)
            except Exception as error:
                _log_failure("memory block could not be taken back", error)

    def restore(self) -> None:
        """Gives every agent its own `llm_node` back, where nobody else has replaced ours."""
        for agent, ours in self._wrapped:
            if vars(agent).get("llm_node") is ours:
                original = getattr(ours, _MARK)
                del agent.llm_node
                if agent.llm_node != original:  # it was an attribute of this one agent before us
                    agent.llm_node = original  # type: ignore[method-assign]
        self._wrapped.clear()


def _log_failure(message: str, error: Exception) -> None:
    logger.error(message, extra={"error": type(error).__name__})
