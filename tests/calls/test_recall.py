"""What a reply knows, in spoken and typed turns of real sessions."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import Agent, AgentTask, ChatContext, llm
from supermemory import AsyncSupermemory

from memory import MemoryConfigurationError, SupermemoryAgent
from memory.blocks import is_block
from memory.embedded import Faults
from tests.calls.kit import Make, blocks, by_caller, call_with, recalls, searches, stored, tell
from tests.harness import Call, Reply, Request, ScriptedSTT, ToolCall


async def test_what_the_caller_said_is_known_in_the_next_call_and_only_to_them(remember_for: Make) -> None:
    """The promise of the project, with nothing but speech."""
    memory = remember_for()
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
    await memory.aclose()

    async with call_with(remember_for()) as call:
        await call.says("What should I cook tonight?")
    assert "vegetarian" in call.model.last.prompt

    async with call_with(remember_for("bob")) as call:
        await call.says("What should I cook tonight?")
    assert "vegetarian" not in call.model.last.prompt


@pytest.mark.parametrize("preemptive", [True, False])
async def test_a_spoken_turn_costs_one_model_call_as_without_memory(
    remember_for: Make, client: AsyncSupermemory, preemptive: bool
) -> None:
    """A block put into the turn's context instead would throw the preemptive reply away and pay twice."""
    await tell(client, "The caller is vegetarian")
    async with call_with(remember_for(), preemptive=preemptive) as call:
        await call.says("What should I cook?")
        await call.says("And to drink?")
    assert len(call.model.requests) == 2
    assert all("vegetarian" in request.prompt for request in call.model.requests)


async def test_block_stands_just_before_the_question_with_the_callers_privilege(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Behind the question it would be what the model answers; as a system message it would be an order."""
    await tell(client, "The caller is vegetarian")
    async with call_with(remember_for()) as call:
        await call.says("What should I cook?")
    messages = call.model.last.messages
    assert [message.role for message in messages[-2:]] == ["user", "user"]
    assert is_block(messages[-2])
    assert messages[-1].text_content == "What should I cook?"


async def test_after_twenty_turns_there_is_one_block_in_the_prompt_and_none_in_the_history(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Blocks that stay would fill the context and be stored as if the caller had said them."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        for number in range(20):
            await call.says(f"Question number {number} about dinner?")
    await memory.aclose()
    assert [len(blocks(request)) for request in call.model.requests] == [1] * 20
    assert "caller_memory" not in str(call.session.history.to_dict())
    assert "caller_memory" not in str(call.transcript)
    lines = await stored(client)
    assert len(by_caller(lines)) == 20
    assert "caller_memory" not in str(lines)


@pytest.mark.parametrize(
    ("mode", "profile", "search"), [("profile", True, False), ("query", False, True), ("full", True, True)]
)
@pytest.mark.parametrize("typed", [False, True])
async def test_modes_ask_for_what_their_table_says(
    remember_for: Make, faults: Faults, mode: str, profile: bool, search: bool, typed: bool
) -> None:
    """Spoken and typed turns alike."""
    async with call_with(remember_for(mode=mode)) as call:
        await (call.types if typed else call.says)("Where do I live?")
    assert bool(faults.seen("profile")) is profile
    assert searches(faults) == (["Where do I live?"] if search else [])


async def test_profile_is_asked_once_and_each_turn_searched_once(remember_for: Make, faults: Faults) -> None:
    """Searches cost money."""
    async with call_with(remember_for()) as call:
        await call.says("Where do I live?")
        await call.says("What do I eat?")
    assert searches(faults) == ["Where do I live?", "What do I eat?"]
    assert len(faults.seen("profile")) == 1


async def test_backchannels_are_not_searched(remember_for: Make, faults: Faults) -> None:
    """Nothing is remembered about "mm-hm"."""
    async with call_with(remember_for()) as call:
        for words in ("Okay.", "Mm-hm, yeah", "thanks!", "Yes"):
            await call.says(words)
    assert searches(faults) == []


async def test_turn_of_several_finals_is_searched_with_all_its_words(
    remember_for: Make, faults: Faults
) -> None:
    """The last part alone often has no meaning."""
    async with call_with(remember_for()) as call:
        await call.says("I will be in Boston", "what should I eat there")
    assert searches(faults)[-1] == "I will be in Boston what should I eat there"


async def test_tool_follow_up_reuses_the_block(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """The model is asked again for one turn; the memory is not."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for()
    script = [Reply(calls=[ToolCall("search_memories", {"query": "diet"})]), Reply("Lentils.")]

    def model(request: Request) -> Reply:
        return script[request.tool_output is not None]

    async with call_with(memory, model=model, tools=memory.tools()) as call:
        await call.says("What should I cook?")
    assert [len(blocks(request)) for request in call.model.requests] == [1, 1]
    assert searches(faults) == ["What should I cook?", "diet"]


async def test_greeting_knows_the_profile(remember_for: Make, client: AsyncSupermemory) -> None:
    """A reply before the caller's first word has nothing to search for, but knows who calls."""
    await tell(client, "The caller's name is Alice")

    class Greeter(Agent):
        async def on_enter(self) -> None:
            self.session.generate_reply(instructions="Greet the caller.")

    async with call_with(remember_for(), Greeter(instructions="Be brief.")) as call:
        await call.reply()
    request = call.model.requests[0]
    assert "name is Alice" in request.prompt
    assert request.messages[-1].role != "assistant"
    assert not is_block(request.messages[-1])


async def test_interims_are_no_turns(remember_for: Make, faults: Faults) -> None:
    """Only final words are searched; half of a word finds anything."""
    async with call_with(remember_for()) as call:
        await call.speech_started()
        await call.interim("where do")
        await call.interim("where do I")
        await call.final("Where do I live?")
        await call.speech_ended()
        await call.reply()
    assert searches(faults) == ["Where do I live?"]


async def test_stt_without_interims_recalls(remember_for: Make, client: AsyncSupermemory) -> None:
    """Local speech recognition brings whole sentences only."""
    await tell(client, "The caller lives in Boston")
    async with call_with(remember_for(), stt=ScriptedSTT(streaming=False)) as call:
        await call.says("Where do I live?")
    assert "Boston" in call.model.last.prompt


async def test_every_agent_of_the_session_recalls(remember_for: Make, client: AsyncSupermemory) -> None:
    """After a handoff, and on the way back."""
    await tell(client, "The caller is vegetarian")
    first, second = Agent(instructions="First."), Agent(instructions="Second.")
    async with call_with(remember_for(), first) as call:
        await call.says("What should I cook?")
        await call.handoff(second)
        await call.says("What should I order?")
        await call.handoff(first)
        await call.says("What should I bake?")
    assert [len(blocks(request)) for request in call.model.requests] == [1, 1, 1]


async def test_supermemory_agent_attaches_by_itself(remember_for: Make, client: AsyncSupermemory) -> None:
    """One line less to forget."""
    await tell(client, "The caller is vegetarian")
    async with Call(SupermemoryAgent(remember_for(), instructions="Be brief."), model="Fine.") as call:
        await call.says("What should I cook?")
    assert "vegetarian" in call.model.last.prompt
    assert {"search_memories", "remember", "forget"} <= set(call.model.last.tools)


async def test_all_ways_of_recall_at_once_give_one_block_and_one_model_call(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """People combine what examples show."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for()

    class Everything(SupermemoryAgent):
        async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
            return Agent.default.llm_node(self, await memory.enrich(chat_ctx), tools, model_settings)

        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            await memory.on_user_turn_completed(turn_ctx, new_message)

    chat_ctx = ChatContext()
    assert await memory.preload(chat_ctx)
    assert await memory.preload(chat_ctx)
    agent = Everything(memory, instructions="Be brief.", chat_ctx=chat_ctx)
    async with call_with(memory, agent) as call:
        await call.says("What should I cook?")
    assert len(call.model.requests) == 1
    assert len(blocks(call.model.requests[0])) == 1
    assert searches(faults) == ["What should I cook?"]


async def test_manual_way_recalls_without_attach(remember_for: Make, client: AsyncSupermemory) -> None:
    """The manual hook, for an agent of one's own."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for()

    class Manual(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            await memory.on_user_turn_completed(turn_ctx, new_message)

    async with Call(Manual(instructions="Be brief."), model="Fine.", preemptive=False) as call:
        await call.says("What should I cook?")
    messages = call.model.last.messages
    assert is_block(messages[-2])
    assert messages[-1].text_content == "What should I cook?"


async def test_agent_used_in_a_second_call_does_not_show_the_first_callers_memory(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """An agent object outlives its session in some projects."""
    await tell(client, "The caller is vegetarian")
    await tell(client, "The caller eats meat", "bob")
    agent = Agent(instructions="Be brief.")
    for caller in ("alice", "bob"):
        async with call_with(remember_for(caller), agent) as call:
            await call.says("What should I cook?")
    assert "eats meat" in call.model.last.prompt
    assert "vegetarian" not in call.model.last.prompt
    assert "llm_node" not in vars(agent)


async def test_second_memory_on_a_session_is_refused(remember_for: Make) -> None:
    """Two would show two people's facts."""
    call = call_with(remember_for())
    with pytest.raises(MemoryConfigurationError, match="Another memory"):
        remember_for("bob").attach(call.session)
    async with call:
        pass


async def test_recall_is_reported_once_per_reply_with_what_was_shown(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The chat and the page show it; a preemptive attempt that was thrown away leaves no trace."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for()
    told = recalls(memory)
    async with call_with(memory) as call:
        await call.says("What", "should I", "cook?")
    assert len(told) == 1
    assert [fact.text for fact in told[0].facts] == ["The caller is vegetarian"]
    assert told[0].waited >= 0


async def test_call_does_not_recall_itself(remember_for: Make) -> None:
    """What was said a minute ago is in the conversation already."""
    async with call_with(remember_for(capture_interval=0.0)) as call:
        await call.says("I live in Boston")
        await call.says("Tell me about Boston please")
        await call.says("Where do I live, Boston?")
    assert all(not blocks(request) for request in call.model.requests)


async def test_no_tag_means_no_memory_and_a_normal_call(
    remember_for: Make, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    """Without an identity the agent works as an agent without memory, and says so once."""
    memory = remember_for("undefined")
    assert memory.container_tag is None
    async with call_with(memory) as call:
        assert await call.says("Hello there, what do you know?") == "All right."
    assert faults.requests == []
    assert sum("memory is off" in record.message for record in caplog.records) == 1


async def test_brand_new_caller_is_normal(remember_for: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing stored yet is no failure."""
    async with call_with(remember_for()) as call:
        await call.says("What do you know about me?")
    assert not blocks(call.model.last)
    assert not [record for record in caplog.records if record.name == "memory" and record.levelname != "INFO"]


async def test_task_of_its_own_context_knows_the_profile(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """An AgentTask starts with an empty context."""
    await tell(client, "The caller is vegetarian")

    class Ask(AgentTask[str]):
        def __init__(self) -> None:
            super().__init__(instructions="Ask for the address.")

        async def on_enter(self) -> None:
            await self.session.generate_reply(instructions="Ask.")
            self.complete("done")

    class Starter(Agent):
        async def on_enter(self) -> None:
            await Ask()

    async with call_with(remember_for(), Starter(instructions="Be brief.")) as call:
        await call.reply()
    assert "vegetarian" in call.model.requests[0].prompt
