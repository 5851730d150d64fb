"""The memory service fails in every way; the agent answers all the same."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, get_args

import pytest
from supermemory import AsyncSupermemory

from memory import MemoryStore
from memory.embedded import Faults
from memory.embedded.faults import Malformed
from tests.calls.kit import Make, by_caller, call_with, numbers, stored, stored_so_far, tell
from tests.harness import Reply
from tests.support.waiting import eventually

Provoke = Callable[[Faults], None]

SLACK = 0.8
"""Seconds that a busy machine may add to a wait."""


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.name == "memory" and r.levelno >= logging.WARNING]


@pytest.mark.parametrize("how", get_args(Malformed))
async def test_every_malformed_answer_leaves_a_normal_call(
    remember_for: Make, faults: Faults, caplog: pytest.LogCaptureFixture, how: Malformed
) -> None:
    """Whatever stands at the memory address, the caller is answered; each kind of work warns at most once."""
    faults.malformed(how, on="profile")
    faults.malformed(how, on="search")
    async with call_with(remember_for()) as call:
        assert await call.says("Where do I live?") == "All right."
        assert await call.says("What do I eat?") == "All right."
    assert len(warnings(caplog)) <= 2
    assert not [record for record in warnings(caplog) if record.levelno > logging.WARNING]


@pytest.mark.parametrize(
    "provoke",
    [
        pytest.param(lambda faults: faults.refuse(), id="refused"),
        pytest.param(lambda faults: faults.reset(), id="reset"),
        pytest.param(lambda faults: faults.black_hole(), id="black hole"),
        pytest.param(lambda faults: faults.trickle(0.2), id="trickle"),
        pytest.param(lambda faults: faults.drop(), id="dropped"),
        pytest.param(lambda faults: faults.delay(12.0), id="cold start"),
    ],
)
async def test_every_transport_fault_leaves_a_normal_call(
    remember_for: Make,
    faults: Faults,
    provoke: Provoke,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reply goes out at its deadline; what the service would say later is not waited for."""
    monkeypatch.setattr("memory.livekit.FLUSH_TIMEOUT", 0.1)
    provoke(faults)
    memory = remember_for(recall_timeout=0.2)
    async with call_with(memory) as call:
        assert await call.says("Where do I live?") == "All right."
        assert await call.types("What do I eat?") == "All right."
        assert len(call.model.requests) == 2
    await memory.aclose()
    assert numbers(caplog)["waited_most"] <= 0.2 + SLACK


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "SUPERMEMORY_API_KEY"),
        (402, "balance"),
        (403, "scoped"),
        (404, "older than SDK 5"),
        (409, "busy"),
        (422, "invalid"),
        (429, "rate"),
        (503, "problem of its own"),
    ],
)
async def test_every_refusal_warns_once_per_call_with_what_to_do(
    remember_for: Make,
    faults: Faults,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    advice: str,
) -> None:
    """Ten turns with a wrong key are one line in the log, not twenty."""
    monkeypatch.setattr("memory.livekit.FLUSH_TIMEOUT", 0.05)
    faults.status(status, headers={"Retry-After": "30"})
    async with call_with(remember_for()) as call:
        for number in range(3):
            assert await call.says(f"Question number {number} please") == "All right."
    told = [(r["work"], r["advice"]) for r in map(vars, warnings(caplog)) if "advice" in r]
    assert len(told) == len(set(told))
    assert {work for work, _ in told} >= {"profile", "search"}
    assert all(advice in text for _, text in told)


async def test_only_what_can_succeed_later_is_sent_again(
    remember_for: Make, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy service again and again, a wrong key or empty account once more at the end, nonsense never."""
    monkeypatch.setattr("memory.capture._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("memory.livekit.FLUSH_TIMEOUT", 0.3)
    for status, least, most in (
        (422, 1, 1),
        (401, 2, 2),
        (402, 2, 2),
        (409, 3, 99),
        (429, 3, 99),
        (500, 3, 99),
    ):
        faults.clear()
        faults.requests.clear()
        faults.status(status, on="add")
        memory = remember_for(session_id=f"room-{status}", capture_interval=0.0)
        async with call_with(memory) as call:
            await call.says("I'm vegetarian")
            await eventually(lambda: faults.seen("add"))
        await memory.aclose()
        assert least <= len(faults.seen("add")) <= most, status


async def test_handler_of_ours_that_fails_never_reaches_livekit(
    remember_for: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A TypeError in an event handler would abort the reply."""

    def broken(*_: Any, **__: Any) -> None:
        raise TypeError("of ours")

    for name in ("hear", "commit", "agent_spoke", "drop_turn", "for_message"):
        monkeypatch.setattr(f"memory.recall.Recall.{name}", broken)
    memory = remember_for()
    memory.on("recalled", broken)
    async with call_with(memory) as call:
        assert await call.says("Where do I live?") == "All right."
        assert await call.says("What do I eat?") == "All right."
    assert len(call.model.requests) == 2
    assert any("call goes on" in record.message for record in warnings(caplog))


async def test_memory_that_comes_back_is_used_again(
    remember_for: Make, faults: Faults, client: AsyncSupermemory
) -> None:
    """A profile that failed is asked for again at a later turn."""
    await tell(client, "The caller is vegetarian")
    faults.status(503)
    async with call_with(remember_for()) as call:
        await call.says("What should I cook?")
        assert "vegetarian" not in call.model.last.prompt
        faults.clear()
        await call.says("And what should I eat tomorrow?")
        await call.says("And what should I eat the day after?")
    assert "vegetarian" in call.model.last.prompt


async def test_answer_that_nobody_foresaw_does_not_end_capture(
    remember_for: Make,
    client: AsyncSupermemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What comes after it is stored, what it cost is counted, and the end of the call does not raise."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    append = MemoryStore.append

    async def broken(*_: Any) -> None:
        monkeypatch.setattr(MemoryStore, "append", append)
        raise ZeroDivisionError

    monkeypatch.setattr(MemoryStore, "append", broken)
    async with call_with(memory) as call:
        await call.says("The first thing")
        await eventually(lambda: "could not store" in caplog.text)
        await call.says("The second thing")
    await memory.aclose()
    assert by_caller(await stored(client)) == ["The second thing"]
    assert numbers(caplog)["lines_lost"] == 2


async def test_monologue_is_stored_while_the_model_fails(
    remember_for: Make, client: AsyncSupermemory
) -> None:
    """Only the last unanswered words wait; the process may be killed."""
    memory = remember_for(session_id="room", capture_interval=0.0)
    broken = Reply(error=RuntimeError("no model"))
    async with call_with(memory, model=lambda request: broken) as call:
        for words in ("One thing", "Another thing", "A third thing"):
            await call.says(words, reply=False)
        assert by_caller(await stored_so_far(client, lines=2)) == ["One thing", "Another thing"]
