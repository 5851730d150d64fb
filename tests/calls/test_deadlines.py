"""How long a reply waits for memory: the service hangs, and the call goes on in time.

The service of these tests never answers, or only after the test. That a reply comes while a request is
still open is the proof; figures are compared with room for a slow machine.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from livekit.agents import Agent, ChatContext, llm
from supermemory import AsyncSupermemory

from memory import SupermemoryLiveKit
from memory.embedded import Faults
from tests.calls.kit import Make, blocks, call_with, numbers, recalls, searches, shown, tell
from tests.harness import Call, Reply, Request, ScriptedSTT, ToolCall, settle

FACT = "The caller is vegetarian"
NEVER = 60.0
"""Seconds that a hanging request would take; no test waits that long."""

BUDGET, TIMEOUT = 0.05, 1.0
SLACK = 0.8
"""Seconds that a busy machine may add to a wait."""


async def known(memory: SupermemoryLiveKit) -> None:
    """Returns when the caller's profile is there."""
    async with asyncio.timeout(10.0):
        while not await memory.preload(ChatContext.empty()):  # noqa: ASYNC110  # no event announces it
            await asyncio.sleep(0.01)


async def greeted(call: Call) -> None:
    """The agent has spoken: no reply is the first one any more."""
    call.session.say("Hello.")
    await call.reply()


def hang(faults: Faults, how: str, on: Any = None) -> None:
    if how == "black hole":
        faults.black_hole(on=on)
    else:
        faults.delay(NEVER, on=on)


@pytest.fixture(autouse=True)
def short_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stored is given up at once when a test is over."""
    monkeypatch.setattr("memory.livekit.FLUSH_TIMEOUT", 0.05)


HANGS = pytest.mark.parametrize("how", ["black hole", "slow"])


@HANGS
async def test_spoken_turn_waits_one_budget_for_a_search_that_hangs(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, how: str
) -> None:
    """And has the profile, which is known since the call began."""
    await tell(client, FACT)
    memory = remember_for(reply_budget=BUDGET, recall_timeout=NEVER / 2)
    told = recalls(memory)
    async with call_with(memory) as call:
        await known(memory)
        await greeted(call)
        hang(faults, how, "search")
        await call.says("What should I cook?")
        await call.says("What should I", "bake then?")
    assert all(FACT in shown(request) for request in call.model.requests)
    assert len(told) == 2
    assert all(0 < event.waited <= BUDGET + SLACK for event in told)


@HANGS
async def test_first_reply_waits_once_and_the_next_one_budget_while_nothing_answers(
    remember_for: Make, faults: Faults, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """A cold or dead service costs the caller one short wait in the whole call."""
    hang(faults, how)
    memory = remember_for(reply_budget=BUDGET, recall_timeout=TIMEOUT)
    async with call_with(memory) as call:
        await call.says("What should I cook?")
        for number in range(3):
            await call.says(f"And what should I bake on day {number}?")
        assert len(faults.seen("profile")) == 1, "the profile was given up"
    await memory.aclose()
    assert not any(blocks(request) for request in call.model.requests)
    told = numbers(caplog)
    assert told["recalls"] == 4
    assert TIMEOUT * 0.9 <= told["waited_most"] <= TIMEOUT + SLACK
    assert told["waited_total"] - told["waited_most"] <= 3 * (BUDGET + SLACK) < 3 * TIMEOUT


async def test_service_that_answers_its_first_request_late_is_used_from_then_on(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """A cold start of 12 s, in small: the first replies go without, a later one has the profile."""
    await tell(client, FACT)
    faults.delay(0.5, on="profile", times=1)
    memory = remember_for(mode="profile", reply_budget=0.0, recall_timeout=0.05)
    async with call_with(memory) as call:
        await call.says("What should I cook?")
        assert not blocks(call.model.last)
        await known(memory)
        await call.says("What should I bake?")
        assert FACT in shown(call.model.last)
    assert len(faults.seen("profile")) == 1


@HANGS
async def test_greeting_waits_no_longer_than_a_typed_turn(
    remember_for: Make, faults: Faults, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """Counted from `bind`: what the call needed to connect is not waited for again."""

    class Greeter(Agent):
        async def on_enter(self) -> None:
            self.session.generate_reply(instructions="Greet the caller.")

    hang(faults, how)
    memory = remember_for(recall_timeout=TIMEOUT)
    async with call_with(memory, Greeter(instructions="Be brief.")) as call:
        assert await call.reply() == "All right."
        assert faults.seen("profile")
    await memory.aclose()
    assert numbers(caplog)["waited_total"] <= TIMEOUT + SLACK


@HANGS
async def test_typed_turn_waits_once_although_the_model_is_asked_three_times(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, how: str
) -> None:
    """Tool follow-ups are the same turn, and their time is over."""
    await tell(client, FACT)
    memory = remember_for(recall_timeout=TIMEOUT)
    told = recalls(memory)
    steps = [Reply(calls=[ToolCall("remember", {"text": f"The caller likes {x}"})]) for x in ("jazz", "tea")]

    def model(request: Request) -> Reply:
        outputs = sum(item.type == "function_call_output" for item in request.items)
        return steps[outputs] if outputs < 2 else Reply("Both saved.")

    async with call_with(memory, model=model, tools=memory.tools()) as call:
        await known(memory)
        hang(faults, how, "search")
        assert await call.types("What should I cook?") == "Both saved."
    first, *_, last = call.model.requests
    assert len(call.model.requests) == 3
    assert all(FACT in shown(request) for request in call.model.requests)
    assert last.at - first.at < TIMEOUT
    assert len(told) == 1
    assert told[0].waited <= TIMEOUT + SLACK


@pytest.mark.parametrize("preemptive", [True, False])
async def test_hook_that_edits_the_message_makes_nobody_wait_twice(
    remember_for: Make, client: AsyncSupermemory, faults: Faults, preemptive: bool
) -> None:
    """The preemptive reply is thrown away and made again, with another message of the same turn."""
    await tell(client, FACT)
    edited: list[float] = []

    class Editing(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            new_message.content = [f"{new_message.text_content} (from Lisbon)"]
            edited.append(time.monotonic())

    memory = remember_for(reply_budget=TIMEOUT, recall_timeout=TIMEOUT, session_id="room")
    told = recalls(memory)
    agent = Editing(instructions="Be brief.")
    slow = {"endpointing": {"min_delay": 2 * TIMEOUT, "max_delay": 2 * TIMEOUT}}
    async with call_with(memory, agent, preemptive=preemptive, turn_handling=slow) as call:
        await known(memory)
        await greeted(call)
        hang(faults, "slow", "search")
        await call.says("What should I cook?")
    assert call.model.last.user_text == "What should I cook? (from Lisbon)"
    assert FACT in shown(call.model.last)
    assert len(told) == 1
    # The turn's deadline was long over when the message was edited.
    assert call.model.last.at - edited[0] <= SLACK < TIMEOUT
    assert len(call.model.requests) == (2 if preemptive else 1)


async def test_hook_of_the_manual_way_waits_once(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """A hook that waits longer would hold up every following turn."""
    await tell(client, FACT)
    memory = remember_for(recall_timeout=TIMEOUT)
    told = recalls(memory)
    at_once: list[bool] = []

    class Manual(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            await memory.on_user_turn_completed(turn_ctx, new_message)
            again = asyncio.create_task(memory.on_user_turn_completed(turn_ctx, new_message))
            await settle()
            at_once.append(again.done())
            await again

    async with Call(Manual(instructions="Be brief."), model="Fine.", preemptive=False) as call:
        await known(memory)
        hang(faults, "slow", "search")
        await call.says("What should I cook?")
    assert FACT in shown(call.model.last)
    assert len(told) == 1
    assert told[0].waited <= TIMEOUT + SLACK
    assert at_once == [True]


async def test_preload_gives_up_and_the_profile_arrives_later(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The quick start awaits it before it connects: the caller's first words must not be lost to it."""
    await tell(client, FACT)
    faults.delay(0.5, on="profile", times=1)
    memory = remember_for(recall_timeout=0.05)
    chat_ctx = ChatContext.empty()
    assert not await memory.preload(chat_ctx)
    assert chat_ctx.items == []
    await known(memory)
    assert await memory.preload(chat_ctx)
    assert len(faults.seen("profile")) == 1


async def test_words_said_over_the_agents_first_sound_wait_for_a_budget_and_not_for_a_timeout(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """The agent's speech ends the turn that was searched for; what was spoken is no typed turn for that."""
    await tell(client, FACT)
    memory = remember_for(reply_budget=BUDGET, recall_timeout=NEVER / 2)
    told = recalls(memory)
    async with call_with(memory, turn_detection="manual", preemptive=False) as call:
        await known(memory)
        await greeted(call)
        hang(faults, "slow", "search")
        await call.speech_started()
        await call.final("What should I cook?")
        await call.speech_ended()
        await greeted(call)
        await call.commit()
        await call.reply()
    assert FACT in shown(call.model.last)
    assert told[0].waited <= BUDGET + SLACK


async def test_recogniser_that_is_late_counts_from_its_last_word(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """A recogniser of whole sentences leaves no time to search ahead; a larger budget is exact then."""
    await tell(client, FACT)
    faults.delay(0.1, on="search")
    memory = remember_for(mode="query", reply_budget=5.0, recall_timeout=5.0)
    async with call_with(memory, stt=ScriptedSTT(streaming=False)) as call:
        await call.says("Tell me a joke about a horse")
        await call.says("What should I cook, am I vegetarian?")
    assert FACT in shown(call.model.last)
    assert searches(faults)[-1] == "What should I cook, am I vegetarian?"


async def test_storing_that_hangs_holds_up_no_reply(remember_for: Make, faults: Faults) -> None:
    """Ten turns while the first append is open."""
    hang(faults, "slow", "add")
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        for number in range(10):
            await call.says(f"Thing number {number}")
        assert len(call.replies) == 10
        assert len(faults.seen("add")) == 1  # and it is open
