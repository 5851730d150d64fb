"""What the stack decides before it starts anything, what its terminal shows, and its worker's settings."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import settings
from local import livekit_server, logs, ports, stack
from settings import SettingsError

pytestmark = pytest.mark.usefixtures("machine")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_without_a_livekit_server_the_ways_to_get_one_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has no LiveKit server reads how to get it, and that LiveKit Cloud needs none."""
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SettingsError) as said:
        stack.plan()

    for way in ("brew install livekit", "docker", "get.livekit.io", "go install", "LiveKit Cloud"):
        assert way in str(said.value)


def test_the_command_ends_with_that_sentence_and_status_1(machine: Path) -> None:
    """No traceback: the sentence is all that the terminal shows."""
    environment = os.environ | {"PATH": "/nowhere"}
    ended = subprocess.run(
        [sys.executable, "-m", "local"], cwd=settings.ROOT, env=environment, capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("livekit-server is not on PATH.")
    assert "Traceback" not in ended.stderr


def test_a_taken_port_that_was_asked_for_is_named(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that was asked for is never silently another one."""
    with pytest.raises(SettingsError, match=rf"Port {taken} \(--port\) cannot be had"):
        stack.plan(port=taken)
    with pytest.raises(SettingsError, match=rf"Port {taken} \(--livekit-port\) cannot be had"):
        stack.plan(livekit_port=taken)
    monkeypatch.setenv("TOKEN_SERVER_PORT", str(taken))
    with pytest.raises(SettingsError, match=rf"Port {taken} \(TOKEN_SERVER_PORT\) cannot be had"):
        stack.plan()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_what_is_no_port_is_named(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value and the range are part of the sentence."""
    with pytest.raises(SettingsError, match=rf"--port={port} is not a port.*65535"):
        stack.plan(port=port)
    monkeypatch.setenv("TOKEN_SERVER_PORT", f"{port}x")
    with pytest.raises(SettingsError, match=rf"TOKEN_SERVER_PORT={port}x is not a port"):
        stack.plan()


def test_usual_ports_that_are_taken_make_way_for_free_ones(taken: int) -> None:
    """Two stacks, or a stack and somebody's web server, run side by side."""
    found = ports.find(taken)

    assert found != taken
    assert ports.ask(found, "--port") == found


def test_each_run_has_a_livekit_secret_of_its_own_that_no_command_line_shows() -> None:
    """Long enough for LiveKit's tokens, new each time, and handed over in the environment."""
    plans = [stack.plan(), stack.plan()]
    servers = [plan.server for plan in plans if plan.server]

    assert len({server.api_secret for server in servers}) == 2
    assert all(len(server.api_secret) >= 32 for server in servers)
    for part in stack.make_parts(plans[0], print, print):
        assert servers[0].api_secret not in " ".join(part.command)
        assert servers[0].api_secret in json.dumps(dict(part.environment))


def test_the_livekit_server_takes_nothing_from_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would read REDIS_HOST, UDP_PORT and others that were meant for somebody else."""
    monkeypatch.setenv("REDIS_HOST", "redis.example.com")

    server = stack.plan().server

    assert server is not None
    assert set(server.environment) <= {"PATH", "HOME", "LIVEKIT_CONFIG"}


def test_livekit_cloud_runs_agent_and_page_and_no_server_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the three variables of LiveKit Cloud the same command uses it, under the person's own keys."""
    monkeypatch.setenv("PATH", "/nowhere")
    for name, value in zip(stack.LIVEKIT_VARIABLES, ("wss://x.livekit.cloud", "key", "secret"), strict=True):
        monkeypatch.setenv(name, value)

    parts = stack.make_parts(stack.plan(), print, print)

    assert [part.name for part in parts] == ["the agent", "the token server"]
    assert {part.environment["LIVEKIT_URL"] for part in parts} == {"wss://x.livekit.cloud"}
    assert {part.environment["LIVEKIT_API_SECRET"] for part in parts} == {"secret"}


def test_local_starts_a_server_here_although_livekit_cloud_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """--local leaves the variables of the Cloud project unused, keys and all."""
    for name, value in zip(stack.LIVEKIT_VARIABLES, ("wss://x.livekit.cloud", "key", "secret"), strict=True):
        monkeypatch.setenv(name, value)

    plan = stack.plan(own_server=True)

    assert plan.server is not None
    for part in stack.make_parts(plan, print, print)[1:]:
        assert part.environment["LIVEKIT_URL"] == plan.server.url
        assert part.environment["LIVEKIT_API_KEY"] == livekit_server.API_KEY
        assert part.environment["LIVEKIT_API_SECRET"] == plan.server.api_secret


def test_livekit_cloud_is_reached_through_the_proxy_and_our_own_server_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LiveKit's client would ask the proxy for a server on this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.com:3128")
    here = stack.make_parts(stack.plan(), print, print)
    for name, value in zip(stack.LIVEKIT_VARIABLES, ("wss://x.livekit.cloud", "key", "secret"), strict=True):
        monkeypatch.setenv(name, value)
    cloud = stack.make_parts(stack.plan(), print, print)

    assert not any("HTTP_PROXY" in part.environment for part in here)
    assert all("HTTP_PROXY" in part.environment for part in cloud)


def test_a_livekit_address_without_keys_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named, and both ways out."""
    monkeypatch.setenv("LIVEKIT_URL", "wss://x.livekit.cloud")
    monkeypatch.setenv("LIVEKIT_API_KEY", "key")

    with pytest.raises(SettingsError, match=r"but not LIVEKIT_API_SECRET\..*--local"):
        stack.plan()


def test_the_same_browser_is_the_same_visitor_in_the_next_run(machine: Path) -> None:
    """What signs the cookies is kept, for the person alone, although LiveKit's secret changes."""
    first, second = (
        {part.environment["SESSION_SECRET"] for part in stack.make_parts(stack.plan(), print, print)[1:]}
        for _ in range(2)
    )
    kept = machine / "memory" / "session-secret"

    assert first == second == {kept.read_text()}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_a_damaged_session_secret_is_named_with_the_way_out(machine: Path) -> None:
    """An empty file, as a full disk leaves it, would otherwise sign everybody's cookies alike."""
    (machine / "memory").mkdir()
    (machine / "memory" / "session-secret").write_text("")

    with pytest.raises(SettingsError, match=r"session-secret is damaged\. Delete it"):
        stack.make_parts(stack.plan(), print, print)


def test_a_memory_folder_that_cannot_be_used_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be stands for a folder that may not be written."""
    (machine / "file").touch()
    monkeypatch.setenv("MEMORY_DIR", str(machine / "file" / "memory"))

    with pytest.raises(SettingsError, match=r"cannot be used: .*file.*Set MEMORY_DIR"):
        stack.make_parts(stack.plan(), print, print)


# What the terminal shows


@pytest.mark.parametrize(
    ("logger", "level", "shown"),
    [
        ("agent", "info", True),
        ("memory.livekit", "warning", True),
        ("memory.livekit", "debug", False),
        ("livekit.agents", "warning", False),
        ("livekit.agents", "error", True),
        ("livekit", "WARN", False),
        ("token_server", "info", False),
        ("token_server", "warning", True),
        ("server.guard", "error", True),
    ],
)
def test_the_terminal_shows_our_own_words_and_everybodys_errors(logger: str, level: str, shown: bool) -> None:
    """A call that works is a few lines, not a few hundred."""
    line = logs.read(json.dumps({"level": level, "logger": logger, "message": "it happened", "count": 2}))

    assert line == logs.Line(f"{level.upper()} it happened count=2", shown=shown)


def test_what_is_not_a_log_line_is_shown_as_it_is() -> None:
    """A traceback or a sentence on standard error is what a person needs."""
    assert logs.read("Traceback (most recent call last):").shown
    assert logs.read("[1]") == logs.Line("[1]", shown=True)


def test_the_workers_log_holds_no_personal_values() -> None:
    """LiveKit marks them, for whoever writes logs to leave them out."""
    record = logging.makeLogRecord(
        {"msg": "linked to %s", "args": ("a room",), "lk.pii.participant_identity": "emily", "count": 2}
    )

    written = json.loads(logs.JsonFormatter().format(record))

    assert written["message"] == "linked to a room"
    assert written["count"] == 2
    assert "emily" not in json.dumps(written)


# The worker


def test_the_worker_is_full_by_calls_and_not_by_the_cpu() -> None:
    """Below LiveKit's limit as long as one more call is allowed, at it with the last one."""
    from local.worker import MOST_CALLS, REFUSED_AT, load_by_calls

    def load(calls: int) -> float:
        return load_by_calls(SimpleNamespace(active_jobs=[None] * calls))  # type: ignore[arg-type]

    assert load(0) == 0
    assert load(MOST_CALLS - 1) < REFUSED_AT <= load(MOST_CALLS)


def test_the_worker_listens_on_loopback_and_asks_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment is for the world outside; LiveKit Cloud is still reached through it."""
    from livekit.agents import AgentServer

    from local.worker import for_one_machine

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    monkeypatch.setenv("LIVEKIT_URL", "ws://127.0.0.1:7880")
    for_one_machine(here := AgentServer())
    monkeypatch.setenv("LIVEKIT_URL", "wss://x.livekit.cloud")
    for_one_machine(cloud := AgentServer())

    assert (here._host, here._http_proxy) == ("127.0.0.1", None)
    assert (cloud._host, cloud._http_proxy) == ("127.0.0.1", "http://proxy.example.com:3128")
