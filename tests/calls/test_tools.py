"""The tools a model gets: what they do, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from livekit.agents import ToolError
from livekit.agents.llm.utils import build_legacy_openai_schema
from supermemory import AsyncSupermemory

from memory import MemoryConfigurationError, MemoryEvent, MemoryStore, MemoryStoreError, SupermemoryLiveKit
from memory.embedded import Faults
from tests.calls.kit import Make, call_with, tell, texts
from tests.harness import Call, Reply, Request, ToolCall


def tool(memory: SupermemoryLiveKit, name: str) -> Any:
    return next(tool for tool in memory.tools() if tool.id == name)


def scripted(memory: SupermemoryLiveKit, *steps: str | ToolCall) -> Call:
    """A call whose model does one step a turn; after a tool it repeats what the tool said."""

    def model(request: Request) -> Reply:
        if request.tool_output is not None:
            return Reply(request.tool_output)
        step = steps[sum(item.type == "message" and item.role == "assistant" for item in request.items)]
        return Reply(step) if isinstance(step, str) else Reply(calls=[step])

    return call_with(memory, model=model, tools=memory.tools())


def test_tools_are_always_the_same_objects_and_take_no_tag(remember_for: Make) -> None:
    """LiveKit ends an agent that has two different tools of one name; and whose memory it is, is fixed."""
    memory = remember_for()
    assert memory.tools() == memory.tools()
    assert all(a is b for a, b in zip(memory.tools(), memory.tools(), strict=True))
    names = {t.id for t in memory.tools()}
    assert names == {"search_memories", "remember", "forget"}
    parameters = {
        name
        for t in memory.tools()
        for name in build_legacy_openai_schema(t)["function"]["parameters"]["properties"]
    }
    assert parameters == {"query", "text", "confirmed"}


async def test_remember_says_saved_only_after_it_is_and_this_call_knows_it(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The next turn of the same call can use it."""
    memory = remember_for()
    told: list[MemoryEvent] = []
    memory.on("saved", told.append)
    step = ToolCall("remember", {"text": "The caller is allergic to peanuts"})
    async with scripted(memory, step, "Noted.") as call:
        assert (await call.says("Remember that I'm allergic to peanuts")).startswith("Saved: ")
        await call.says("What should I avoid?")
        assert "allergic to peanuts" in call.model.last.prompt.split("caller_memory")[1]
    assert await texts(client) == ["The caller is allergic to peanuts"]
    assert [fact.text for fact in told[0].facts] == ["The caller is allergic to peanuts"]


async def test_same_fact_remembered_twice_in_a_call_is_one_fact(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """A tool that was interrupted after it finished runs again."""
    memory = remember_for()
    first = await memory.remember("The caller likes jazz")
    assert await memory.remember("the caller likes jazz.") == first
    assert await texts(client) == ["The caller likes jazz"]


async def test_forget_reads_back_first_and_then_forgets_exactly_that(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Two steps, in two turns of the caller."""
    for text in ("The caller is allergic to peanuts", "The caller lives in Boston"):
        await tell(client, text)
    memory = remember_for()
    query = {"query": "peanuts allergy"}
    ask, confirm = ToolCall("forget", query), ToolCall("forget", {**query, "confirmed": True})
    async with scripted(memory, ask, confirm, "Fine.") as call:
        assert (await call.says("Forget my peanut allergy")).startswith("Not forgotten yet.")
        assert "The caller is allergic to peanuts" in await texts(client)
        assert (await call.says("Yes, forget it")).startswith("Forgotten for good:")
        await call.says("What am I allergic to, peanuts?")
        assert "caller_memory" in call.model.last.prompt
        assert "allergic to peanuts" not in call.model.last.prompt.split("caller_memory")[1]
    assert await texts(client) == ["The caller lives in Boston"]


async def test_forget_without_a_preview_in_an_earlier_turn_only_previews(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """A model that confirms on its own account, at once or for other words, gets a preview again."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    forget = tool(memory, "forget")
    async with call_with(memory) as call:
        await call.says("Tidy up, please")
        assert (await forget("Boston", confirmed=True)).startswith("Not forgotten yet.")
        assert (await forget("Boston", confirmed=True)).startswith("Not forgotten yet.")
        await call.says("Yes")
        assert (await forget("where I live: Boston", confirmed=True)).startswith("Not forgotten yet.")
    assert await texts(client) == ["The caller lives in Boston"]


async def test_confirmed_forget_that_runs_again_says_the_same(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """After an interruption the model repeats the call."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    forget = tool(memory, "forget")
    async with call_with(memory) as call:
        await forget("Boston")
        await call.says("Yes")
        outcome = await forget("Boston", confirmed=True)
        assert outcome.startswith("Forgotten for good:")
        assert await forget("Boston", confirmed=True) == outcome


async def test_forgetting_nothing_says_so(remember_for: Make) -> None:
    """Never more than what happened."""
    assert "nothing to forget" in await tool(remember_for(), "forget")("opera")


async def test_only_ids_that_this_call_has_shown_can_be_forgotten(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """An id from anywhere else is refused before anything is sent."""
    await tell(client, "The caller lives in Boston")
    fact = (await MemoryStore(client).facts("alice"))[0]
    memory = remember_for()
    before = len(faults.requests)
    with pytest.raises(MemoryConfigurationError, match=fact.id):
        await memory.forget([fact.id])
    assert not [r for r in faults.requests[before:] if r.method == "DELETE"]
    assert await memory.forget([f.id for f in await memory.search("Where do I live, Boston?")][:1])


async def test_syntheses_are_never_sent_to_be_forgotten(client: AsyncSupermemory, faults: Faults) -> None:
    """The service cannot forget them by their id."""
    with pytest.raises(MemoryConfigurationError, match="aggregated_1"):
        await MemoryStore(client).forget("alice", ["aggregated_1"])
    assert not [r for r in faults.requests if r.method == "DELETE"]


@pytest.mark.parametrize(
    ("provoke", "spoken"),
    [
        (lambda faults: faults.status(401), "could not save"),
        (lambda faults: faults.status(422), "could not save"),
        (lambda faults: faults.status(503), "could not confirm"),
        (lambda faults: faults.refuse(), "could not confirm"),
    ],
)
async def test_failed_save_is_said_as_it_is(
    remember_for: Make, faults: Faults, provoke: Callable[[Faults], None], spoken: str
) -> None:
    """Refused is not the same as unknown."""
    memory = remember_for()
    provoke(faults)
    with pytest.raises(ToolError, match=spoken):
        await tool(memory, "remember")("The caller likes jazz")


async def test_save_whose_answer_was_lost_is_checked(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """The fact is there, so "saved" is true."""
    memory = remember_for()
    faults.drop(on="add", times=1)
    assert (await tool(memory, "remember")("The caller likes jazz")).startswith("Saved")
    assert await texts(client) == ["The caller likes jazz"]


async def test_remember_refuses_while_paused_and_for_blank_text(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """ "Do not remember this" reaches the tools too."""
    memory = remember_for()
    memory.pause()
    with pytest.raises(ToolError, match="paused"):
        await tool(memory, "remember")("The caller likes jazz")
    memory.resume()
    with pytest.raises(ToolError, match="nothing to remember"):
        await tool(memory, "remember")("  \n")
    with pytest.raises(ToolError, match="too long"):
        await tool(memory, "remember")("x" * 10_000)
    assert await texts(client) == []


async def test_tools_without_a_caller_say_that_there_is_no_memory(remember_for: Make) -> None:
    """Not an error of the model's."""
    memory = remember_for(None)
    for name, arguments in (("search_memories", ["x"]), ("remember", ["x"]), ("forget", ["x"])):
        with pytest.raises(ToolError, match="no memory"):
            await tool(memory, name)(*arguments)


async def test_partial_failure_of_forget_says_what_is_gone(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """And this call stops using what is gone."""
    for text in ("The caller lives in Boston", "The caller was born in Boston"):
        await tell(client, text)
    memory = remember_for()
    found = await memory.preview_forget("Boston")
    assert len(found) == 2
    faults.status(503, on="forget")
    with pytest.raises(MemoryStoreError) as error:
        await memory.forget([fact.id for fact in found])
    assert error.value.forgotten == ()
    assert len(await texts(client)) == 2


async def test_each_listed_fact_can_be_forgotten(remember_for: Make, client: AsyncSupermemory) -> None:
    """A page shows the list; a running call must not go on using what was chosen from it."""
    await tell(client, "The caller lives in Boston")
    memory = remember_for()
    async with call_with(memory) as call:
        await call.says("Where do I live?")
        assert "Boston" in call.model.last.prompt
        [fact] = await memory.facts()
        assert [gone.id for gone in await memory.forget([fact.id])] == [fact.id]
        assert await memory.facts() == []
        await call.says("Where do I live now?")
        assert "Boston" not in call.model.last.prompt


async def test_what_was_told_in_one_call_and_forgotten_in_the_next_is_nowhere_in_the_third(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Not in the prompt, not in a search, not in any document, the dialogue about forgetting included."""
    first = remember_for(session_id="first")
    async with scripted(first, "I see.") as call:
        await call.says("I'm allergic to peanuts and I live in Boston")
    await first.aclose()

    second = remember_for(session_id="second", capture_interval=0.0)
    query = {"query": "peanut allergy"}
    async with scripted(
        second, ToolCall("forget", query), ToolCall("forget", {**query, "confirmed": True})
    ) as call:
        await call.says("Please forget my peanut allergy")
        assert (await call.says("Yes")).startswith("Forgotten for good: The caller is allergic to peanuts")
    await second.aclose()

    hits = await client.search("alice", query="peanut allergy", search_mode="hybrid", limit=20, threshold=0.0)
    assert "peanut" not in str(hits)
    documents = (await client.list("alice", "documents", include={"content": True})).documents
    assert {document.id for document in documents} >= {"lk-first", "lk-second"}
    assert "peanut" not in str(documents)

    third = remember_for(session_id="third")
    async with scripted(third, "Fine.") as call:
        await call.says("Am I allergic to peanuts? Where do I live?")
    prompt = call.model.last.prompt
    assert "Boston" in prompt
    assert "peanuts" not in prompt.split("</caller_memory>")[0]


async def test_remembered_fact_that_a_newer_one_replaced_is_not_listed(client: AsyncSupermemory) -> None:
    """ "I eat meat again": the old wish is history."""
    store = MemoryStore(client)
    await store.remember("alice", "I'm vegetarian", {})
    await store.remember("alice", "I eat meat again", {})
    assert await texts(client) == ["I eat meat again"]


async def test_what_is_told_again_is_not_called_forgotten(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The same words to forget it, in a later turn, read back what has come since."""
    await tell(client, "The caller is allergic to peanuts")
    memory = remember_for()
    query = {"query": "peanuts allergy"}
    confirmed = {**query, "confirmed": True}
    moves = [ToolCall("forget", query), ToolCall("forget", confirmed), ToolCall("forget", confirmed)]
    async with scripted(memory, *moves) as call:
        await call.says("Forget my peanut allergy")
        assert (await call.says("Yes")).startswith("Forgotten for good")
        await memory.remember("The caller is allergic to peanuts after all")
        assert (await call.says("Yes, forget it")).startswith("Not forgotten yet")
    await memory.aclose()
