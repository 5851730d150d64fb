"""Jobs without a LiveKit server: a context to start sessions in, and a whole worker."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, cast
from unittest import mock

from livekit import rtc
from livekit.agents import AgentServer, AgentSession, JobContext
from livekit.agents.testing import fake_job_context

from .call import Call
from .room import FakeRoom

_DECIDED = {"llm", "stt", "tts", "vad", "turn_handling"}

WORKER_DEADLINE = 30.0
"""Seconds a worker may take to start or stop: its jobs run in processes or threads of their own."""


@contextlib.contextmanager
def fake_job(metadata: Mapping[str, Any] | str = "", *, room: FakeRoom | None = None) -> Iterator[JobContext]:
    """The current job of everything inside, with that dispatch metadata (a mapping becomes JSON).

    As in a real job the room has no name until the code under test connects, and as in a real fake
    job `is_fake_job()` is true.
    """
    text = metadata if isinstance(metadata, str) else json.dumps(dict(metadata))
    with fake_job_context(job_metadata=text, room=cast(rtc.Room, room or FakeRoom())) as context:
        # It is set so that connecting does nothing; our room can be connected.
        context._connected = False
        try:
            yield context
        finally:
            # A worker does this when the job is over; left to the garbage collector it is a warning.
            context._tempdir.cleanup()


async def end_job(
    context: JobContext,
    on_session_end: Callable[[JobContext], Awaitable[None]] | None = None,
    reason: str = "",
) -> None:
    """End a fake job in the worker's order: the session closes, then `on_session_end`, then the
    shutdown callbacks all together. What a callback raises is raised here, after all have ended."""
    if context._primary_agent_session is not None:
        await context.primary_session.aclose()
    if on_session_end is not None:
        await on_session_end(context)
    # There is no public way to run them; the worker reads the same list.
    callbacks = [callback(reason) for callback in context._shutdown_callbacks]
    for result in await asyncio.gather(*callbacks, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


@contextlib.contextmanager
def answering(**how: Any) -> Iterator[list[Call]]:
    """Every `AgentSession` made inside becomes a call with scripted models, in the list it yields.

    For code that makes and starts its own session, whatever models it asks for. `how` are the options
    of `Call`. Models and turn handling are the call's; what else the code asked for stays, unless it
    is in `how`.
    """
    original = AgentSession.__init__
    calls: list[Call] = []

    def scripted(session: AgentSession[Any], **asked: Any) -> None:
        def make_session(**ours: Any) -> AgentSession[Any]:
            decided = {name: ours[name] for name in ours if name in _DECIDED or name in how}
            original(session, **{**ours, **asked, **decided})
            return session

        calls.append(Call(None, make_session=make_session, **how))

    with mock.patch.object(AgentSession, "__init__", scripted):
        yield calls


@contextlib.asynccontextmanager
async def fake_worker(server: AgentServer) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Run `server` without registering it anywhere; yields a function that launches one job in it.

    The job is whole, from the entrypoint to `on_session_end` and the shutdown callbacks, but its room
    is livekit's stand-in, always called `console`, whose caller is `mock_user`; its metadata is empty.
    Leaving the block asks the jobs to end, and waits for them.
    """
    started = asyncio.Event()
    server.once("worker_started", started.set)
    running = asyncio.create_task(server.run(devmode=True, unregistered=True), name="fake worker")

    async def launch() -> None:
        async with asyncio.timeout(WORKER_DEADLINE):
            await server.simulate_job("room", fake_job=True)

    try:
        async with asyncio.timeout(WORKER_DEADLINE):
            await asyncio.wait(
                {running, asyncio.ensure_future(started.wait())}, return_when=asyncio.FIRST_COMPLETED
            )
        if running.done():
            running.result()
        yield launch
    finally:
        async with asyncio.timeout(WORKER_DEADLINE):
            await server.aclose()
            await running
