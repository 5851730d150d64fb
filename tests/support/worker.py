"""A worker as a process of its own: started, told to stop, killed, and its log read as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from settings import ROOT
from tests.harness import Board

START_TIMEOUT = 90.0
"""Seconds until a worker is registered: it loads its models first."""

Record = dict[str, Any]


class Worker:
    """A registered worker; made by `running`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.records: list[Record] = []
        """Its log, a record a line; what is no JSON comes as the message of one."""
        self._board = Board()
        self._reading = asyncio.create_task(self._read(), name="worker log")

    async def logs(self, message: str, within: float = START_TIMEOUT, **fields: object) -> Record:
        """The first record with that message and those fields, waited for."""

        def found() -> Record | None:
            for record in self.records:
                if record.get("message") == message and fields.items() <= record.items():
                    return record
            assert not self._reading.done(), "the worker has ended:\n" + self.log
            return None

        return await self._board.until(found, f"{message!r} in the worker's log", deadline=within)

    @property
    def log(self) -> str:
        """The log in short, for a failing test."""
        return "\n".join(
            f"{record.get('level', '')} {record.get('message')} {record.get('exc_info', '')}"
            for record in self.records[-60:]
        )

    def stop(self) -> None:
        """SIGTERM: the worker takes no new call, and ends when those it has are over."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL for it and the processes of its calls, as when a machine goes away."""
        # Also after its end: a worker leaves processes behind that had not yet noticed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def ended(self, within: float = 60.0) -> int:
        """The exit status, waited for."""
        async with asyncio.timeout(within):
            status = await self.process.wait()
            await self._reading
        return status

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            try:
                record = json.loads(line)
            except ValueError:
                record = {"message": line.decode(errors="replace").rstrip()}
            self.records.append(record if isinstance(record, dict) else {"message": record})
            self._board.changed()
        self._board.changed()


@asynccontextmanager
async def running(module: str, environment: Mapping[str, str]) -> AsyncIterator[Worker]:
    """Runs `python -m module` in this repository until the block is left; yields it once LiveKit knows it."""
    worker = await start(module, environment)
    try:
        yield worker
    finally:
        worker.kill()
        await worker.ended()


async def start(module: str, environment: Mapping[str, str]) -> Worker:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**20,
        start_new_session=True,
    )
    worker = Worker(process)
    try:
        await worker.logs("registered worker")
    except BaseException:
        worker.kill()
        await worker.ended()
        raise
    return worker
