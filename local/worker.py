"""The agent's worker with the settings of one machine: what `python -m local` runs beside the page.

It takes calls as `agent.py start` does, and differs in what a machine shared with a browser needs. It writes
`ready` to standard output once LiveKit knows it and a process with warm models waits for the first call.
SIGTERM ends the running calls, stores them, and then the worker.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import sys
from importlib import import_module
from urllib.parse import urlsplit

from livekit.agents import AgentServer

import settings

from . import logs
from .part import READY
from .ports import HOST

MOST_CALLS = 4
REFUSED_AT = 0.7
"""LiveKit offers no call to a worker that reports this load."""
START_TIMEOUT = 60.0
"""Seconds for a process to load its models and run them once; LiveKit's 10 are short on a busy machine."""


def load_by_calls(server: AgentServer) -> float:
    """The share of calls in progress, scaled so that the last one allowed is the one that fills the worker.

    LiveKit's own measure is the CPU, and a browser that starts on the same machine counts as a full worker:
    the call is refused and not offered again.
    """
    return REFUSED_AT * len(server.active_jobs) / MOST_CALLS


def for_one_machine(server: AgentServer) -> None:
    """Changes the agent's server object before it runs; `agent.py` itself stays as it is deployed."""
    server.load_fnc = load_by_calls
    server.update_options(
        # The threshold would also count a call that is just being accepted, at the whole of 0.7: of two
        # callers at a time, one would wait in vain. LiveKit looks at the reported load in any case.
        load_threshold=math.inf,
        # One is enough, and each holds the models in memory.
        num_idle_processes=1,
        initialize_process_timeout=START_TIMEOUT,
    )
    # These three have no option besides the constructor's, which is the deployment's.
    server._host, server._port = HOST, 0
    if urlsplit(settings.get("LIVEKIT_URL") or "").hostname in (HOST, "localhost"):
        # A proxy from the environment would be asked for a server on this machine.
        server._http_proxy = None


async def run(server: AgentServer) -> None:
    """Until SIGTERM or SIGINT, or until LiveKit could not be reached for good, which raises."""
    for_one_machine(server)
    unprepared = Unprepared()
    logging.getLogger("livekit.agents").addFilter(unprepared)

    def ready(*_: object) -> None:
        # From here on a failure is one process of many, and LiveKit makes another.
        logging.getLogger("livekit.agents").removeFilter(unprepared)
        print(READY, flush=True)

    server.on("worker_registered", ready)
    asked_to_stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, asked_to_stop.set)
    running = asyncio.create_task(server.run(), name="worker")
    stopping = asyncio.create_task(asked_to_stop.wait(), name="stop")
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await server.aclose()
    finally:
        stopping.cancel()
    await running


class Unprepared(logging.Filter):
    """Ends the worker when the first process for calls cannot load its models.

    LiveKit logs that, tries again without end, and registers after a minute all the same: callers would be
    met by nobody. It tells of it in no other way than by this line of its log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg == "error initializing process":
            for handler in logging.getLogger().handlers:
                handler.handle(record)
            # Not by an exception: LiveKit's threads would wait for the process that is still trying.
            os._exit(1)
        return True


def main() -> None:
    logs.configure()
    if settings.get("TURN_DETECTION") != "audio" and not settings.livekit_cloud():
        # The weights of a turn detector that will not be asked: a quarter of a gigabyte.
        os.environ.setdefault("LIVEKIT_AGENTS_PRELOAD_LOCAL_INFERENCE", "0")
    try:
        agent, checks = import_module("agent"), import_module("checks")
        checks.check_settings()
        asyncio.run(run(agent.server))
    except settings.SettingsError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
