"""What is stored of a call."""

from __future__ import annotations

import asyncio
import re

import pytest
from livekit.agents import Agent, ChatContext, StopResponse, llm
from supermemory import AsyncSupermemory

from memory.embedded import Faults
from memory.prompt import PAUSED, RESUMED
from tests.calls.kit import Make, added, by_caller, call_with, numbers, said, stored, tell
from tests.harness import Reply, Request, ToolCall
from tests.support.waiting import eventually


async def test_every_line_has_number_time_and_speaker_in_the_order_of_the_call(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The transcript reads as the call went."""
    memory = remember_for(session_id="room")
    async with call_with(memory, model=["Nice to hear.", "Sure."]) as call:
        await call.says("I'm vegetarian")
        await call.types("And I live in Boston")
    await memory.aclose()
    lines = await stored(client)
    assert said(lines) == [
        ("Caller", "I'm vegetarian"),
        ("Agent", "Nice to hear."),
        ("Caller", "And I live in Boston"),
        ("Agent", "Sure."),
    ]
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert [line.when for line in lines] == sorted(line.when for line in lines)


async def test_saying_yes_twice_is_stored_twice(remember_for: Make, client: AsyncSupermemory) -> None:
    """Equal words are not the same words."""
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.says("Yes")
        await call.says("Yes")
    await memory.aclose()
    assert by_caller(await stored(client)) == ["Yes", "Yes"]


async def test_item_that_is_delivered_twice_is_stored_once(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """An event may come again after a reconnect."""
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        for event in [e.event for e in call.events.happened if e.name == "conversation_item_added"]:
            call.session.emit("conversation_item_added", event)
    await memory.aclose()
    assert said(await stored(client)) == [("Caller", "I'm vegetarian"), ("Agent", "All right.")]


async def test_interrupted_reply_is_stored_as_spoken_and_marked(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The caller never heard the rest."""
    memory = remember_for(session_id="room")
    async with call_with(memory, model=["one two three four five six seven", "Sure."]) as call:
        call.speaker.hold()
        await call.says("Count, please", reply=False)
        await call.interrupt_at(3, "Stop it now")
    await memory.aclose()
    reply = (await stored(client))[1]
    assert reply.interrupted
    assert reply.text.startswith("one")
    assert "seven" not in reply.text


async def test_reconnect_with_the_same_session_id_goes_on_in_the_same_document(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """A dropped line is one call with two halves."""
    for words in ("First half of it", "Second half of it"):
        memory = remember_for(session_id="room")
        async with call_with(memory) as call:
            await call.says(words)
        await memory.aclose()
    lines = await stored(client)
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert by_caller(lines) == ["First half of it", "Second half of it"]


async def test_words_of_a_dropped_turn_are_stored(remember_for: Make, client: AsyncSupermemory) -> None:
    """A hook that stops the response takes the message out of the conversation, not out of the world."""

    class Dropping(Agent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if "secretly" in (new_message.text_content or ""):
                raise StopResponse

    memory = remember_for(session_id="room")
    async with call_with(memory, Dropping(instructions="Be brief.")) as call:
        await call.says("I secretly like jazz", reply=False)
        await call.says("What time is it?")
    await memory.aclose()
    words = " ".join(by_caller(await stored(client)))
    assert words.count("I secretly like jazz") == 1
    assert words.count("What time is it?") == 1


async def test_directives_and_markdown_are_not_stored(remember_for: Make, client: AsyncSupermemory) -> None:
    """They are for the voice, not for the memory."""
    memory = remember_for(session_id="room")
    async with call_with(memory, model='**Sure** <break time="1s"/> done.') as call:
        await call.says("Do it")
    await memory.aclose()
    assert said(await stored(client))[1] == ("Agent", "Sure done.")


async def test_tool_output_and_instructions_are_not_stored(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Only what was said is a transcript."""
    await tell(client, "The caller is vegetarian")
    memory = remember_for(session_id="room")
    script = [Reply(calls=[ToolCall("search_memories", {"query": "diet"})]), Reply("Lentils.")]
    agent = Agent(instructions="SECRET INSTRUCTIONS", tools=memory.tools())
    async with call_with(memory, agent, model=lambda r: script[r.tool_output is not None]) as call:
        await call.says("What should I cook?")
    await memory.aclose()
    assert said(await stored(client)) == [("Caller", "What should I cook?"), ("Agent", "Lentils.")]


async def test_bare_address_is_stored_as_words(remember_for: Make, faults: Faults) -> None:
    """A document that is nothing but an address would be fetched."""
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.types("https://internal.example/secret")
        await memory.remember("https://internal.example/secret")
    await memory.aclose()
    assert len(added(faults)) == 2
    assert all(not re.match(r"\s*\w+://", content) for content in added(faults))


async def test_slow_store_delays_no_reply(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """The reply is out while the first append still hangs."""
    faults.delay(1.0, on="add")
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        await call.says("And I live in Boston")
        assert len(call.replies) == 2
        assert await stored(client) == []
        faults.clear()
    await memory.aclose()
    assert len(await stored(client)) == 4


async def test_append_whose_answer_was_lost_is_not_repeated(
    remember_for: Make, faults: Faults, client: AsyncSupermemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service took the lines and the connection broke before it said so."""
    monkeypatch.setattr("memory.capture._FIRST_PAUSE", 0.01)
    faults.drop(on="add", times=1)
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
    await memory.aclose()
    assert said(await stored(client)) == [("Caller", "I'm vegetarian"), ("Agent", "All right.")]


async def test_store_that_comes_back_gets_everything_in_order(
    remember_for: Make, faults: Faults, client: AsyncSupermemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage in the middle of a call costs nothing."""
    monkeypatch.setattr("memory.capture._FIRST_PAUSE", 0.01)
    faults.status(503, on="add", times=3)
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        for words in ("One thing", "Another thing", "A third thing"):
            await call.says(words)
    await memory.aclose()
    assert by_caller(await stored(client)) == ["One thing", "Another thing", "A third thing"]


async def test_rejected_batch_does_not_block_the_next(
    remember_for: Make, faults: Faults, client: AsyncSupermemory, caplog: pytest.LogCaptureFixture
) -> None:
    """What the service will never take is given up, counted and reported."""
    faults.status(422, on="add", times=1)
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("The rejected one")
        await eventually(lambda: "could not store" in caplog.text)
        await call.says("The next one")
    await memory.aclose()
    assert by_caller(await stored(client)) == ["The next one"]
    assert numbers(caplog)["lines_lost"] == 2


async def test_pause_drops_the_callers_whole_current_turn_and_the_reply_to_it(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """ "Do not remember this" comes after the sentence it is about."""
    memory = remember_for(session_id="room")

    def model(request: Request) -> Reply:
        if "PIN" in request.user_text:
            memory.pause()
            return Reply("I will not keep 1234.")
        return Reply("All right.")

    async with call_with(memory, model=model) as call:
        await call.says("I'm vegetarian")
        await call.says("My PIN is 1234, do not remember this")
        await call.says("I also hate my boss")
        memory.resume()
        await call.says("I live in Boston")
    await memory.aclose()
    text = str(said(await stored(client)))
    assert "vegetarian" in text
    assert "Boston" in text
    assert "1234" not in text
    assert "boss" not in text


@pytest.mark.parametrize("facts", [[], ["The caller plays the harp"]])
async def test_model_knows_of_a_pause(remember_for: Make, client: AsyncSupermemory, facts: list[str]) -> None:
    """A switch is nothing that was said, and a model that does not know of it promises to remember."""
    for fact in facts:
        await tell(client, fact)
    memory = remember_for()
    async with call_with(memory) as call:
        for change, expected in (
            (None, ()),
            (memory.pause, (PAUSED,)),
            (memory.resume, (RESUMED,)),
            (memory.unbind, ()),
        ):
            if change is not None:
                change()
            await call.says("What do I play?")
            told = call.model.last.prompt
            assert tuple(note for note in (PAUSED, RESUMED) if note in told) == expected
        assert PAUSED not in str(call.transcript)


async def test_pause_by_a_tool_reaches_the_sentence_that_asked_for_it(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """The agent has said "one moment" before its tool pauses; the answered turn before it is kept."""
    memory = remember_for(session_id="room", capture_interval=60.0)
    heard = asyncio.Event()

    @llm.function_tool
    async def do_not_remember() -> str:
        """Stop storing."""
        await heard.wait()
        memory.pause()
        return "Paused."

    def model(request: Request) -> Reply:
        if request.tool_output is not None or "PIN" not in request.user_text:
            return Reply("All right.")
        return Reply("One moment please.", calls=[ToolCall("do_not_remember")])

    agent = Agent(instructions="Be brief.", tools=[do_not_remember])
    async with call_with(memory, agent, model=model) as call:
        await call.says("I live in Boston")
        assert await call.says("My PIN is 4711, do not remember this") == "One moment please."
        heard.set()
        await call.reply()
    await memory.aclose()
    assert by_caller(await stored(client)) == ["I live in Boston"]


async def test_turn_that_began_while_paused_is_not_stored(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Resuming in the middle of a sentence recovers nothing of it."""
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        memory.pause()
        await call.speech_started()
        await call.final("My PIN is")
        memory.resume()
        await call.final("1234")
        await call.speech_ended()
        await call.reply()
    await memory.aclose()
    assert "PIN" not in str(said(await stored(client)))
    assert "1234" not in str(said(await stored(client)))


async def test_capture_never_stores_no_transcript_but_what_was_asked_for(
    remember_for: Make, client: AsyncSupermemory, faults: Faults
) -> None:
    """A project may want memory without transcripts."""
    memory = remember_for(session_id="room", capture="never")
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        await memory.remember("The caller likes jazz")
    await memory.aclose()
    assert added(faults) == ["The caller likes jazz"]


async def test_unbind_takes_back_what_the_call_stored_under_the_wrong_person(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """ "I'm not Alice": nothing of this call stays in that memory, and the right person's begins."""
    await tell(client, "Alice's own earlier note")
    memory = remember_for(session_id="room", capture_interval=0.0)
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
        await memory.remember("The caller likes jazz")
        memory.unbind()
        assert memory.state == "off"
        assert memory.bind(container_tag="bob") == "bob"
        await call.says("I live in Boston")
        assert "own earlier note" not in call.model.last.prompt
    await memory.aclose()
    kept = (await client.list("alice", "documents", include={"content": True})).documents
    assert [document.content for document in kept] == ["Alice's own earlier note"]
    assert "Boston" in str(said(await stored(client, tag="bob")))
    assert "vegetarian" not in str(said(await stored(client, tag="bob")))


async def test_aclose_is_idempotent_and_bounded(
    remember_for: Make,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The end of a call waits for a dead store only so long, and never raises."""
    monkeypatch.setattr("memory.livekit.FLUSH_TIMEOUT", 0.05)
    faults.refuse()
    memory = remember_for(session_id="room")
    async with call_with(memory) as call:
        await call.says("I'm vegetarian")
    async with asyncio.timeout(5):
        await asyncio.gather(memory.aclose(), memory.aclose())
        await memory.aclose()
    assert numbers(caplog)["lines_lost"] == 2


async def test_pause_before_the_caller_is_known_holds(remember_for: Make, client: AsyncSupermemory) -> None:
    """A wish is not lost because it comes early."""
    memory = remember_for(None, session_id="room")
    memory.pause()
    memory.bind("alice")
    assert memory.state == "paused"
    async with call_with(memory) as call:
        await call.says("My PIN is 1234")
    await memory.aclose()
    assert await stored(client) == []
