"""The agent, the model and the tool that the tests of the harness have in common."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from livekit.agents import Agent, ModelSettings, function_tool, llm

from tests.harness import Request


def echo(request: Request) -> str:
    """A model that shows what it was asked."""
    return f"You said {request.user_text}"


@function_tool
async def remember(text: str) -> str:
    """Remember a fact."""
    return f"noted: {text}"


class Plain(Agent):
    """Counts the runs of its hook and of its language model node."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(instructions="Be brief.", **kwargs)
        self.hooked: list[str] = []
        self.node_runs = 0

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        self.hooked.append(new_message.text_content or "")

    def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncIterable[Any]:
        self.node_runs += 1
        return Agent.default.llm_node(self, chat_ctx, tools, model_settings)
