"""A worker that takes one call at a time, and whose agent only joins and listens: a process of its own.

The settings of a LiveKit server and LIVEKIT_AGENT_NAME are in the environment. Prints a line when LiveKit
knows the worker.
"""

from __future__ import annotations

import asyncio
import os

from livekit.agents import AgentServer, JobContext, JobExecutorType, JobRequest


def no_load() -> float:
    """A busy machine must not make LiveKit keep the call back."""
    return 0.0


server = AgentServer(
    job_executor_type=JobExecutorType.THREAD, num_idle_processes=1, load_fnc=no_load, host="127.0.0.1", port=0
)


async def if_free(request: JobRequest) -> None:
    await (request.reject() if server.active_jobs else request.accept())


@server.rtc_session(agent_name=os.environ["LIVEKIT_AGENT_NAME"], on_request=if_free)
async def entrypoint(ctx: JobContext) -> None:
    await ctx.connect()
    await ctx.room.local_participant.set_attributes({"lk.agent.state": "listening", "memory.state": "off"})

    def leave(*_: object) -> None:
        ctx.shutdown("the caller has left")

    ctx.room.on("participant_disconnected", leave)


if __name__ == "__main__":
    server.on("worker_registered", lambda *_: os.write(1, b"registered\n"))
    asyncio.run(server.run(devmode=True))
