"""Recall in front of an agent's `llm_node`, the one place that every reply goes through."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from livekit.agents import Agent, ChatContext

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
            reply = original(await self._enrich(chat_ctx), tools, model_settings)
            return await reply if inspect.iscoroutine(reply) else reply

        setattr(llm_node, _MARK, original)
        agent.llm_node = llm_node  # type: ignore[method-assign]  # LiveKit awaits a coroutine here
        self._wrapped.append((agent, llm_node))

    def restore(self) -> None:
        """Gives every agent its own `llm_node` back, where nobody else has replaced ours."""
        for agent, ours in self._wrapped:
            if vars(agent).get("llm_node") is ours:
                original = getattr(ours, _MARK)
                del agent.llm_node
                if agent.llm_node != original:  # it was an attribute of this one agent before us
                    agent.llm_node = original  # type: ignore[method-assign]
        self._wrapped.clear()
