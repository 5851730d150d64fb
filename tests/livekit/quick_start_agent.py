"""The quick start that the module is known by, as a worker: run as a process of its own.

Its own lines, but for what the three model strings name: the speech and the demo model of this machine.
"""

from __future__ import annotations

import json
import os
import sys

from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext, JobProcess, cli

from local import hibari_tts, whisper_stt
from local.demo_llm import DemoLLM
from memory import SupermemoryAgent, SupermemoryLiveKit
from tests.support.agent_start import START_TIMEOUT, no_load


def prewarm(_: JobProcess) -> None:
    # Once per process, so that no call waits for a model to load.
    whisper_stt.load()
    hibari_tts.load()


server = AgentServer(
    setup_fnc=prewarm,
    load_fnc=no_load,
    num_idle_processes=1,
    initialize_process_timeout=START_TIMEOUT,
    host="127.0.0.1",
    port=0,
)


@server.rtc_session(agent_name="quick-start")
async def quick_start(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit(api_key=os.getenv("SUPERMEMORY_API_KEY"))
    metadata = json.loads(ctx.job.metadata or "{}")
    container_tag = metadata.get("container_tag")
    if container_tag:
        memory.bind(container_tag=container_tag, session_id=ctx.room.name)
    chat_ctx = ChatContext()
    if container_tag:
        await memory.preload(chat_ctx)
    await ctx.connect()
    if not container_tag:
        participant = await ctx.wait_for_participant()
        memory.bind(participant=participant, session_id=ctx.room.name)
    session = AgentSession(  # type: ignore[var-annotated]  # as the quick start writes it
        stt=whisper_stt.load(), llm=DemoLLM(), tts=hibari_tts.load()
    )
    memory.attach(session)
    await session.start(room=ctx.room, agent=SupermemoryAgent(memory, chat_ctx=chat_ctx, instructions="..."))


if __name__ == "__main__":
    sys.argv = ["quick_start_agent.py", "start"]
    cli.run_app(server)
