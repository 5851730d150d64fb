"""The agent of the terminal chat: its words, and the tools for the caller's wishes about the memory."""

from __future__ import annotations

from typing import Any

from livekit.agents import ChatContext, ChatMessage, function_tool

from memory import SupermemoryAgent

from .demo_words import NOT_PAUSED, PAUSED

_WISHES = ("do_not_remember", "remember_again")

INSTRUCTIONS = (
    "You are a friendly assistant who remembers the people you talk to. You are chatting in a terminal: "
    "answer in one to three short sentences of plain text, without markdown. Use what you know about the "
    "caller where it helps. Never say that something was saved or forgotten unless a tool said so. "
    "When the caller says that something is not to be remembered, call do_not_remember before you answer; "
    "when they ask to remember again, call remember_again."
)


class ChatAgent(SupermemoryAgent):
    """Answers in the terminal, and knows when the memory is paused."""

    @function_tool
    async def do_not_remember(self) -> str:
        """Stop storing this conversation, the caller's current message included. Use it when the caller
        says that something is not to be remembered."""
        self.memory.pause()
        return "From here on nothing is stored, until the caller asks to remember again."

    @function_tool
    async def remember_again(self) -> str:
        """Store the conversation again. Use it only when the caller asks for it after do_not_remember."""
        self.memory.resume()
        return "The conversation is stored again from the next message on."

    async def llm_node(self, chat_ctx: ChatContext, tools: list[Any], model_settings: Any) -> Any:
        # Paused or resumed by a command, the model would not know it and could promise the wrong thing.
        paused = self.memory.state == "paused"
        if paused or any(item.type == "function_call" and item.name in _WISHES for item in chat_ctx.items):
            chat_ctx = chat_ctx.copy()
            chat_ctx.items.insert(0, ChatMessage(role="system", content=[PAUSED if paused else NOT_PAUSED]))
        return super().llm_node(chat_ctx, tools, model_settings)
