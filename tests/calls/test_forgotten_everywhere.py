"""What the caller had forgotten is nowhere, whatever went wrong; what they had not is still there."""

from __future__ import annotations

import asyncio
import re

import pytest
from supermemory import AsyncSupermemory

from memory import MemoryStoreError, SupermemoryLiveKit
from memory.embedded import Faults
from tests.calls.kit import Make, call_with, everything, tell, texts
from tests.support.waiting import eventually


async def call_of(memory: SupermemoryLiveKit, *said: str) -> None:
    async with call_with(memory) as call:
        for words in said:
            await call.says(words)
    await memory.aclose()


async def forget(memory: SupermemoryLiveKit, query: str) -> list[str]:
    facts = await memory.preview_forget(query)
    await memory.forget([fact.id for fact in facts])
    return [fact.text for fact in facts]


async def test_forgetting_one_allergy_keeps_the_other(remember_for: Make, client: AsyncSupermemory) -> None:
    """Exactly what was read back goes, and its words go from the transcript."""
    await call_of(remember_for(session_id="one"), "I'm allergic to nuts.", "I'm allergic to cats.")
    assert await forget(remember_for(), "cats") == ["The caller is allergic to cats."]
    assert await texts(client) == ["The caller is allergic to nuts."]
    assert "cats" not in await everything(client)


async def test_short_words_are_forgotten_too(remember_for: Make, client: AsyncSupermemory) -> None:
    """A city of two letters is a city."""
    await call_of(remember_for(session_id="one"), "I live in LA.")
    await forget(remember_for(), "LA")
    assert "LA" not in await everything(client)


async def test_forgotten_while_it_is_being_sent(
    remember_for: Make, faults: Faults, client: AsyncSupermemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is tried again is tried without it."""
    monkeypatch.setattr("memory.capture._FIRST_PAUSE", 0.2)
    await tell(client, "The caller lives in Boston")
    faults.status(500, on="add", times=1)
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("As you know I live in Boston")
        await eventually(lambda: faults.seen("add"))
        await forget(memory, "Boston")
    await memory.aclose()
    assert "Boston" not in await everything(client)


async def test_forgotten_in_the_second_half_of_a_reconnected_call(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The first half stands in the same document, written by a process that is gone."""
    await call_of(remember_for(session_id="room"), "I live in Boston.")
    memory = remember_for(session_id="room")
    await forget(memory, "Boston")
    await memory.aclose()
    assert "Boston" not in await everything(client)


@pytest.mark.parametrize("session_id", ["another", "room"])
async def test_rewrite_that_failed_is_done_at_the_second_attempt(
    remember_for: Make, faults: Faults, client: AsyncSupermemory, session_id: str
) -> None:
    """The memory went and the transcript did not: saying yes again finishes it, and names what went."""
    await call_of(remember_for(session_id="room"), "I live in Boston.")
    memory = remember_for(session_id=session_id)
    facts = await memory.preview_forget("Boston")
    faults.status(503, on="update")
    with pytest.raises(MemoryStoreError):
        await memory.forget([fact.id for fact in facts])
    faults.clear()
    gone = await memory.forget([fact.id for fact in facts])
    assert [fact.text for fact in gone] == ["The caller lives in Boston."]
    assert "Boston" not in await everything(client)


async def test_what_was_just_said_can_be_forgotten(remember_for: Make, client: AsyncSupermemory) -> None:
    """Not learned yet is not the same as not known."""
    memory = remember_for(session_id="room", capture_interval=60.0)
    async with call_with(memory) as call:
        await call.says("I live in Boston.")
        assert await forget(memory, "Boston") == ["The caller said: “I live in Boston.”"]
    await memory.aclose()
    assert await texts(client) == []
    assert "Boston" not in await everything(client)


@pytest.mark.parametrize("failing", [False, True])
async def test_everything_is_erased_with_what_is_on_its_way(
    remember_for: Make,
    faults: Faults,
    client: AsyncSupermemory,
    monkeypatch: pytest.MonkeyPatch,
    failing: bool,
) -> None:
    """Said, sent, tried again: nothing of it is stored after it was erased, and what is said next is."""
    monkeypatch.setattr("memory.capture._FIRST_PAUSE", 0.2)
    await tell(client, "The caller plays the harp")
    if failing:
        faults.status(500, on="add", times=1)
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("I live in Boston.")
        await eventually(lambda: faults.seen("add"))
        await call.says("I have a cat.")
        assert "harp" in call.model.last.prompt
        assert (await memory.erase())["documents"] >= 1
        await call.says("I love opera.")
        assert "harp" not in call.model.last.prompt
    await memory.aclose()
    assert await texts(client) == ["The caller loves opera."]
    assert not {"harp", "Boston", "cat"} & set(re.findall(r"\w+", await everything(client)))


async def test_answer_that_was_under_way_is_erased_too(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """A search, the rest of the caller's turn and the agent's answer to it all began before."""
    await tell(client, "The caller plays the harp")
    memory = remember_for(capture_interval=0.0, mode="query")
    async with call_with(memory, model="You play the harp.") as call:
        faults.delay(0.3, on="search")
        answer = asyncio.create_task(call.says("What do I play?"))
        await eventually(lambda: faults.seen("search"))
        await memory.erase()
        await answer
        assert "The caller plays" not in call.model.last.prompt
    await memory.aclose()
    assert "harp" not in await everything(client)


async def test_told_again_is_known_again(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """Forgetting one thing later does not take along what was forgotten before and told anew."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("I live in Boston.")
        await eventually(lambda: faults.seen("add"))
        assert await forget(memory, "Boston") == ["The caller lives in Boston."]
        await call.says("I live in Boston.")
        await call.says("I love opera.")
        await eventually(lambda: "opera" in str(faults.seen("add")[-1].body))
        await forget(memory, "opera")
    await memory.aclose()
    assert "Caller: I live in Boston." in await everything(client)
    assert await texts(client) == ["The caller lives in Boston."]
