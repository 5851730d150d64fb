"""The agent of the terminal chat: its words, and the tools for the caller's wishes about the memory."""

from __future__ import annotations

from livekit.agents import function_tool

from memory import SupermemoryAgent

INSTRUCTIONS = (
    "You are a friendly assistant who remembers the people you talk to. You are chatting in a terminal: "
    "answer in one to three short sentences of plain text, without markdown. Use what you know about the "
    "caller where it helps. Never say that something was saved or forgotten unless a tool said so. "
    "When the caller says that something is not to be remembered, call do_not_remember before you answer; "
    "when they ask to remember again, call remember_again."
)


class ChatAgent(SupermemoryAgent):
    """Answers in the terminal, and pauses the memory on request."""

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
