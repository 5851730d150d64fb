"""The template's own agent, from the job's beginning to its end, without a LiveKit server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import JobExecutorType

import agent
import local.models  # noqa: F401  # on the main thread, where LiveKit wants its plugins; the command does it too
import pipeline
from memory import MemoryStore, embedded
from tests.harness import (
    FakeParticipant,
    FakeRoom,
    Reply,
    ToolCall,
    answering,
    end_job,
    fake_job,
    fake_worker,
)
from tests.support.waiting import eventually

CALLER = {"container_tag": "tag-alice", "participant_identity": "alice", "session_id": "call-1"}


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No account, no key, and a memory of this test alone."""
    for name in (
        "SUPERMEMORY_API_KEY",
        "SUPERMEMORY_BASE_URL",
        "LIVEKIT_URL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORY_DIR", str(tmp_path))
    return tmp_path


async def facts(folder: Path, tag: str) -> list[str]:
    client = embedded.client(folder / "memory.sqlite3")
    try:
        return [fact.text for fact in await MemoryStore(client).facts(tag)]
    finally:
        await client.close()


async def test_caller_of_a_dispatch_is_remembered_and_greeted_as_such(own_memory: Path) -> None:
    """The whole job twice: said in the first call, known in the greeting of the second."""
    for said in ("My name is Emily", "Hello again"):
        with answering(model="All right.") as calls, fake_job(CALLER, room=FakeRoom("room")) as ctx:
            await agent.entrypoint(ctx)
            await calls[0].reply()
            await calls[0].says(said)
            await end_job(ctx, agent.store_the_call)
    greeting = calls[0].model.requests[0]
    assert "Emily" in greeting.prompt
    assert "by name" not in greeting.prompt
    assert await facts(own_memory, "tag-alice") == ["The caller's name is Emily."]


async def test_do_not_remember_by_voice(own_memory: Path) -> None:
    """Said aloud, it covers the sentence it is about."""

    def model(request: Any) -> Reply:
        if request.tool_output is not None:
            return Reply("I will not keep that.")
        return (
            Reply(calls=[ToolCall("do_not_remember")])
            if "secret" in request.user_text
            else Reply("All right.")
        )

    with answering(model=model) as calls, fake_job(CALLER, room=FakeRoom("room")) as ctx:
        await agent.entrypoint(ctx)
        await calls[0].reply()
        await calls[0].says("I live in Rome, that is secret")
        await calls[0].says("I love opera")
        await end_job(ctx, agent.store_the_call)
    assert await facts(own_memory, "tag-alice") == []


async def test_not_me_lets_go_of_the_wrong_persons_memory(own_memory: Path) -> None:
    """A borrowed phone: nothing more of the owner is told, and nothing stored for them."""

    def model(request: Any) -> Reply:
        if request.tool_output is not None:
            return Reply("Sorry about that.")
        return Reply(calls=[ToolCall("not_me")]) if "not Emily" in request.user_text else Reply("All right.")

    for words in (["My name is Emily"], ["I'm not Emily", "I love opera"]):
        with answering(model=model) as calls, fake_job(CALLER, room=FakeRoom("room")) as ctx:
            await agent.entrypoint(ctx)
            await calls[0].reply()
            for said in words:
                await calls[0].says(said)
            await end_job(ctx, agent.store_the_call)
    assert "caller_memory" not in calls[0].model.requests[-1].prompt
    assert await facts(own_memory, "tag-alice") == ["The caller's name is Emily."]


async def test_whole_job_without_any_account_runs_with_the_demo_model(
    own_memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a cloner's first console does: the job starts, greets, and its end stores the call."""
    monkeypatch.setenv("MEMORY_CALLER", "alice")
    monkeypatch.setattr(agent.server, "_job_executor_type", JobExecutorType.THREAD)
    assistants: list[agent.Assistant] = []

    class Greeting(agent.Assistant):
        async def on_enter(self) -> None:
            assistants.append(self)
            await super().on_enter()

    monkeypatch.setattr(agent, "Assistant", Greeting)
    caplog.set_level("INFO")
    async with fake_worker(agent.server) as launch:
        await launch()
        await eventually(lambda: assistants and [m.role for m in assistants[0].chat_ctx.messages()])
    assert "memory of this call" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_on_livekit_cloud_models_are_inference_strings_and_each_can_be_changed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What `AgentSession` resolves; no local model is looked for, so `local/` may be deleted."""
    monkeypatch.setenv("LIVEKIT_URL", "wss://project.livekit.cloud")
    monkeypatch.setenv("LIVEKIT_API_KEY", "devkey")
    monkeypatch.setenv("LIVEKIT_API_SECRET", "secret-secret-secret-secret-secret")
    monkeypatch.setenv("AGENT_TTS", "cartesia/sonic-turbo")
    monkeypatch.setitem(sys.modules, "local", None)
    with fake_job() as ctx:
        ctx.proc.userdata["vad"] = None
        models, _ = await pipeline.pick_models(ctx)
    names = [models[name] for name in ("stt", "llm", "tts")]
    assert names == ["deepgram/nova-3:en", "openai/gpt-4.1-mini", "cartesia/sonic-turbo"]


@pytest.mark.parametrize(
    "metadata", ["", "not json", "[1]", '{"container_tag": 3}', '{"container_tag": ""}', "null"]
)
def test_hostile_dispatch_metadata_counts_as_absent(metadata: str) -> None:
    """A job must not fail on what somebody typed into a dispatch."""
    with fake_job(metadata) as ctx:
        assert agent.read_dispatch(ctx) == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TURN_DETECTION", "maybe", "TURN_DETECTION='maybe'"),
        ("SUPERMEMORY_API_KEY", '"sm_x"', "SUPERMEMORY_API_KEY"),
        ("SUPERMEMORY_BASE_URL", "http://127.0.0.1:6767", "without SUPERMEMORY_API_KEY"),
        ("LIVEKIT_URL", " ", "LIVEKIT_URL"),
        ("LIVEKIT_URL", "wss://[broken", "LIVEKIT_URL"),
        ("LIVEKIT_SESSION_HOST", "maybe", "LIVEKIT_SESSION_HOST='maybe'"),
        ("MEMORY_DIR", "/proc/nowhere", "MEMORY_DIR"),
        ("LIVEKIT_API_SECRET", "", "LIVEKIT_API_SECRET"),
        ("LIVEKIT_AGENT_NAME", "my agent", "LIVEKIT_AGENT_NAME"),
    ],
)
def test_worker_with_a_bad_setting_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    """It names the setting; a worker that starts and fails later says nothing."""
    monkeypatch.setenv("LIVEKIT_URL", "ws://127.0.0.1:7880")
    monkeypatch.setenv("LIVEKIT_API_KEY", "devkey")
    monkeypatch.setenv("LIVEKIT_API_SECRET", "secret-secret-secret-secret-secret")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["agent.py", "start"])
    with pytest.raises(SystemExit) as exit_status:
        agent.main()
    assert words in str(exit_status.value)


async def test_page_methods_answer_the_caller_only(own_memory: Path) -> None:
    """Everybody in a room can call an agent's methods."""
    room = FakeRoom("room", FakeParticipant("alice"))
    with answering(model="All right.") as calls, fake_job(CALLER, room=room) as ctx:
        await agent.entrypoint(ctx)
        await calls[0].reply()
        assert await room.calls("alice", "memory.ping") == "pong"
        for method in ("memory.ping", "memory.pause", "memory.forget"):
            with pytest.raises(rtc.RpcError):
                await room.calls("mallory", method, "{}")
        for payload in ("[]", "no json", "x" * 20_000, "{}", '{"id": 1}', '{"everything": "yes"}'):
            with pytest.raises(rtc.RpcError):
                await room.calls("alice", "memory.forget", payload)
        assert await room.calls("alice", "memory.forget", '{"id": "gone"}') == '{"forgotten": []}'
        assert json.loads(await room.calls("alice", "memory.pause", '{"paused": true}')) == {
            "state": "paused"
        }
        await calls[0].says("I love opera")
        resumed = await room.calls("alice", "memory.pause", '{"paused": false}')
        assert json.loads(resumed) == {"state": "on"}
        await calls[0].says("I live in Boston")
        assert room.local_participant.attributes["memory.state"] == "on"
        await end_job(ctx, agent.store_the_call)
    assert await facts(own_memory, "tag-alice") == ["The caller lives in Boston."]


async def test_page_is_told_what_memory_did_and_in_which_state_it_is(own_memory: Path) -> None:
    """Chips and switches on the page show what really happened."""
    room = FakeRoom("room", FakeParticipant("alice"))
    for said in ("My name is Emily", "What is my name?"):
        room = FakeRoom("room", FakeParticipant("alice"))
        with answering(model="All right.") as calls, fake_job(CALLER, room=room) as ctx:
            await agent.entrypoint(ctx)
            await calls[0].reply()
            await calls[0].says(said)
            await end_job(ctx, agent.store_the_call)
    attributes = room.local_participant.attributes
    assert attributes["memory.store"] == "embedded"
    assert attributes["memory.recorded"] == "false"
    told = [json.loads(sent.text) for sent in room.local_participant.sent if sent.topic == "memory.events"]
    assert told
    assert {event["type"] for event in told} == {"recalled"}
    assert told[-1]["facts"][0]["text"] == "The caller's name is Emily."
    assert told[-1]["waited_ms"] >= 0
    assert all(sent.to == ("alice",) for sent in room.local_participant.sent)
