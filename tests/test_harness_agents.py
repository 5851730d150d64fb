"""The same for what agents are made of: tools, handoffs, realtime models and jobs, without any memory.

As in `test_harness.py`, each test is a fact of livekit-agents that the memory relies on.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from livekit.agents import (
    Agent,
    AgentServer,
    AgentSession,
    JobContext,
    JobExecutorType,
    function_tool,
    llm,
)

from tests.harness import (
    Call,
    FakeParticipant,
    FakeRoom,
    Reply,
    Request,
    ScriptedLLM,
    ScriptedRealtime,
    ScriptedSTT,
    ToolCall,
    answering,
    end_job,
    fake_job,
    fake_worker,
)
from tests.plain_agent import Plain, echo, remember

# --- Tools ----------------------------------------------------------------------------------------


async def test_the_follow_up_of_a_tool_carries_the_same_user_message() -> None:
    """One turn, two requests, one id; the second sees the tool's output."""
    model = ScriptedLLM([Reply(calls=[ToolCall("remember", {"text": "vegetarian"})]), "Noted."])
    async with Call(Plain(), model=model, tools=[remember]) as call:
        assert await call.says("I'm vegetarian, remember that") == "Noted."
    asked, followed_up = call.model.requests
    assert asked.tools == ["remember"]
    assert asked.user_message_id == followed_up.user_message_id is not None
    assert (asked.tool_output, followed_up.tool_output) == (None, "noted: vegetarian")


async def test_words_before_a_call_are_a_reply_of_their_own() -> None:
    """The script counts them and the call as one answer."""
    one_moment = Reply("One moment.", calls=[ToolCall("remember", {"text": "x"})])
    model = ScriptedLLM([one_moment, "Done.", "Bye."])
    async with Call(Plain(), model=model, tools=[remember]) as call:
        assert await call.says("remember x") == "One moment."
        assert await call.reply() == "Done."
        assert await call.says("thanks") == "Bye."


# --- Handoffs -------------------------------------------------------------------------------------


async def test_each_agent_answers_with_its_own_instructions_and_back() -> None:
    """The session stays, the recogniser's stream stays, the node of the current agent runs."""
    first, second = Agent(instructions="I am first."), Agent(instructions="I am second.")
    async with Call(first, model=lambda request: request.instructions) as call:
        assert await call.says("who is there") == "I am first."
        await call.handoff(second)
        assert await call.says("and now") == "I am second."
        await call.handoff(first)
        assert await call.says("and now") == "I am first."


async def test_a_tool_may_hand_over() -> None:
    """The handoff is announced as an item, with the new agent already in place."""
    second = Agent(instructions="I am second.")

    @function_tool
    async def transfer() -> Agent:
        """Hand the caller over."""
        return second

    def script(request: Request) -> str | Reply:
        return Reply(calls=[ToolCall("transfer")]) if "transfer" in request.tools else "Second here."

    in_place: list[bool] = []
    call = Call(Agent(instructions="I am first.", tools=[transfer]), model=script)
    call.session.on(
        "conversation_item_added",
        lambda event: (
            in_place.append(call.session.current_agent is second)
            if event.item.type == "agent_handoff"
            else None
        ),
    )
    async with call:
        await call.says("another agent please", reply=False)
        await call.wait_for(
            "conversation_item_added", lambda e: getattr(e.item, "new_agent_id", "") == second.id
        )
        assert await call.says("hello") == "Second here."
    assert in_place == [False, True]


# --- Realtime models ------------------------------------------------------------------------------


async def test_neither_node_nor_hook_runs_with_server_turns() -> None:
    """The provider ends the turn and answers; the session only learns what was said."""
    agent = Plain()
    async with Call(agent, model=ScriptedRealtime(echo)) as call:
        assert await call.says("I'm vegetarian") == "You said I'm vegetarian"
        assert call.transcript == [
            ("user", "I'm vegetarian"),
            ("assistant", "You said I'm vegetarian"),
        ]
    assert (agent.node_runs, agent.hooked) == (0, [])


async def test_the_caller_s_words_may_come_after_the_reply() -> None:
    """The item arrives late, its time is right."""
    async with Call(Plain(), model=ScriptedRealtime(echo, transcripts="after")) as call:
        await call.says("I'm vegetarian")
        assert [role for role, _ in call.transcript] == ["assistant", "user"]
        reply, words = call.events.messages
        assert words.created_at < reply.created_at


async def test_the_caller_s_words_may_never_come_as_an_item() -> None:
    """A recogniser of our own hears them: the finals are all there is."""
    model = ScriptedRealtime(echo, turn_detection="client", transcripts="never")
    async with Call(Plain(), model=model, stt=ScriptedSTT()) as call:
        await call.says("I'm vegetarian")
        assert [role for role, _ in call.transcript] == ["assistant"]
        finals = [e.transcript for e in call.events.named("user_input_transcribed") if e.is_final]
        assert finals == ["I'm vegetarian"]


async def test_with_client_turns_the_hook_runs_without_words() -> None:
    """It is called before the model answers, with an empty message."""
    agent = Plain()
    model = ScriptedRealtime(echo, turn_detection="client")
    async with Call(agent, model=model) as call:
        assert await call.says("I'm vegetarian") == "You said I'm vegetarian"
    assert agent.hooked == [""]
    assert model.current.commits == 1


async def test_an_interrupted_reply_is_cut_on_the_server_too() -> None:
    """The provider is told how much was heard."""
    model = ScriptedRealtime(["Lisbon lies on seven hills", "Sorry."])
    async with Call(Plain(), model=model) as call:
        call.speaker.hold()
        await call.says("Tell me about Lisbon", reply=False)
        assert await call.interrupt_at(3, "Stop it") == "Sorry."
        assert call.replies[0].text_content == "Lisbon lies on"
        assert call.replies[0].interrupted
    assert model.current.truncated == [(call.replies[0].id, 600)]


async def test_tools_typed_text_and_a_context_of_the_agent_work() -> None:
    """What the agent's own context holds at the start reaches the model."""
    known = llm.ChatContext.empty()
    known.add_message(role="user", content="background")

    def script(request: Request) -> str | Reply:
        if request.tool_output:
            return f"Done, {request.tool_output}"
        return Reply(calls=[ToolCall("remember", {"text": "tea"})])

    async with Call(Plain(chat_ctx=known, tools=[remember]), model=ScriptedRealtime(script)) as call:
        assert await call.says("remember tea") == "Done, noted: tea"
        assert await call.types("remember tea") == "Done, noted: tea"
        assert "background" in call.model.requests[0].prompt


@pytest.mark.parametrize(("mutable", "sessions"), [(True, 1), (False, 2)])
async def test_a_handoff_keeps_the_connection_where_the_provider_can(mutable: bool, sessions: int) -> None:
    """Otherwise there is a new one, which knows only the new agent's context."""
    model = ScriptedRealtime(lambda request: request.instructions, mutable=mutable)
    async with Call(Agent(instructions="I am first."), model=model) as call:
        assert await call.says("who is there") == "I am first."
        await call.handoff(Agent(instructions="I am second."))
        assert await call.says("and now") == "I am second."
    assert len(model.sessions) == sessions


# --- Jobs -----------------------------------------------------------------------------------------


async def test_a_session_made_by_others_can_be_called() -> None:
    """An entrypoint with cloud models, in a room with a caller who talks, types and leaves."""
    room = FakeRoom("room-7", FakeParticipant("anna"))
    with fake_job({"container_tag": "anna"}, room=room) as ctx, answering(model=echo) as calls:
        assert (ctx.job.metadata, ctx.room.name) == ('{"container_tag": "anna"}', "")
        await ctx.connect()
        assert (ctx.room.name, (await ctx.wait_for_participant()).identity) == ("room-7", "anna")
        session: AgentSession[None] = AgentSession(
            stt="deepgram/nova-3:en",
            llm="openai/gpt-4.1-mini",
            tts="cartesia/sonic-3",
            user_away_timeout=600.0,
        )
        assert session.options.user_away_timeout == 600.0
        await session.start(room=ctx.room, agent=Plain())
        (call,) = calls
        assert await call.says("I'm vegetarian") == "You said I'm vegetarian"
        room.texts("anna", "and I moved")
        assert await call.reply() == "You said and I moved"
        room.leaves("anna")
        await call.wait_for("close")


async def test_a_job_ends_in_the_worker_s_order() -> None:
    """Close, then `on_session_end`, then the callbacks."""
    order: list[str] = []

    async def callback() -> None:
        order.append("callback")

    async def session_end(context: JobContext) -> None:
        order.append("session end")

    with fake_job() as ctx:
        ctx.add_shutdown_callback(callback)
        async with Call(Plain()) as call:
            call.session.on("close", lambda _: order.append("close"))
            await call.says("hello")
            await end_job(ctx, session_end)
    assert order == ["close", "session end", "callback"]


async def test_a_whole_worker_runs_a_job() -> None:
    """From the entrypoint to `on_session_end`, in the worker's own loop, without a server."""
    heard: list[Any] = []
    ended = threading.Event()
    server = AgentServer(job_executor_type=JobExecutorType.THREAD, host="127.0.0.1")

    async def session_end(context: JobContext) -> None:
        ended.set()

    @server.rtc_session(on_session_end=session_end)
    async def entrypoint(ctx: JobContext) -> None:
        call = Call(Plain(), model=echo)
        await call.session.start(Plain())
        heard.append((ctx.is_fake_job(), await call.types("hello")))
        ctx.shutdown()

    async with fake_worker(server) as launch:
        await launch()
        assert await asyncio.to_thread(ended.wait, 10)
    assert heard == [(True, "You said hello")]
