"""Starting and stopping the token server as a process, and the settings that it refuses."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import settings
from server.config import load_config
from settings import ROOT, SettingsError
from tests.token_server.service import CONFIG, Browser
from token_server import check_exposure, resolve_subject

WORKING = {
    "LIVEKIT_URL": "ws://127.0.0.1:7880",
    "LIVEKIT_API_KEY": "devkey",
    "LIVEKIT_API_SECRET": "a-secret-of-the-tests-at-least-32-characters-long",
    "TOKEN_SERVER_PORT": "0",
}
# Set but blank: that is unset, and keeps a developer's own .env.local out.
OTHERS = dict.fromkeys(
    (
        "LIVEKIT_AGENT_NAME",
        "SESSION_SECRET",
        "SUPERMEMORY_API_KEY",
        "SUPERMEMORY_BASE_URL",
        "TOKEN_SERVER_HOST",
        "TOKEN_SERVER_HOSTS",
        "TOKEN_SERVER_PUBLIC",
        "TRUSTED_PROXY",
    ),
    "",
)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Settings with which the server starts."""
    for name, value in {**OTHERS, **WORKING}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@asynccontextmanager
async def running(folder: Path, **changes: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The server as a process, and the address that it printed."""
    env = {**os.environ, **OTHERS, **WORKING, "MEMORY_DIR": str(folder), **changes}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "token_server.py",
        cwd=ROOT,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            assert process.stdout is not None
            address = None
            while address is None:
                line = (await process.stdout.readline()).decode()
                assert line, (await process.stderr.read()).decode() if process.stderr else ""
                address = re.search(r"http://\S+", line)
        yield process, address[0]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def run(folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **OTHERS, **WORKING, "MEMORY_DIR": str(folder), **changes}
    return subprocess.run(
        [sys.executable, "token_server.py"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("LIVEKIT_URL", "", "LIVEKIT_URL"),
        ("LIVEKIT_API_KEY", "  ", "LIVEKIT_API_KEY"),
        ("LIVEKIT_API_SECRET", "", "LIVEKIT_API_SECRET"),
        ("LIVEKIT_API_SECRET", '"secret"', "quote"),
        ("LIVEKIT_API_KEY", "a b", "LIVEKIT_API_KEY"),
        ("LIVEKIT_API_KEY", "schlüssel", "LIVEKIT_API_KEY"),
        ("LIVEKIT_URL", "project.livekit.cloud", "wss://"),
        ("LIVEKIT_URL", "ftp://host", "wss://"),
        ("LIVEKIT_URL", "wss://", "wss://"),
        ("LIVEKIT_URL", "wss://host:port", "wss://"),
        ("LIVEKIT_URL", "wss://user:pass@host", "wss://"),
        ("LIVEKIT_URL", "wss://host;script-src", "wss://"),
        ("LIVEKIT_URL", "wss://*", "wss://"),
        ("LIVEKIT_URL", "wss://[broken", "wss://"),
        ("TOKEN_SERVER_PORT", "http", "TOKEN_SERVER_PORT='http'"),
        ("TOKEN_SERVER_PORT", "65536", "TOKEN_SERVER_PORT='65536'"),
        ("TOKEN_SERVER_PORT", "-1", "TOKEN_SERVER_PORT='-1'"),
        ("TOKEN_SERVER_PUBLIC", "maybe", "TOKEN_SERVER_PUBLIC='maybe'"),
        ("SESSION_SECRET", "short", "SESSION_SECRET"),
        ("TOKEN_SERVER_HOSTS", "https://voice.example.com", "'https://voice.example.com'"),
        ("TOKEN_SERVER_HOSTS", "a.example.com,b.example.com:443", "'b.example.com:443'"),
        ("TRUSTED_PROXY", "proxy.example.com", "'proxy.example.com'"),
        ("TRUSTED_PROXY", "10.0.0.1/8", "'10.0.0.1/8'"),
    ],
)
def test_a_setting_that_cannot_work_is_named(
    environment: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    """One sentence with the variable and the way out, before anything listens."""
    environment.setenv(name, value)
    with pytest.raises(SettingsError, match=re.escape(expected)) as error:
        load_config()
    assert name in str(error.value)


def test_all_that_is_missing_is_said_at_once(environment: pytest.MonkeyPatch) -> None:
    """Nobody starts four times to learn of three settings."""
    for name in ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"):
        environment.setenv(name, "")
    with pytest.raises(SettingsError, match="LIVEKIT_URL.*LIVEKIT_API_KEY.*LIVEKIT_API_SECRET"):
        load_config()


def test_white_space_round_a_setting_is_no_part_of_it(environment: pytest.MonkeyPatch) -> None:
    """A trailing newline from a copied secret is the usual one."""
    for name, value in WORKING.items():
        environment.setenv(name, f" {value}\n")
    config = load_config()
    assert (config.api_key, config.livekit_url) == ("devkey", "ws://127.0.0.1:7880")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("https://project.livekit.cloud/", "wss://project.livekit.cloud"),
        ("http://127.0.0.1:7880", "ws://127.0.0.1:7880"),
        ("WSS://Project.LiveKit.Cloud", "wss://project.livekit.cloud"),
        ("ws://[::1]:7880", "ws://[::1]:7880"),
    ],
)
def test_every_spelling_of_an_address_works(environment: pytest.MonkeyPatch, given: str, used: str) -> None:
    """The page gets a websocket address."""
    environment.setenv("LIVEKIT_URL", given)
    assert load_config().livekit_url == used


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://localhost:3000"),
        ("::1", "http://localhost:3000"),
        ("0.0.0.0", "http://localhost:3000"),
        ("192.0.2.7", "http://192.0.2.7:3000"),
        ("2001:db8::7", "http://[2001:db8::7]:3000"),
    ],
)
def test_the_printed_address_can_be_opened(host: str, address: str) -> None:
    """On localhost a browser lends the microphone without https."""
    assert dataclasses.replace(CONFIG, host=host).address(3000) == address


@pytest.mark.parametrize("name", ["", "  ", " front-desk ", "front-desk"])
def test_agent_and_token_server_agree_about_the_agents_name(
    environment: pytest.MonkeyPatch, name: str
) -> None:
    """Blank and padded names too: both read it in one place."""
    environment.setenv("LIVEKIT_AGENT_NAME", name)
    assert load_config().agent_name == settings.agent_name() == (name.strip() or "memory-agent")


def test_the_secret_is_derived_from_livekits_when_none_is_given(environment: pytest.MonkeyPatch) -> None:
    """Visitors survive a restart without another setting; the API secret itself signs no cookie."""
    derived = load_config().secret
    assert derived == load_config().secret
    assert derived != WORKING["LIVEKIT_API_SECRET"]
    environment.setenv("SESSION_SECRET", "x" * 32)
    assert load_config().secret == "x" * 32


def test_secrets_do_not_show_in_a_printed_configuration(environment: pytest.MonkeyPatch) -> None:
    """It may end up in a traceback or a log."""
    config = load_config()
    assert config.api_secret not in repr(config)
    assert config.secret not in repr(config)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.com", ""])
def test_strangers_are_let_in_only_when_asked_for(host: str) -> None:
    """A public address and a `resolve_subject` that knows nobody: anyone could start paid calls."""
    config = dataclasses.replace(CONFIG, host=host)
    with pytest.raises(SettingsError, match="TOKEN_SERVER_PUBLIC=1"):
        check_exposure(config)
    check_exposure(dataclasses.replace(config, public=True))

    async def signed_in(request: object) -> str | None:
        return None

    check_exposure(config, signed_in)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_on_loopback_anyone_on_the_machine_may_come(host: str) -> None:
    """The default, for trying it out."""
    check_exposure(dataclasses.replace(CONFIG, host=host), resolve_subject)


def test_nothing_of_livekit_agents_is_loaded() -> None:
    """It takes four seconds and a hundred megabytes, for nothing that is used here."""
    code = (
        "import sys, token_server; unwanted = ('livekit.agents', 'livekit.rtc', 'livekit.plugins'); "
        "print([name for name in sys.modules if name.startswith(unwanted)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"LIVEKIT_API_SECRET": ""}, "LIVEKIT_API_SECRET"),
        ({"TOKEN_SERVER_HOST": "0.0.0.0"}, "TOKEN_SERVER_PUBLIC=1"),
        ({"SUPERMEMORY_BASE_URL": "http://127.0.0.1:6767"}, "SUPERMEMORY_API_KEY"),
        ({"TOKEN_SERVER_HOST": "192.0.2.7", "TOKEN_SERVER_PUBLIC": "1"}, "TOKEN_SERVER_HOST"),
        ({"MEMORY_DIR": f"{__file__}/memory"}, "MEMORY_DIR"),
    ],
)
def test_it_ends_with_one_sentence_where_nothing_can_work(
    tmp_path: Path, changes: dict[str, str], expected: str
) -> None:
    """Status 1, on standard error, without a traceback."""
    done = run(tmp_path, **changes)
    assert done.returncode == 1
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """Something else listens there: the sentence says which setting moves us."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        done = run(tmp_path, TOKEN_SERVER_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "TOKEN_SERVER_PORT" in done.stderr
    assert "Traceback" not in done.stderr


async def test_it_prints_its_address_and_logs_json(tmp_path: Path) -> None:
    """One line for the person; the rest is one JSON object a line, without personal data."""
    async with running(tmp_path) as (process, address):
        browser = Browser(address)
        claims = await browser.token()
        status, answer = await browser.ask("GET", "/api/memories")
        assert (status, answer["store"]) == (200, "embedded")
        await browser.session.close()
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0
    lines = [json.loads(line) for line in errors.decode().splitlines()]
    assert [line["route"] for line in lines if line["event"] == "request"] == ["/api/token", "/api/memories"]
    assert all({"time", "level", "logger", "event"} <= set(line) for line in lines)
    assert claims.identity not in errors.decode()
    assert browser.cookie not in errors.decode()
    assert "127.0.0.1" not in errors.decode()


async def test_a_running_request_finishes_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    """SIGTERM closes the door; who is inside is served, and the process ends by itself."""
    asked, answer_now = asyncio.Event(), asyncio.Event()

    async def slow_memory(request: web.Request) -> web.Response:
        asked.set()
        await answer_now.wait()
        return web.json_response({"error": "nobody here"}, status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", slow_memory)
    async with TestServer(app) as memory:
        key = {"SUPERMEMORY_API_KEY": "key", "SUPERMEMORY_BASE_URL": str(memory.make_url("/"))}
        async with running(tmp_path, **key) as (process, address):
            browser = Browser(address)
            asking = asyncio.create_task(browser.ask("GET", "/api/memories"))
            async with asyncio.timeout(20):
                await asked.wait()
                process.send_signal(signal.SIGTERM)
                await _refused(address)
                assert process.returncode is None
                answer_now.set()
                assert await asking == (200, {"facts": [], "store": "supermemory"})
                assert await process.wait() == 0
            await browser.session.close()


async def _refused(address: str) -> None:
    """Returns when the server no longer listens."""
    while True:
        try:
            _, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
        except OSError:
            return
        writer.close()
        await writer.wait_closed()
