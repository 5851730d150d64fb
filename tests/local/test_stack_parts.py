"""The processes of the stack: started, watched over and ended, one by one and together."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from local import guard, ports, stack
from local.part import Part, PartFailed

pytestmark = pytest.mark.usefixtures("machine")


# One part


class Told:
    """What a part, or a stack, has told the person and the guard."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.groups: list[str] = []
        self._news = asyncio.Event()

    def say(self, line: str) -> None:
        self.lines.append(line)
        self._news.set()

    async def until(self, words: str) -> None:
        async with asyncio.timeout(20):
            while not any(words in line for line in self.lines):
                self._news.clear()
                await self._news.wait()


MakePart = Callable[..., Part]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def make_part(tmp_path: Path, told: Told) -> MakePart:
    """A part that runs some lines of Python."""

    def make(program: str, **options: Any) -> Part:
        return Part(
            name="the part",
            command=[sys.executable, "-uc", program],
            environment=os.environ,
            log=tmp_path / "part.log",
            say=told.say,
            announce=told.groups.append,
            **options,
        )

    return make


SLEEP = "import time; print('ready'); time.sleep(60)"


async def test_a_part_is_started_when_it_says_so_and_ends_when_told(make_part: MakePart, told: Told) -> None:
    """Its process group is announced for as long as it lives."""
    part = make_part(SLEEP)
    await part.start()
    await part.stop()

    started, ended = told.groups
    assert (started[0], ended[0], started[1:]) == ("+", "-", ended[1:])
    assert not psutil.pid_exists(int(started[1:]))


async def test_a_part_with_a_health_check_is_started_when_that_answers(make_part: MakePart) -> None:
    """A listening port is not enough: the first answers here are errors."""
    port = ports.find()
    program = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        print("asked", Handler.asked)
        self.send_response(200 if Handler.asked > 2 else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
    part = make_part(program, health_url=f"http://127.0.0.1:{port}/")
    await part.start()
    await part.stop()

    assert "asked 3" in part.log.read_text()


async def test_a_part_that_stops_while_starting_is_named_with_its_last_words(make_part: MakePart) -> None:
    """The reason is on the screen, not in a file that one has to find first."""
    part = make_part("import sys; print('Cannot open the database'); sys.exit(3)")

    with pytest.raises(PartFailed, match=r"(?s)The part stopped with status 3 .*Cannot open the database"):
        await part.start()
    await part.stop()


async def test_a_part_that_never_gets_ready_is_given_up(make_part: MakePart, told: Told) -> None:
    """The wait has an end, and nothing is left of the part."""
    part = make_part("import time; print('still loading'); time.sleep(60)", start_timeout=0.5)

    with pytest.raises(PartFailed, match=r"(?s)The part was not ready after .*still loading"):
        await part.start()
    await part.stop()

    assert not psutil.pid_exists(int(told.groups[0][1:]))


async def test_a_part_that_does_not_listen_is_killed_with_its_children(make_part: MakePart) -> None:
    """SIGTERM is ignored by both here; neither is there afterwards."""
    program = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid)
print("ready")
time.sleep(60)
"""
    part = make_part(program, stop_timeout=0.3)
    await part.start()
    child = psutil.Process(int(part.log.read_text().split()[0]))
    await part.stop()

    gone, _ = psutil.wait_procs([child], timeout=5)
    assert gone


async def test_a_parts_words_are_shown_once_it_runs_and_kept_while_it_starts(
    make_part: MakePart, told: Told
) -> None:
    """A start that succeeds is silent; later an error is on the screen as it happens."""
    program = """
import signal, time
signal.signal(signal.SIGUSR1, lambda *_: print("Something broke"))
print("Loading")
print("ready")
while True: time.sleep(1)
"""
    part = make_part(program)
    await part.start()
    os.kill(int(told.groups[0][1:]), signal.SIGUSR1)
    await told.until("Something broke")
    await part.stop()

    assert told.lines == ["part: Something broke"]


# The parts together


async def test_a_part_that_crashes_is_started_again(
    make_part: MakePart, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said how it went and that it is back, and the new one ends with the stack."""
    part = make_part(SLEEP)
    monkeypatch.setattr(stack, "make_parts", lambda *_: [part])
    running = asyncio.create_task(stack.run(stack.plan(), told.say))
    await told.until("Open http://localhost:")
    os.kill(int(told.groups[0][1:]), signal.SIGKILL)
    await told.until("The part is back.")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert "The part was killed by SIGKILL. Starting it again…" in told.lines
    assert [group[0] for group in told.groups] == ["+", "-", "+", "-"]


async def test_a_part_that_crashes_again_and_again_ends_the_stack_with_a_sentence(
    make_part: MakePart, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other parts with it: half a stack is worse than none."""
    crashing = make_part("import time; print('ready'); time.sleep(0.3); raise SystemExit('Out of memory')")
    other = make_part(SLEEP)
    monkeypatch.setattr(stack, "make_parts", lambda *_: [other, crashing])

    with pytest.raises(PartFailed, match=r"(?s)The part stopped with status 1, 4 times .*Out of memory"):
        await asyncio.wait_for(stack.run(stack.plan(), told.say), 30)

    groups = [int(group) for group in told.groups]
    assert {group for group in groups if group > 0} == {-group for group in groups if group < 0}


def test_the_guard_ends_what_it_was_told_of_and_nothing_else() -> None:
    """Of three groups one has ended in between; of the others, one ignores the first signal."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1); time.sleep(60)"
    programs = [SLEEP, SLEEP, stubborn]
    children = [
        subprocess.Popen(
            [sys.executable, "-uc", program], stdout=subprocess.PIPE, start_new_session=True, text=True
        )
        for program in programs
    ]
    for child in children:
        assert child.stdout
        child.stdout.readline()
    spared, *doomed = children
    told = "".join(f"+{child.pid}\n" for child in children) + f"-{spared.pid}\n"
    subprocess.run([sys.executable, guard.__file__, "0.5"], input=told, text=True, timeout=20, check=True)

    assert [child.wait(5) for child in doomed] == [-signal.SIGTERM, -signal.SIGKILL]
    assert spared.poll() is None
    spared.kill()
    for child in children:
        child.wait()
        assert child.stdout
        child.stdout.close()
