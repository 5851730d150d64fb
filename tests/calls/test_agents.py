"""Memory in the agents that people have: whatever shape theirs is, it recalls once and is stored once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from livekit.agents import Agent, AgentTask, ChatContext, StopResponse, function_tool, llm
from livekit.agents.llm.chat_context import Instructions
from supermemory import AsyncSupermemory

from memory import SupermemoryLiveKit
from memory.embedded import Faults
from tests.calls.kit import Make, by_caller, call_with, said, searches, shown, stored, tell
from tests.harness import Call, FakeParticipant, FakeRoom, Reply, Request, ToolCall, fake_job

FACT = "The caller is vegetarian"


async def handed_to(call: Call, agent: Agent) -> None:
    await call.until(lambda: call.session.current_agent is agent, "the handoff")


class Seeing(Agent):
    """Notes what its own `llm_node` was handed."""

    def __init__(self) -> None:
        super().__init__(instructions="Be brief.")
        self.seen: list[int] = []

    def note(self, chat_ctx: ChatContext) -> None:
        self.seen.append(sum(FACT in (m.text_content or "") for m in chat_ctx.messages()))


class Generator(Seeing):
    async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> AsyncIterator[Any]:
        self.note(chat_ctx)
        async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
            yield chunk


class ViaSuper(Seeing):
    def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
        self.note(chat_ctx)
        return super().llm_node(chat_ctx, tools, model_settings)


class CoroutineOfIterable(Seeing):
    async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
        self.note(chat_ctx)
        return super().llm_node(chat_ctx, tools, model_settings)


class CoroutineOfText(Seeing):
    async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
        self.note(chat_ctx)
        return "All right."


class PlainText(Seeing):
    def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
        self.note(chat_ctx)
        return "All right."


class OnTheInstance(Seeing):
    def __init__(self) -> None:
        super().__init__()

        async def llm_node(chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
            self.note(chat_ctx)
            return Agent.default.llm_node(self, chat_ctx, tools, model_settings)

        self.llm_node = llm_node  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "form", [Generator, ViaSuper, CoroutineOfIterable, CoroutineOfText, PlainText, OnTheInstance]
)
async def test_own_llm_node_of_every_form_sees_the_block_and_is_given_back(
    remember_for: Make, client: AsyncSupermemory, form: Callable[[], Seeing]
) -> None:
    """What an agent does with the model is its own business; with memory it does the same."""
    await tell(client, FACT)
    agent = form()
    own = agent.llm_node
    for _ in range(2):
        async with call_with(remember_for(), agent) as call:
            assert await call.says("What should I cook?") == "All right."
            assert await call.types("And to drink?") == "All right."
        assert agent.llm_node == own
    assert agent.seen == [1, 1, 1, 1]


async def test_own_llm_node_that_fails_is_neither_masked_nor_run_again(
    remember_for: Make, client: AsyncSupermemory, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is theirs to see, and the next turn works."""
    await tell(client, FACT)

    class Failing(Seeing):
        async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
            self.note(chat_ctx)
            if len(self.seen) == 1:
                raise TypeError("theirs")
            return "All right."

    agent = Failing()
    async with call_with(remember_for(), agent, preemptive=False) as call:
        await call.says("What should I cook?", reply=False)
        assert (agent.seen, call.replies) == ([1], [])
        assert await call.says("What should I cook now?") == "All right."
    assert agent.seen == [1, 1]
    assert [r.exc_info[1].args for r in caplog.records if r.exc_info and r.exc_info[1]] == [("theirs",)]


OURS = [
    "memory.blocks.strip",
    "memory.blocks.insert",
    "memory.recall.Recall.start",
    "memory.recall.Recall.hear",
    "memory.recall.Recall.commit",
    "memory.recall.Recall.for_message",
    "memory.recall.Recall.agent_spoke",
    "memory.binding.Binding.show",
    "memory.capture.Capture.add",
    "memory.turns.Turns._keep",
    "memory.livekit.SupermemoryLiveKit._begin",
]


@pytest.mark.parametrize("name", OURS)
async def test_failure_of_ours_never_reaches_the_call(
    remember_for: Make,
    client: AsyncSupermemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    """A defect in memory is a call without memory; LiveKit would answer a TypeError with silence."""
    await tell(client, FACT)
    call, manual = call_with(remember_for()), remember_for()

    def broken(*_: Any, **__: Any) -> None:
        raise TypeError("secret words")

    monkeypatch.setattr(name, broken)
    async with call:
        assert await call.says("What should I cook?") == "All right."
        assert await call.types("And to drink?") == "All right."
    chat_ctx = ChatContext.empty()
    message = chat_ctx.add_message(role="user", content="What should I cook?")
    assert (await manual.enrich(chat_ctx)).messages()[-1] is message
    await manual.on_user_turn_completed(chat_ctx, message)
    await manual.preload(chat_ctx)
    monkeypatch.undo()
    assert "secret words" not in caplog.text
    assert any(record.name == "memory" and record.levelname == "ERROR" for record in caplog.records)


async def test_enrich_that_somebody_broke_in_a_subclass_is_no_silence_either(
    client: AsyncSupermemory,
) -> None:
    """The wrapper trusts nobody."""

    class Broken(SupermemoryLiveKit):
        async def enrich(self, chat_ctx: ChatContext) -> ChatContext:
            raise TypeError("theirs")

    memory = Broken(client=client, container_tag="alice")
    async with call_with(memory) as call:
        assert await call.says("What should I cook?") == "All right."
    await memory.aclose()


async def test_cancelled_reply_is_cancelled_and_leaves_the_search_to_the_next(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """A preemptive reply that is thrown away must not take the search with it, nor be kept alive by it."""
    await tell(client, FACT)
    memory = remember_for(mode="query", recall_timeout=30.0)
    faults.delay(0.2, on="search", times=1)
    chat_ctx = ChatContext.empty()
    chat_ctx.add_message(role="user", content="What should a vegetarian cook?")
    first = asyncio.create_task(memory.enrich(chat_ctx))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    enriched = await memory.enrich(chat_ctx)
    assert FACT in (enriched.messages()[0].text_content or "")
    assert len(searches(faults)) == 1


async def test_task_inside_an_agent_recalls_and_so_does_the_agent_after_it(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """An AgentTask takes over the caller, and gives them back."""
    await tell(client, FACT)

    class Ask(AgentTask[str]):
        async def on_enter(self) -> None:
            self.session.generate_reply(instructions="Ask.")

        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if "done" in (new_message.text_content or ""):
                self.complete("done")
                raise StopResponse

    class Starter(Agent):
        async def on_enter(self) -> None:
            await Ask(instructions="Ask for the address.")

    memory = remember_for(session_id="room")
    starter = Starter(instructions="Be brief.")
    async with call_with(memory, starter) as call:
        await call.reply()
        await call.says("I live in a street without a name")
        await call.says("I am done", reply=False)
        await handed_to(call, starter)
        await call.says("What should I cook?")
    await memory.aclose()
    assert [shown(request).count(FACT) for request in call.model.requests] == [1] * len(call.model.requests)
    assert by_caller(await stored(client)) == [
        "I live in a street without a name",
        "I am done",
        "What should I cook?",
    ]


async def test_handoff_by_a_tool_and_back_with_the_memory_tools_everywhere(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The same tools on the session and on both agents are no duplicates, and every agent recalls."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")

    def to(agent: Callable[[], Agent]) -> Any:
        @function_tool(name="transfer", description="Hand the caller over.")
        async def transfer() -> Agent:
            return agent()

        return transfer

    first = Agent(instructions="First.", tools=[*memory.tools(), to(lambda: second)])
    second = Agent(instructions="Second.", tools=[*memory.tools(), to(lambda: first)])

    def model(request: Request) -> Reply:
        return (
            Reply(calls=[ToolCall("transfer")])
            if "transfer me" in request.user_text
            else Reply(request.instructions)
        )

    async with call_with(memory, first, model=model, tools=memory.tools()) as call:
        for expected in (second, first):
            await call.says("Please transfer me", reply=False)
            await handed_to(call, expected)
            assert await call.says("What should I cook?") == expected.instructions
    assert {"remember", "forget", "search_memories", "transfer"} == set(call.model.last.tools)
    assert [shown(request).count(FACT) for request in call.model.requests] == [1] * len(call.model.requests)


async def test_reply_that_code_asks_for_has_the_block_of_the_last_turn(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """`generate_reply` in the middle of a call asks the memory service nothing new."""
    await tell(client, FACT)
    async with call_with(remember_for()) as call:
        await call.says("What should I cook?")
        call.session.generate_reply(instructions="Say that lunch is ready.")
        await call.reply()
        assert searches(faults) == ["What should I cook?"]
        assert shown(call.model.last) == shown(call.model.requests[0])
        assert "lunch is ready" in call.model.last.instructions
        call.session.generate_reply(user_input="What should I bake?")
        await call.reply()
    assert searches(faults) == ["What should I cook?", "What should I bake?"]
    assert FACT in shown(call.model.last)


async def test_text_from_the_page_is_recalled_for_and_stored(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """What is typed into the room is a turn like any other."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    room: Any = FakeRoom("room", FakeParticipant("alice"))
    await room.connect("", "")
    with fake_job(room=room):
        call = call_with(memory, agent := Agent(instructions="Be brief."))
        await call.session.start(agent, room=room, record=False)
        room.texts("alice", "What should I cook?")
        await call.reply()
        await call.hang_up()
    await memory.aclose()
    assert FACT in shown(call.model.last)
    assert searches(faults) == ["What should I cook?"]
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "All right.")]


async def test_said_words_are_stored_and_never_reach_the_model(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """`say` has no model in it; the caller heard it all the same."""
    memory = remember_for(session_id="room")

    class Saying(Agent):
        async def on_enter(self) -> None:
            self.session.say("Welcome to the kitchen.")

    async with call_with(memory, Saying(instructions="Be brief.")) as call:
        await call.reply()
    await memory.aclose()
    assert call.model.requests == []
    assert searches(faults) == []
    assert said(await stored(client)) == [("Agent", "Welcome to the kitchen.")]


async def test_tool_that_is_interrupted_after_it_saved_and_runs_again_makes_one_fact(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The caller talks before the agent could say that it is saved."""
    memory = remember_for(session_id="room")
    step = {"text": "The caller likes jazz"}
    unsaid = asyncio.Event()

    def model(request: Request) -> Reply:
        if request.tool_output is None:
            return Reply(calls=[ToolCall("remember", step)])
        return Reply(request.tool_output, gate=None if "please" in request.user_text else unsaid)

    async with call_with(memory, model=model, tools=memory.tools()) as call:
        await call.speech_started()
        await call.final("Remember that I like jazz")
        await call.speech_ended()
        await call.until(lambda: call.model.requests and call.model.last.tool_output, "the tool's answer")
        assert (await call.says("Remember it please")).startswith("Saved")
    await memory.aclose()
    facts = [r for r in faults.seen("add") if (r.body.get("metadata") or {}).get("kind") == "remembered"]
    assert len(facts) == 1


async def test_confirmed_forgetting_that_is_interrupted_and_runs_again_says_what_happened(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The second run must neither preview again nor claim that there was nothing."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    query = {"query": "Boston"}
    unsaid = asyncio.Event()

    def model(request: Request) -> Reply:
        if request.tool_output is not None:
            return Reply(request.tool_output, gate=unsaid if request.user_text == "Yes do" else None)
        confirmed = {"confirmed": True} if request.user_text != "Forget Boston" else {}
        return Reply(calls=[ToolCall("forget", {**query, **confirmed})])

    async with call_with(memory, model=model, tools=memory.tools()) as call:
        assert (await call.says("Forget Boston")).startswith("Not forgotten yet")
        await call.speech_started()
        await call.final("Yes do")
        await call.speech_ended()
        await call.until(
            lambda: (call.model.last.tool_output or "").startswith("Forgotten"), "the tool's answer"
        )
        assert (await call.says("Did you hear me")).startswith(
            "Forgotten for good: The caller lives in Boston"
        )
    assert len(faults.seen("delete")) == 1


async def test_instructions_for_voice_and_for_text_survive(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Each kind of turn has its own variant, and what changes from call to call stays behind the rest."""
    await tell(client, FACT)
    words = Instructions("Be kind.", audio="Speak plainly.", text="Use lists.", dynamic="It is noon.")

    class Greeter(Agent):
        async def on_enter(self) -> None:
            self.session.generate_reply(instructions="Greet the caller.")

    async with call_with(remember_for(), Greeter(instructions=words)) as call:
        await call.reply()
        await call.says("What should I cook?")
        await call.types("What should I bake?")
    greeting, spoken, typed = call.model.requests
    assert [m.role for m in greeting.messages] == ["system", "system", "user", "system"]
    assert "It is noon." in (greeting.messages[1].text_content or "")
    assert "Speak plainly." in spoken.instructions
    assert "Use lists." not in spoken.instructions
    assert "Use lists." in typed.instructions
    assert all(FACT in shown(request) for request in call.model.requests)
