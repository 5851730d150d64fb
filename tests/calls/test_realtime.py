"""Realtime models hear and speak themselves: memory reaches them by the profile and the tools."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import Agent, ChatContext
from supermemory import AsyncSupermemory

from memory.embedded import Faults
from tests.calls.kit import Make, by_caller, call_with, said, searches, stored, stored_so_far, tell, texts
from tests.harness import Reply, Request, ScriptedRealtime, ScriptedSTT, ToolCall
from tests.support.waiting import eventually

FACT = "The caller is vegetarian"
TURNS = ["server", "client"]


@pytest.mark.parametrize("turns", TURNS)
async def test_profile_in_the_agents_context_reaches_the_model(
    remember_for: Make, client: AsyncSupermemory, turns: Any
) -> None:
    """There is no `llm_node` to put it in front of; what the model cannot be shown is not searched for."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    chat_ctx = ChatContext.empty()
    assert await memory.preload(chat_ctx)
    agent = Agent(instructions="Be brief.", chat_ctx=chat_ctx)
    async with call_with(memory, agent, model=ScriptedRealtime("Lentils.", turn_detection=turns)) as call:
        await call.says("What should I cook?")
        await call.types("And to drink?")
    await memory.aclose()
    assert [request.prompt.count(FACT) for request in call.model.requests] == [1, 1]
    assert "caller_memory" not in str(call.transcript)
    assert "caller_memory" not in str(await stored(client))


async def test_nothing_is_searched_that_the_model_cannot_be_shown(remember_for: Make, faults: Faults) -> None:
    """Searches cost money, and a realtime model asks by tool."""
    memory = remember_for()
    async with call_with(memory, model=ScriptedRealtime(), stt=ScriptedSTT()) as call:
        await call.says("Where do I live?")
    assert searches(faults) == []


async def test_own_model_of_an_agent_decides_whether_to_search(remember_for: Make, faults: Faults) -> None:
    """An agent may bring another kind of model than its session has."""
    realtime = Agent(instructions="Be brief.", llm=ScriptedRealtime(transcripts="never"))
    async with call_with(remember_for(), realtime) as call:
        await call.says("Where do I work?", reply=False)
        await call.handoff(Agent(instructions="Be brief."))
        await call.says("Where do I live?")
    assert searches(faults) == ["Where do I live?"]


@pytest.mark.parametrize("turns", TURNS)
async def test_tools_look_up_save_and_forget(
    remember_for: Make, client: AsyncSupermemory, turns: Any
) -> None:
    """All three, in turns of the caller that the provider writes down."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    steps = {
        "Where do I live?": ToolCall("search_memories", {"query": "lives in Boston"}),
        "Remember that I like jazz": ToolCall("remember", {"text": "The caller likes jazz"}),
        "Forget Boston": ToolCall("forget", {"query": "Boston"}),
        "Yes, forget it": ToolCall("forget", {"query": "Boston", "confirmed": True}),
    }

    def model(request: Request) -> Reply:
        said = request.tool_output
        return Reply(said) if said else Reply(calls=[steps[request.user_text]])

    realtime = ScriptedRealtime(model, turn_detection=turns)
    async with call_with(memory, model=realtime, tools=memory.tools()) as call:
        assert "lives in Boston" in await call.says("Where do I live?")
        assert (await call.says("Remember that I like jazz")).startswith("Saved")
        assert (await call.says("Forget Boston")).startswith("Not forgotten yet")
        assert (await call.says("Yes, forget it")).startswith(
            "Forgotten for good: The caller lives in Boston"
        )
    assert await texts(client) == ["The caller likes jazz"]


async def test_words_that_become_no_message_confirm_forgetting_and_the_same_turn_does_not(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The model asks again at once, having said what would go; only the caller's next words are a yes."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    forget = ToolCall("forget", {"query": "Boston", "confirmed": True})
    again = Reply("That would go.", calls=[forget])
    script = [Reply(calls=[forget]), again, Reply("Shall I?"), Reply(calls=[forget]), Reply("Done.")]
    model = ScriptedRealtime(script, transcripts="never")
    async with call_with(memory, model=model, stt=ScriptedSTT(), tools=memory.tools()) as call:
        assert await call.says("Forget Boston") == "That would go."
        assert await call.reply() == "Shall I?"
        assert await texts(client)
        assert await call.says("Yes") == "Done."
        assert await texts(client) == []


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("transcripts", ["before", "after"])
async def test_conversation_is_stored_in_its_order_whenever_the_words_arrive(
    remember_for: Make, client: AsyncSupermemory, turns: Any, transcripts: Any
) -> None:
    """The provider may write the caller's words down after it has answered them."""
    memory = remember_for(session_id="room", capture_interval=300.0)
    realtime = ScriptedRealtime(
        lambda request: f"You said {request.user_text}", turn_detection=turns, transcripts=transcripts
    )
    async with call_with(memory, model=realtime) as call:
        await call.says("I'm vegetarian")
        await call.says("I live in Boston")
    await memory.aclose()
    lines = await stored(client)
    assert [line.when for line in lines] == sorted(line.when for line in lines)
    if turns == "server" or transcripts == "before":
        assert said(lines) == [
            ("Caller", "I'm vegetarian"),
            ("Agent", "You said I'm vegetarian"),
            ("Caller", "I live in Boston"),
            ("Agent", "You said I live in Boston"),
        ]
    else:
        assert by_caller(lines) == ["I'm vegetarian", "I live in Boston"]


async def test_words_that_come_after_their_reply_was_sent_carry_their_own_time(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """What is stored cannot be put in order any more; the time tells it."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    model = ScriptedRealtime("All right.", transcripts="after")
    async with call_with(memory, model=model) as call:
        await call.speech_started()
        await call.speech_ended("I'm vegetarian")
        await call.reply()
        await stored_so_far(client, lines=1)
        model.current.transcribe()
    await memory.aclose()
    agents, callers = await stored(client)
    assert said([agents, callers]) == [("Agent", "All right."), ("Caller", "I'm vegetarian")]
    assert callers.when < agents.when


@pytest.mark.parametrize("turns", TURNS)
async def test_words_that_only_a_recogniser_of_ours_heard_are_stored_once(
    remember_for: Make, client: AsyncSupermemory, turns: Any
) -> None:
    """No turn takes them, and with turns of the provider closing joins those of the whole call."""
    memory = remember_for(session_id="room")
    realtime = ScriptedRealtime("All right.", turn_detection=turns, transcripts="never")
    async with call_with(memory, model=realtime, stt=ScriptedSTT()) as call:
        await call.says("I'm vegetarian")
        await call.says("Yes")
        await call.says("Yes")
        await call.types("I live in Boston")
        await call.says("Goodbye then")
    if turns == "server":
        assert call.transcript[-1] == ("user", "I'm vegetarian Yes Yes Goodbye then")
    await memory.aclose()
    assert said(await stored(client)) == [
        ("Caller", "I'm vegetarian"),
        ("Agent", "All right."),
        ("Caller", "Yes"),
        ("Agent", "All right."),
        ("Caller", "Yes"),
        ("Agent", "All right."),
        ("Caller", "I live in Boston"),
        ("Agent", "All right."),
        ("Caller", "Goodbye then"),
        ("Agent", "All right."),
    ]


async def test_closing_brings_back_nothing_that_was_off_the_record(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The message that joins the whole call holds what was said while memory was paused."""
    memory = remember_for(session_id="room")
    realtime = ScriptedRealtime("All right.", transcripts="never")
    async with call_with(memory, model=realtime, stt=ScriptedSTT()) as call:
        await call.says("I'm vegetarian")
        memory.pause()
        await call.says("My PIN is 1234")
        memory.resume()
        await call.says("I live in Boston")
    assert "1234" in call.transcript[-1][1]
    await memory.aclose()
    assert by_caller(await stored(client)) == ["I'm vegetarian", "I live in Boston"]


async def test_sentence_that_hanging_up_cut_off_is_all_that_closing_adds(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The recogniser had only a guess at it, which LiveKit puts behind all that was said before."""
    memory = remember_for(session_id="room")
    realtime = ScriptedRealtime("All right.", transcripts="never")
    async with call_with(memory, model=realtime, stt=ScriptedSTT()) as call:
        await call.says("I'm vegetarian")
        await call.speech_started()
        await call.interim("And I'm in Boston")
    assert call.transcript[-1] == ("user", "I'm vegetarian And I'm in Boston")
    await memory.aclose()
    assert by_caller(await stored(client)) == ["I'm vegetarian", "And I'm in Boston"]


async def test_closing_brings_back_nothing_of_somebody_else(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Nor what was said before the right person was bound."""
    memory = remember_for(session_id="room")
    realtime = ScriptedRealtime("All right.", transcripts="never")
    async with call_with(memory, model=realtime, stt=ScriptedSTT()) as call:
        await call.says("I'm vegetarian")
        memory.unbind()
        await call.says("I'm Bob")
        memory.bind(container_tag="bob")
        await call.says("I live in Boston")
    await memory.aclose()
    assert await stored(client) == []
    assert by_caller(await stored(client, tag="bob")) == ["I live in Boston"]


@pytest.mark.parametrize("turns", TURNS)
async def test_wrong_persons_profile_is_taken_back_from_the_model(
    remember_for: Make, client: AsyncSupermemory, turns: Any
) -> None:
    """It has read the block, so it is told that there is none, and the rest of the call stays."""
    await tell(client, FACT)
    memory = remember_for()
    chat_ctx = ChatContext.empty()
    await memory.preload(chat_ctx)
    agent = Agent(instructions="Be brief.", chat_ctx=chat_ctx)
    model = ScriptedRealtime("Fine.", turn_detection=turns)
    async with call_with(memory, agent, model=model) as call:
        await call.says("What should I cook?")
        memory.unbind()
        await eventually(lambda: FACT not in str(model.current.contexts[-1]))
        await call.says("I'm not Alice")
        assert FACT not in call.model.last.prompt
        assert "What should I cook?" in call.model.last.prompt
        assert "caller_memory" not in str(agent.chat_ctx.to_dict())


async def test_interrupted_reply_is_stored_as_spoken(remember_for: Make, client: AsyncSupermemory) -> None:
    """The provider sent more than the caller heard."""
    memory = remember_for(session_id="room")
    async with call_with(memory, model=ScriptedRealtime(["Lisbon lies on seven hills", "Sorry."])) as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        await call.interrupt_at(3, "Stop it")
    await memory.aclose()
    assert said(await stored(client)) == [
        ("Caller", "Tell me about Lisbon"),
        ("Agent", "Lisbon lies on"),
        ("Caller", "Stop it"),
        ("Agent", "Sorry."),
    ]
    assert (await stored(client))[1].interrupted


async def test_agent_that_is_handed_to_can_be_told_the_profile(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """A new agent has a context of its own; preload one for it, or it knows nothing but its tools."""
    await tell(client, FACT)
    memory = remember_for()
    chat_ctx = ChatContext.empty()
    async with call_with(memory, model=ScriptedRealtime("Fine.")) as call:
        await memory.preload(chat_ctx)
        await call.handoff(Agent(instructions="Second.", chat_ctx=chat_ctx))
        await call.says("What should I cook?")
    assert call.model.last.prompt.count(FACT) == 1
