"""The whole stack on one machine: what it consists of, how it starts, is watched over, and ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import settings
from settings import SettingsError

from . import livekit_server, ports
from .livekit_server import LiveKitServer
from .part import Part, PartFailed

PAGE_PORT = 3000
RESTARTS = 3
RESTART_WINDOW = 60.0
"""Seconds. A part that stops more than `RESTARTS` times within them is given up, and the stack with it."""
QUIET_STOP = 3.0
"""Seconds for a part to end before the person is told what is waited for."""
GUARD_PATIENCE = 5.0
"""Seconds for the parts to end, and to store the calls in progress, when the stack itself has been killed."""
LIVEKIT_VARIABLES = ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run, decided before anything is."""

    port: int
    """Of the page."""
    server: LiveKitServer | None
    """The LiveKit server to start, or None when `LIVEKIT_URL` names another."""
    livekit_url: str
    memory_dir: Path

    @property
    def livekit_here(self) -> bool:
        return urlsplit(self.livekit_url).hostname in (ports.HOST, "localhost")

    @property
    def page_url(self) -> str:
        # Browsers give the microphone to `localhost` without https, and cookies stay with one name.
        return f"http://localhost:{self.port}"


def plan(*, port: int | None = None, livekit_port: int | None = None, own_server: bool = False) -> Plan:
    """Reads the settings and finds the ports; raises `SettingsError` with the sentence to show.

    The LiveKit server is the one that `LIVEKIT_URL` names, LiveKit Cloud for instance, unless `own_server`
    asks for one of this run's own or the variable is not set.
    """
    url = None if own_server else settings.get("LIVEKIT_URL")
    if url is not None:
        missing = [name for name in LIVEKIT_VARIABLES if settings.get(name) is None]
        if missing:
            raise SettingsError(
                f"LIVEKIT_URL={url!r} is set, but not {' and '.join(missing)}. `lk app env -w -d .env.local` "
                "writes all three; without LIVEKIT_URL, or with --local, a LiveKit server is started here."
            )
        if livekit_port is not None:
            raise SettingsError(f"--livekit-port is for a server started here; LIVEKIT_URL={url!r} is set.")
        server = None
    else:
        server = LiveKitServer.on_free_ports(livekit_port)
        url = server.url
    named = settings.get("TOKEN_SERVER_PORT")
    if port is not None:
        port = ports.ask(port, "--port")
    elif named is not None:
        port = ports.ask(named, "TOKEN_SERVER_PORT")
    else:
        port = ports.find(PAGE_PORT)
    return Plan(port=port, server=server, livekit_url=url, memory_dir=settings.memory_dir())


async def run(plan: Plan, say: Say) -> NoReturn:
    """Runs until it is cancelled; raises `PartFailed` when a part cannot be kept running.

    When this ends, all its processes have. They end too when this process is killed: see `guard`.
    """
    with _guard() as announce:
        parts = make_parts(plan, say, announce)
        try:
            await _start(parts, say)
            say(_welcome(plan))
            async with asyncio.TaskGroup() as keepers:
                for part in parts:
                    keepers.create_task(_keep(part, say), name=f"keep {part.name}")
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            say("Stopping…")
            # Nobody new comes in while the calls in progress are ended and stored.
            for part in reversed(parts):
                await _stop(part, say)
    raise AssertionError("the parts were kept running, and yet all ended")


def make_parts(plan: Plan, say: Say, announce: Say) -> list[Part]:
    """They start together, and end one by one from the last to the first."""
    logs = plan.memory_dir / "logs"
    try:
        plan.memory_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"The folder for the memory cannot be used: {error.strerror}: {error.filename}. "
            "Set MEMORY_DIR to one of your own."
        ) from None
    environment = os.environ | {
        "MEMORY_DIR": str(plan.memory_dir),
        "SESSION_SECRET": settings.get("SESSION_SECRET") or session_secret(plan.memory_dir),
        "TOKEN_SERVER_HOST": ports.HOST,
        "TOKEN_SERVER_PORT": str(plan.port),
        "PYTHONUNBUFFERED": "1",
        # Microsoft is told of each model that is run otherwise, by onnxruntime from 1.29 on.
        "ORT_DISABLE_TELEMETRY": "1",
    }
    if plan.livekit_here:
        # LiveKit's client asks this proxy even for a server on this machine, and heeds no NO_PROXY.
        for name in ("HTTP_PROXY", "http_proxy"):
            environment.pop(name, None)
    if plan.server is not None:
        values = (plan.server.url, livekit_server.API_KEY, plan.server.api_secret)
        environment |= dict(zip(LIVEKIT_VARIABLES, values, strict=True))

    def part(
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] = environment,
        *,
        health_url: str | None = None,
        start_timeout: float = 60.0,
        stop_timeout: float = 10.0,
        urge: bool = False,
    ) -> Part:
        log = logs / f"{name.removeprefix('the ').replace(' ', '-').lower()}.log"
        log.touch(mode=0o600)
        os.truncate(log, 0)
        return Part(
            name=name,
            command=command,
            environment=environment,
            log=log,
            say=say,
            announce=announce,
            health_url=health_url,
            start_timeout=start_timeout,
            stop_timeout=stop_timeout,
            urge=urge,
        )

    parts = []
    if plan.server is not None:
        parts.append(
            part(
                "the LiveKit server",
                [plan.server.binary],
                plan.server.environment,
                health_url=plan.server.health_url,
                stop_timeout=5.0,
                # Asked once it waits for the browsers to leave.
                urge=True,
            )
        )
    parts.append(
        part(
            "the agent",
            [sys.executable, "-m", "local.worker"],
            # It loads the speech models and runs them once before it says that it is ready.
            start_timeout=120.0,
            # Storing the calls in progress may take a minute where the memory is a slow one.
            stop_timeout=75.0,
        )
    )
    parts.append(
        part(
            "the token server",
            [sys.executable, str(settings.ROOT / "token_server.py")],
            health_url=f"http://{ports.HOST}:{plan.port}/healthz",
        )
    )
    return parts


def session_secret(memory_dir: Path) -> str:
    """What signs the page's cookies, made once and kept beside the memory.

    The token server would derive it from LiveKit's secret, which is new in each run: every start would turn
    the same browser into a stranger.
    """
    path = memory_dir / "session-secret"
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
    kept = path.read_text().strip()
    if len(kept) < 32:
        raise SettingsError(f"{path} is damaged. Delete it; browsers will then start as new visitors.")
    return kept


async def _start(parts: Sequence[Part], say: Say) -> None:
    say(f"Starting {', '.join(part.name for part in parts)}…")
    began = time.monotonic()
    # At once: the LiveKit server is there long before the worker has loaded what it needs.
    async with asyncio.TaskGroup() as starting:
        for part in parts:
            starting.create_task(part.start(), name=f"start {part.name}")
    say(f"Ready after {time.monotonic() - began:.0f} s.")


async def _keep(part: Part, say: Say) -> NoReturn:
    """Starts the part again whenever it stops, until it does so too often."""
    stops: list[float] = []
    while True:
        how = await part.wait()
        now = time.monotonic()
        stops = [at for at in stops if at > now - RESTART_WINDOW] + [now]
        if len(stops) > RESTARTS:
            raise PartFailed(
                f"{part.capitalized} {how}, {len(stops)} times within a minute.{part.last_words}"
            )
        say(f"{part.capitalized} {how}. Starting it again…")
        await part.stop()
        await part.start()
        say(f"{part.capitalized} is back.")


async def _stop(part: Part, say: Say) -> None:
    stopping = asyncio.create_task(part.stop(), name=f"stop {part.name}")
    await asyncio.wait({stopping}, timeout=QUIET_STOP)
    if not stopping.done():
        say(f"Waiting for {part.name} to finish. Ctrl-C again ends it at once.")
    await stopping


def _welcome(plan: Plan) -> str:
    if settings.get("SUPERMEMORY_API_KEY"):
        memory = f"Memory: Supermemory ({settings.get('SUPERMEMORY_BASE_URL') or 'api.supermemory.ai'})."
    else:
        memory = f"Memory: the embedded one, in {plan.memory_dir}, for this machine only."
    lines = [f"LiveKit: {plan.livekit_url}{' (started here)' if plan.server else ''}. {memory}"]
    if not (settings.ROOT / "frontend/node_modules/livekit-client").exists():
        lines.append(
            "The page fetches livekit-client from a CDN. `npm ci --prefix frontend` puts it on this machine."
        )
    return "\n".join([*lines, "", f"  Open {plan.page_url} and talk. Ctrl-C stops everything.", ""])


@contextmanager
def _guard() -> Iterator[Say]:
    """A process that outlives this one by as long as it takes to end what was announced to it."""
    guard = subprocess.Popen(
        [sys.executable, "-I", str(Path(__file__).with_name("guard.py")), str(GUARD_PATIENCE)],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert guard.stdin is not None

    def announce(line: str) -> None:
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.write(line + "\n")
            guard.stdin.flush()

    try:
        yield announce
    finally:
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.close()
        guard.wait()
