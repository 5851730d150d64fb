"""An `Agent` with memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livekit.agents import Agent, ChatContext
from livekit.agents.llm.chat_context import Instructions

from .livekit import SupermemoryLiveKit


class SupermemoryAgent(Agent):
    """An agent that recalls before each reply and has the memory's tools.

    Tools given here win over the memory's tool of the same name. Attaches the memory to its session on
    entering where nothing is attached; a subclass with its own `on_enter` calls `super().on_enter()`.
    """

    def __init__(
        self,
        memory: SupermemoryLiveKit,
        *,
        instructions: str | Instructions,
        chat_ctx: ChatContext | None = None,
        tools: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        given = list(tools or [])
        taken = {_name(tool) for tool in given}
        ours = [tool for tool in memory.tools() if _name(tool) not in taken]
        super().__init__(instructions=instructions, chat_ctx=chat_ctx, tools=[*given, *ours], **kwargs)
        self.memory = memory

    async def on_enter(self) -> None:
        self.memory.attach_when_free(self.session)


def _name(tool: Any) -> str:
    return str(getattr(tool, "id", ""))
