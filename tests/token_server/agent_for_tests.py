"""A worker whose agent joins, writes down what it was told, and stays: run as a process of its own.

The settings of a LiveKit server, LIVEKIT_AGENT_NAME and AGENT_NOTES, a file, are in the environment. Prints
a line when LiveKit knows the worker.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from livekit.agents import AgentServer, JobContext


def no_load() -> float:
    """A busy machine must not make LiveKit keep the job back."""
    return 0.0


server = AgentServer(num_idle_processes=1, load_fnc=no_load, host="127.0.0.1", port=0)


@server.rtc_session(agent_name=os.environ["LIVEKIT_AGENT_NAME"])
async def entrypoint(ctx: JobContext) -> None:
    await ctx.connect()
    note = {"room": ctx.room.name, "metadata": ctx.job.metadata, "pid": os.getpid()}
    note["identity"] = ctx.room.local_participant.identity
    await asyncio.to_thread(_write, note)


def _write(note: dict[str, object]) -> None:
    with Path(os.environ["AGENT_NOTES"]).open("a") as file:
        file.write(json.dumps(note) + "\n")


if __name__ == "__main__":
    server.on("worker_registered", lambda *_: os.write(1, b"registered\n"))
    asyncio.run(server.run(devmode=True))
