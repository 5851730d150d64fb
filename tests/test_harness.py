"""The harness shows what a real `AgentSession` does, without any memory attached.

Each test is a fact of livekit-agents that the memory relies on; when one fails after an upgrade, what
is built on that fact has to be looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

import pytest
from livekit.agents import (
    Agent,
    APIStatusError,
    ModelSettings,
    StopResponse,
    TurnHandlingOptions,
    llm,
)

from tests.harness import (
    Call,
    Reply,
    Request,
    ScriptedRealtime,
    ScriptedSTT,
    ScriptedTTS,
    settle,
)
from tests.plain_agent import Plain, echo

# --- Preemptive generation ------------------------------------------------------------------------


async def test_one_final_costs_one_call_which_starts_before_the_turn_ends() -> None:
    """The model is asked at the final transcript, and its answer is the one that is used."""
    async with Call(Plain(), model=echo) as call:
        await call.speech_started()
        await call.interim("I'm")
        assert call.model.requests == []
        await call.final("I'm vegetarian")
        assert len(call.model.requests) == 1
        await call.speech_ended()
        assert await call.reply() == "You said I'm vegetarian"
    assert len(call.model.requests) == 1


async def test_without_preemptive_generation_the_model_is_asked_after_the_hook() -> None:
    """Preemptive generation off: one call as well, but only when the turn is over."""
    async with Call(Plain(), model=echo, preemptive=False) as call:
        await call.speech_started()
        await call.final("I'm vegetarian")
        assert call.model.requests == []
        await call.speech_ended()
        await call.reply()
    assert len(call.model.requests) == 1


@pytest.mark.parametrize(("finals", "runs"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)])
async def test_each_final_of_a_turn_runs_the_node_again(finals: int, runs: int) -> None:
    """Three attempts in advance at most; whatever was thrown away, one pair is stored."""
    words = ["one", "two", "three", "four", "five"][:finals]
    agent = Plain()
    async with Call(agent, model=echo) as call:
        await call.says(*words)
    said = " ".join(words)
    assert agent.node_runs == runs
    assert call.transcript == [("user", said), ("assistant", f"You said {said}")]


async def test_a_discarded_reply_is_cancelled_and_leaves_no_trace() -> None:
    """An attempt that is still being made when the next final comes is given up."""
    never = asyncio.Event()

    def script(request: Request) -> Reply:
        return Reply("Half an answer", gate=never if request.user_text == "I moved" else None)

    async with Call(Plain(), model=script) as call:
        assert await call.says("I moved", "to Boston") == "Half an answer"
        assert [request.cancelled for request in call.model.requests] == [True, False]
        assert call.transcript == [("user", "I moved to Boston"), ("assistant", "Half an answer")]


async def test_adding_to_the_context_in_the_hook_costs_a_second_call() -> None:
    """The reply that was prepared does not fit the context any more."""

    class Adds(Agent):
        async def on_user_turn_completed(
            self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage
        ) -> None:
            turn_ctx.add_message(role="user", content="background")

    async with Call(Adds(instructions="Be brief."), model=echo) as call:
        await call.says("I'm vegetarian")
    assert ["background" in request.prompt for request in call.model.requests] == [False, True]


async def test_editing_the_message_in_the_hook_costs_a_second_call_and_is_stored() -> None:
    """What the hook writes into the caller's message ends up in the conversation."""

    class Edits(Agent):
        async def on_user_turn_completed(
            self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage
        ) -> None:
            new_message.content = ["edited"]

    async with Call(Edits(instructions="Be brief.")) as call:
        await call.says("I'm vegetarian")
    assert len(call.model.requests) == 2
    assert call.transcript[0] == ("user", "edited")


async def test_adding_to_a_copy_in_the_node_costs_nothing() -> None:
    """The place for a memory block: the model sees it, the conversation does not."""

    class Enriches(Agent):
        def llm_node(
            self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
        ) -> AsyncIterable[Any]:
            enriched = chat_ctx.copy()
            enriched.items.insert(-1, llm.ChatMessage(role="user", content=["background"]))
            return Agent.default.llm_node(self, enriched, tools, model_settings)

    async with Call(Enriches(instructions="Be brief."), model=echo) as call:
        assert await call.says("I'm vegetarian") == "You said I'm vegetarian"
        assert "background" in call.model.last.prompt
    assert len(call.model.requests) == 1
    assert all("background" not in text for _, text in call.transcript)


async def test_a_preflight_transcript_starts_a_reply_too() -> None:
    """A final that says exactly the same asks for nothing more."""
    async with Call(Plain(), model=echo) as call:
        await call.speech_started()
        await call.preflight("I'm vegetarian")
        assert len(call.model.requests) == 1
        await call.final("I'm vegetarian")
        await call.speech_ended()
        await call.reply()
    assert len(call.model.requests) == 1


# --- Turns ----------------------------------------------------------------------------------------


async def test_a_dropped_turn_keeps_neither_words_nor_reply() -> None:
    """`StopResponse` in the hook."""

    class Stops(Agent):
        async def on_user_turn_completed(
            self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage
        ) -> None:
            raise StopResponse

    async with Call(Stops(instructions="Be brief.")) as call:
        await call.says("never mind", reply=False)
        assert call.transcript == []
        assert [event.transcript for event in call.events.named("user_input_transcribed")][-1] == "never mind"


async def test_a_final_after_the_turn_is_a_turn_of_its_own() -> None:
    """One sentence split in two by a late transcript."""
    async with Call(Plain(), model=echo) as call:
        await call.says("I moved")
        await call.final("to Boston")
        await call.reply()
    assert call.transcript[2:] == [("user", "to Boston"), ("assistant", "You said to Boston")]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"stt": lambda: ScriptedSTT(interims=False)}, id="no interims"),
        pytest.param({"stt": lambda: ScriptedSTT(streaming=False)}, id="whole sentences"),
        pytest.param({"tts": lambda: ScriptedTTS(streaming=False)}, id="speaks whole sentences"),
        pytest.param({"turn_detection": "manual"}, id="push to talk"),
        pytest.param({"turn_detection": "stt"}, id="turns from the recogniser"),
        pytest.param({"turn_detection": "stt", "vad": False}, id="no voice activity detector"),
    ],
)
async def test_every_way_of_listening_makes_the_same_conversation(how: dict[str, Any]) -> None:
    """Two turns, one call of the model and one run of the hook each, whoever ends them."""
    agent = Plain()
    options = {name: make() if callable(make) else make for name, make in how.items()}
    async with Call(agent, model=echo, **options) as call:
        assert await call.says("I moved to Boston") == "You said I moved to Boston"
        assert await call.says("I work there") == "You said I work there"
        assert [role for role, _ in call.transcript] == ["user", "assistant"] * 2
    assert agent.hooked == ["I moved to Boston", "I work there"]
    assert len(call.model.requests) == 2


async def test_a_recogniser_without_interims_reports_finals_only() -> None:
    """Nothing to search for before the sentence is over."""
    async with Call(Plain(), stt=ScriptedSTT(interims=False)) as call:
        await call.says("I moved to Boston")
    assert [event.is_final for event in call.events.named("user_input_transcribed")] == [True]


async def test_typed_text_runs_the_node_but_not_the_hook() -> None:
    """`session.run`: the node is the one place that spoken and typed turns share."""
    agent = Plain()
    async with Call(agent, model=echo) as call:
        assert await call.types("I'm vegetarian") == "You said I'm vegetarian"
    assert (agent.node_runs, agent.hooked) == (1, [])


async def test_a_bot_that_only_types_shows_its_replies() -> None:
    """No recogniser, no synthesiser, no audio."""
    async with Call(Plain(), model=echo, audio=False) as call:
        await call.types("I'm vegetarian")
    assert call.captions.shown == ["You said I'm vegetarian"]


async def test_a_said_greeting_never_reaches_the_model() -> None:
    """`say` bypasses the node; `generate_reply` runs it, without any words of the caller."""

    class Greets(Plain):
        async def on_enter(self) -> None:
            await self.session.say("Hello Anna")
            self.session.generate_reply(instructions="Ask how they are.")

    agent = Greets()
    async with Call(agent, model="How are you?") as call:
        assert await call.reply() == "Hello Anna"
        assert await call.reply() == "How are you?"
    assert agent.node_runs == 1
    assert call.model.last.user_text == ""
    assert "Ask how they are." in call.model.last.prompt


async def test_a_failing_model_is_an_error_and_no_reply() -> None:
    """A typed turn raises what the model raised; the session goes on."""
    broken = Reply(error=APIStatusError("no", status_code=500, retryable=False))
    async with Call(Plain(), model=lambda r: broken if r.user_text == "break" else "Fine.") as call:
        with pytest.raises(APIStatusError):
            await call.types("break")
        await call.says("break", reply=False)
        assert len(call.events.named("error")) == 2
        assert await call.says("go on") == "Fine."


# --- Interruptions --------------------------------------------------------------------------------


@pytest.mark.parametrize("can_pause", [True, False])
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_part_that_was_played_is_stored(can_pause: bool, streaming: bool) -> None:
    """Whether the reply is paused first or cut at once, and however late the words are known."""
    model = ["Lisbon lies on seven hills", "Sorry."]
    stt = ScriptedSTT(streaming=streaming)
    async with Call(Plain(), model=model, can_pause=can_pause, stt=stt) as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        assert await call.interrupt_at(3, "Stop it") == "Sorry."
        assert call.transcript == [
            ("user", "Tell me about Lisbon"),
            ("assistant", "Lisbon lies on"),
            ("user", "Stop it"),
            ("assistant", "Sorry."),
        ]
        assert [reply.interrupted for reply in call.replies] == [True, False]


async def test_a_reply_cut_before_its_first_word_is_not_stored() -> None:
    """No assistant item at all."""
    async with Call(Plain(), model=echo) as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        await call.interrupt_at(0, "Stop it")
        assert [role for role, _ in call.transcript] == ["user", "user", "assistant"]


async def test_a_cough_pauses_and_the_reply_goes_on() -> None:
    """Speech without words is a false interruption; the whole reply is stored."""
    patience: TurnHandlingOptions = {"interruption": {"mode": "vad", "false_interruption_timeout": 0.02}}
    async with Call(Plain(), model="Lisbon lies on seven hills", turn_handling=patience) as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        call.speaker.play(2)
        await call.speech_started()
        await call.speech_ended()
        assert (await call.wait_for("agent_false_interruption")).resumed
        call.speaker.release()
        assert await call.reply() == "Lisbon lies on seven hills"
        assert not call.replies[0].interrupted


# --- The end of a call ----------------------------------------------------------------------------


async def test_hanging_up_stores_what_was_heard_before_the_close() -> None:
    """The partly spoken reply is announced before the session is closed."""
    async with Call(Plain(), model="Lisbon lies on seven hills") as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        await call.agent_speaking(5)
        call.speaker.play(2)
        await call.hang_up()
    assert call.transcript[-1] == ("assistant", "Lisbon lies")
    assert call.events.happened[-1].name == "close"


async def test_a_sentence_cut_off_by_hanging_up_is_stored_as_far_as_it_was_recognised() -> None:
    """The last guess becomes a final transcript and an item, before the close."""
    async with Call(Plain()) as call:
        await call.says("hello")
        await call.speech_started()
        await call.interim("I am not")
    assert call.transcript[-1] == ("user", "I am not")
    assert call.events.named("user_input_transcribed")[-1].is_final


async def test_a_final_while_the_session_closes_is_still_stored() -> None:
    """It has as long as the session waits for it, two seconds unless set."""
    async with Call(Plain(), session_close_transcript_timeout=5.0) as call:
        await call.says("hello")
        await call.speech_started()
        closing = asyncio.create_task(call.hang_up())
        await settle()
        await call.final("goodbye then")
        await closing
    assert call.transcript[-1] == ("user", "goodbye then")


async def test_push_to_talk_leaves_an_empty_item_at_the_end() -> None:
    """Closing commits a turn, and with manual turns there need be no words in it."""
    async with Call(Plain(), turn_detection="manual") as call:
        await call.says("hello")
    assert call.transcript[-1] == ("user", "")


async def test_the_finals_beside_a_realtime_model_become_one_item_at_the_end() -> None:
    """Where the provider ends turns and our recogniser writes them down, no turn takes its words:
    closing joins those of the whole call, after all replies and with the time of the close."""
    model = ScriptedRealtime(transcripts="never")
    async with Call(Plain(), model=model, stt=ScriptedSTT()) as call:
        await call.says("hello")
        await call.says("I moved to Boston")
    assert call.transcript[-1] == ("user", "hello I moved to Boston")
    assert call.events.messages[-1].created_at > call.replies[-1].created_at


# --- The harness itself ---------------------------------------------------------------------------


async def test_a_wait_in_vain_names_what_it_waited_for_and_what_came() -> None:
    """So that a failing test can be read without a debugger."""
    async with Call(Plain()) as call:
        await call.says("hello")
        with pytest.raises(AssertionError, match=r"0.01 s in vain for the event error.*assistant: 'Okay.'"):
            await call.events.wait_for("error", deadline=0.01)


async def test_a_script_that_has_run_out_says_so() -> None:
    """It is the model's failure, and stands in the session's events."""
    async with Call(Plain(), model=["Only this."]) as call:
        await call.says("hello")
        await call.says("hello", reply=False)
        assert "the script has 1 answers" in str(call.events)


async def test_a_request_shows_what_the_model_saw_then() -> None:
    """Whoever edits an item in place later does not change what was asked."""
    async with Call(Plain()) as call:
        await call.says("I'm vegetarian")
        call.session.history.messages()[0].content[0] = "edited"
    assert call.model.last.user_text == "I'm vegetarian"


async def test_several_finals_need_somebody_who_hears_them() -> None:
    """A recogniser of whole sentences cannot give two for one speech."""
    async with Call(Plain(), stt=ScriptedSTT(streaming=False)) as call:
        with pytest.raises(ValueError, match="one transcript for each speech"):
            await call.says("one", "two")
