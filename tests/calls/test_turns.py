"""A turn is recalled for once and stored once, however its words arrive."""

from __future__ import annotations

import pytest
from livekit.agents import Agent, ChatContext, StopResponse, llm
from supermemory import AsyncSupermemory

from memory.embedded import Faults
from tests.calls.kit import Make, by_caller, call_with, recalls, said, searches, shown, stored, tell
from tests.harness import Call, ScriptedSTT

FACT = "The caller is vegetarian"


async def asked(call: Call, times: int) -> None:
    await call.until(lambda: len(call.model.requests) == times, f"request {times} of the model")


@pytest.mark.parametrize("preemptive", [True, False])
async def test_turn_of_three_finals_is_one_stored_pair_and_one_recall(
    remember_for: Make, client: AsyncSupermemory, preemptive: bool
) -> None:
    """With preemptive generation two replies are thrown away; they leave no trace."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    told = recalls(memory)
    async with call_with(memory, preemptive=preemptive) as call:
        await call.speech_started()
        for count, words in enumerate(("What", "should I", "cook?"), 1):
            await call.final(words)
            if preemptive:
                await asked(call, count)
        await call.speech_ended()
        await call.reply()
    await memory.aclose()
    assert len(call.model.requests) == (3 if preemptive else 1)
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "All right.")]
    assert len(told) == 1
    assert FACT in shown(call.model.last)


async def test_sentence_that_a_late_final_splits_is_stored_once_and_searched_whole(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The second half alone asks for nothing; both halves together do."""
    await tell(client, "The caller's sister lives in Boston")
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        call.speaker.hold()
        await call.speech_started()
        await call.final("Where does my sister")
        await call.speech_ended()
        await call.wait_for("conversation_item_added", lambda e: getattr(e.item, "role", "") == "user")
        await call.final("live again")
        await call.wait_for(
            "conversation_item_added", lambda e: "live again" in (getattr(e.item, "text_content", "") or "")
        )
        call.speaker.release()
        await call.turn_over()
    await memory.aclose()
    assert searches(faults)[-1] == "Where does my sister live again"
    assert "Boston" in shown(call.model.last)
    assert by_caller(await stored(client)) == ["Where does my sister", "live again"]


async def test_manual_turns_store_no_empty_line_at_the_end(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Closing commits a turn with no words in it."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    async with call_with(memory, turn_detection="manual") as call:
        await call.says("What should I cook?")
    assert call.transcript[-1] == ("user", "")
    await memory.aclose()
    assert FACT in shown(call.model.requests[0])
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "All right.")]


@pytest.mark.parametrize(
    ("stt", "turn_detection"),
    [({"interims": False}, "vad"), ({"interims": False}, "stt"), ({"streaming": False}, "vad")],
)
async def test_every_recogniser_recalls_and_stores(
    remember_for: Make, client: AsyncSupermemory, stt: dict[str, bool], turn_detection: str
) -> None:
    """With interim transcripts or without, whoever tells the end of a turn."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    async with call_with(memory, stt=ScriptedSTT(**stt), turn_detection=turn_detection) as call:
        await call.says("What should I cook?")
    await memory.aclose()
    assert FACT in shown(call.model.last)
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "All right.")]


async def test_bot_that_only_types_remembers(remember_for: Make, client: AsyncSupermemory) -> None:
    """No voice, no recogniser, no voice activity."""
    await tell(client, FACT)
    memory = remember_for(session_id="room")
    async with call_with(memory, audio=False) as call:
        await call.types("What should I cook?")
    await memory.aclose()
    assert FACT in shown(call.model.last)
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "All right.")]


async def test_dropped_turn_is_no_part_of_the_next_turns_search(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """A hook dropped it; a question that begins with it would find the wrong things."""

    class Dropping(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if "jazz" in (new_message.text_content or ""):
                raise StopResponse

    memory = remember_for(session_id="room")
    soon = {"endpointing": {"min_delay": 0.0, "max_delay": 0.0}}
    async with call_with(memory, Dropping(instructions="Be brief."), turn_handling=soon) as call:
        await call.says("I secretly like jazz", reply=False)
        await call.says("What should I cook?")
    await memory.aclose()
    assert searches(faults)[-1] == "What should I cook?"
    assert by_caller(await stored(client)) == ["I secretly like jazz", "What should I cook?"]


@pytest.mark.parametrize("dropped", [False, True])
async def test_message_typed_in_the_middle_of_a_spoken_turn_takes_none_of_its_words(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, dropped: bool
) -> None:
    """The page and the microphone are used at once; both are searched for and stored, once each."""

    class Picky(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if dropped:
                raise StopResponse

    memory = remember_for(session_id="room")
    async with call_with(memory, Picky(instructions="Be brief."), preemptive=False) as call:
        await call.speech_started()
        await call.final("I live in Boston")
        call.session.generate_reply(user_input="What should I cook?")
        await call.wait_for("conversation_item_added", lambda e: getattr(e.item, "role", "") == "user")
        await call.speech_ended()
        await call.turn_over()
    await memory.aclose()
    assert sorted(searches(faults)) == ["I live in Boston", "What should I cook?"]
    assert sorted(by_caller(await stored(client))) == ["I live in Boston", "What should I cook?"]


async def test_words_too_short_to_interrupt_are_stored_once(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """They become no turn of their own; LiveKit puts them in front of the next one."""
    memory = remember_for(session_id="room")
    how = {
        "interruption": {"mode": "vad", "min_words": 2},
        "endpointing": {"min_delay": 0.0, "max_delay": 0.0},
    }
    async with call_with(memory, turn_handling=how, can_pause=False, preemptive=False) as call:
        call.speaker.hold()
        await call.says("Count to three", reply=False)
        await call.agent_speaking(2)
        await call.says("Wait", reply=False)
        await call.interrupt_at(1, "I live in Boston")
    await memory.aclose()
    assert ("user", "Wait I live in Boston") in call.transcript
    assert by_caller(await stored(client)) == ["Count to three", "Wait", "I live in Boston"]


async def test_words_that_are_spoken_over_by_code_are_stored_and_searched_for_once(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The agent says something between the caller's words and the end of their turn."""
    memory = remember_for(session_id="room")
    async with call_with(memory, turn_detection="manual") as call:
        await call.speech_started()
        await call.final("Where do I live?")
        await call.speech_ended()
        call.session.say("One moment.")
        await call.reply()
        await call.commit()
        await call.reply()
        assert searches(faults) == ["Where do I live?"]
        await call.speech_started()
        await call.final("I live in Boston")
        await call.speech_ended()
        call.session.say("One moment.")
        await call.reply()
        await call.speech_started()
        await call.final("by the sea")
        await call.speech_ended()
        await call.commit()
        await call.reply()
    assert ("user", "I live in Boston by the sea") in call.transcript
    await memory.aclose()
    assert said(await stored(client)) == [
        ("Caller", "Where do I live?"),
        ("Agent", "One moment."),
        ("Agent", "All right."),
        ("Caller", "I live in Boston"),
        ("Agent", "One moment."),
        ("Caller", "by the sea"),
        ("Agent", "All right."),
    ]
