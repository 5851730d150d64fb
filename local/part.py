"""One process of the stack: started, seen to be ready, listened to, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import settings

from . import logs

READY = "ready"
"""The line by which a part without a health check says that it is."""
POLL = 0.1
LAST_WORDS = 12
KILL_TIMEOUT = 5.0
LONGEST_LINE = 2**20


class PartFailed(Exception):
    """A part did not start, or stops again and again; the message names it and ends with its last words."""


@dataclass(kw_only=True)
class Part:
    name: str
    """In a sentence: "the agent"."""
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    """Everything it writes goes here; begun anew by each run of the stack."""
    say: Callable[[str], None]
    """Shows a line to the person at the terminal."""
    announce: Callable[[str], None]
    """Told of process groups as they come (`+123`) and go (`-123`), for the guard."""
    health_url: str | None = None
    """Answers 200 when the part is ready; without one, the part writes `ready` on a line of its own."""
    start_timeout: float = 60.0
    stop_timeout: float = 10.0
    urge: bool = False
    """Whether it takes a second SIGTERM to end what is in progress."""

    is_ready: bool = field(default=False, init=False)
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)
    _said_ready: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_WORDS), init=False)

    async def start(self) -> None:
        """Returns when the part is ready; raises `PartFailed` when it stops or takes longer than it may."""
        self._said_ready.clear()
        self._words.clear()
        await self._spawn()
        exited = asyncio.create_task(self.wait(), name=f"{self.name} exits")
        ready = asyncio.create_task(self._becomes_ready(), name=f"{self.name} gets ready")
        try:
            await asyncio.wait(
                {exited, ready}, timeout=self.start_timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if exited.done():
                await self._hear_out()
                raise PartFailed(f"{self.capitalized} {exited.result()} while starting.{self.last_words}")
            if not ready.done():
                raise PartFailed(
                    f"{self.capitalized} was not ready after {self.start_timeout:.0f} s.{self.last_words}"
                )
            self.is_ready = True
        finally:
            for task in (exited, ready):
                task.cancel()

    async def wait(self) -> str:
        """How it ended, once it has: "stopped with status 1", "was killed by SIGKILL"."""
        assert self._process is not None
        status = await self._process.wait()
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"stopped with status {status}"

    async def stop(self) -> None:
        """Asks it to end, and ends it when `stop_timeout` has passed; nothing it started is left behind."""
        process, self._process = self._process, None
        if process is None:
            return
        # One that never got ready has nothing to finish.
        patience, self.is_ready = (self.stop_timeout if self.is_ready else 1.0), False
        try:
            deadline = time.monotonic() + patience
            while process.returncode is None and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                pause = min(1.0, patience) if self.urge else patience
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), pause)
        finally:
            # Its own children too, whatever became of it; a cancelled stop comes straight here.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), KILL_TIMEOUT)
        await self._hear_out()
        self.announce(f"-{process.pid}")

    @property
    def capitalized(self) -> str:
        return self.name[:1].upper() + self.name[1:]

    @property
    def last_words(self) -> str:
        """For the end of a sentence: what it wrote last, indented, and where the rest is."""
        words = [*self._words] or ["(nothing)"]
        return f" Its last words, from {self.log}:\n" + "\n".join(f"    {line}" for line in words)

    async def _spawn(self) -> None:
        loop = asyncio.get_running_loop()
        outlet, inlet = os.pipe()
        log = self.log.open("ab")
        try:
            # A session of its own: Ctrl-C reaches the stack alone, which then ends the parts in order.
            self._process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=inlet,
                stderr=inlet,
                env=dict(self.environment),
                cwd=settings.ROOT,
                start_new_session=True,
            )
        except OSError as error:
            os.close(outlet)
            log.close()
            raise PartFailed(f"{self.capitalized} could not be started: {error}.") from None
        finally:
            os.close(inlet)
        self.announce(f"+{self._process.pid}")
        lines = asyncio.StreamReader(limit=LONGEST_LINE)
        protocol = asyncio.StreamReaderProtocol(lines)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(outlet, "rb"))
        self._reading = asyncio.create_task(self._read(lines, transport, log), name=f"{self.name} output")

    async def _read(
        self, lines: asyncio.StreamReader, transport: asyncio.BaseTransport, log: IO[bytes]
    ) -> None:
        try:
            while not lines.at_eof():
                try:
                    line = await lines.readline()
                except ValueError:  # longer than any line of a log; it is dropped, the next ones are not
                    continue
                log.write(line)
                log.flush()
                text = line.decode(errors="replace").rstrip()
                if text == READY:
                    self._said_ready.set()
                elif text:
                    read = logs.read(text)
                    self._words.append(read.text)
                    # While it starts its words are kept: they are shown when it fails.
                    if read.shown and self.is_ready:
                        self.say(f"{self.name.removeprefix('the ')}: {read.text}")
        finally:
            transport.close()
            log.close()

    async def _hear_out(self) -> None:
        """What it still had to say: its end is known before its last lines are read."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=1.0)
            self._reading.cancel()

    async def _becomes_ready(self) -> None:
        if self.health_url is None:
            await self._said_ready.wait()
            return
        while True:
            if await asyncio.to_thread(_answers, self.health_url):
                return
            await asyncio.sleep(POLL)


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    # Not urllib: it would ask a proxy of the environment for a server on this machine.
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=1)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
