"""A voice agent that remembers its callers.

Run with: python3 run.py          (a chat in the terminal, nothing to set up)
          python agent.py dev     (a worker for LiveKit, see README.md)
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import settings  # before the plugins: it switches off what onnxruntime reports when it is imported

# isort: split
from livekit import rtc
from livekit.agents import (
    NOT_GIVEN,
    AgentServer,
    AgentSession,
    JobContext,
    JobProcess,
    RunContext,
    UserStateChangedEvent,
    cli,
    function_tool,
    room_io,
)
from livekit.agents.types import ATTRIBUTE_AGENT_NAME
from livekit.plugins import silero
from supermemory import AsyncSupermemory

from checks import check_keys, check_settings
from memory import InputParams, SupermemoryAgent, SupermemoryLiveKit
from page_link import PageLink
from pipeline import pick_models

logger = logging.getLogger("agent")
settings.load()

LONGEST_CALL = 30 * 60.0
"""Seconds; an open room costs money for as long as it is open."""

ARRIVAL = 60.0
"""Seconds that the agent waits for somebody to come into an empty room."""

ABSENCE = 15.0
"""Seconds that it waits for the caller whom the dispatch names: they were there when it was sent."""

LONGEST_SENTENCE = 20.0
"""Seconds that a goodbye may take before the call ends without it."""

PATIENCE = 15.0
"""Seconds that a silent caller has to answer after being asked."""

# How long a spoken reply may wait for a search: Supermemory usually answers within 0.2 to 0.5 s.
PARAMS = InputParams(reply_budget=0.4)

INSTRUCTIONS = """\
You are a friendly assistant on a voice call. What you say is spoken aloud: one to three short sentences, \
plain words, no lists, no markdown, no emoji, numbers the way people say them.
You may know things about the caller from earlier calls. Use them the way a person who remembers would: \
when they help, without announcing it and without reciting them.
When the caller asks you to remember something, use the remember tool, and say that it is saved only after \
the tool says so. When they want something forgotten, use the forget tool and read back what would go first.
When they say that something is not to be remembered, call do_not_remember. When they say that they are \
somebody else than you think, call not_me.
When the caller says goodbye, say goodbye in one sentence and call end_call."""

GREETING = "Greet the caller in one short sentence and ask what you can do for them. {name}"
BY_NAME = "Use their name if you know it."
# A phone can be picked up by anybody: caller ID says which phone it is, not who holds it.
BY_CALLER_ID = "Do not use any name and do not mention anything that you know about them yet."


class Assistant(SupermemoryAgent):
    """The agent's words and tools; swap them for your own."""

    def __init__(self, memory: SupermemoryLiveKit, *, known_by_caller_id: bool = False) -> None:
        super().__init__(memory, instructions=INSTRUCTIONS)
        self._greeting = GREETING.format(name=BY_CALLER_ID if known_by_caller_id else BY_NAME)

    async def on_enter(self) -> None:
        await super().on_enter()
        self.session.generate_reply(instructions=self._greeting)

    @function_tool
    async def do_not_remember(self) -> str:
        """Stop storing this conversation, the caller's current sentence included. Use it when the caller
        says that something is not to be remembered."""
        self.memory.pause()
        return "From here on nothing is stored, until the caller asks to remember again."

    @function_tool
    async def remember_again(self) -> str:
        """Store the conversation again. Use it only when the caller asks for it after do_not_remember."""
        self.memory.resume()
        return "The conversation is stored again from the next sentence on."

    @function_tool
    async def not_me(self) -> str:
        """Let go of the memory of the wrong person. Use it when the caller says that they are not who you
        take them for."""
        self.memory.unbind()
        return "The notes about that person are out of this call, and nothing of it is stored for them."

    @function_tool
    async def end_call(self, context: RunContext[Any]) -> None:
        """Hang up. Use it after you have said goodbye."""
        await context.wait_for_playout()
        hang_up(context.session)


@dataclass
class Call:
    """What lives as long as one call; `session.userdata`."""

    ctx: JobContext
    memory: SupermemoryLiveKit
    client: AsyncSupermemory
    caller: str = ""
    page: PageLink | None = None
    said_goodbye: bool = False
    limit: asyncio.Task[None] | None = None
    patience: asyncio.Task[None] | None = None

    def stop_clocks(self) -> list[asyncio.Task[None]]:
        clocks = [clock for clock in (self.limit, self.patience) if clock is not None]
        for clock in clocks:
            clock.cancel()
        return clocks

    async def aclose(self) -> None:
        await asyncio.gather(*self.stop_clocks(), return_exceptions=True)
        await self.memory.aclose()
        if self.page is not None:
            await self.page.aclose()
        await self.client.close()


def prewarm(process: JobProcess) -> None:
    # Before the first call, so that no caller waits for a model to load.
    process.userdata["vad"] = silero.VAD.load()
    if not settings.livekit_cloud():
        from local import models

        models.prewarm()


async def store_the_call(ctx: JobContext) -> None:
    # However the job ends. LiveKit gives this up to 300 s, and its shutdown callbacks only 10.
    if call := ctx.proc.userdata.get("call"):
        await call.aclose()


server = AgentServer(setup_fnc=prewarm, drain_timeout=90, shutdown_process_timeout=70)


@server.rtc_session(agent_name=settings.agent_name(), on_session_end=store_the_call)
async def entrypoint(ctx: JobContext) -> None:
    # Whose memory: a key means Supermemory, none the store on this machine.
    client, store = settings.memory_client()
    memory = SupermemoryLiveKit(client=client, params=PARAMS)

    call = ctx.proc.userdata["call"] = Call(ctx, memory, client)

    # Who calls: the token server writes it into the dispatch, where the client cannot change it.
    dispatch = read_dispatch(ctx)
    if tag := dispatch.get("container_tag"):
        memory.bind(container_tag=tag, session_id=dispatch.get("session_id"))

    # Connect and start: waiting for LiveKit is necessary, waiting for memory never is.
    await ctx.connect()
    if is_superfluous(ctx):
        return ctx.shutdown("another agent is in this call")
    call.caller, phone = dispatch.get("participant_identity", ""), False
    if not ctx.is_fake_job():
        # Whom the dispatch names, else the first person in the room, as for a phone call.
        caller = await wait_for_caller(ctx, call.caller or None)
        if caller is None:
            return ctx.shutdown("nobody is here to talk to")
        call.caller = caller.identity
        if not tag:
            memory.bind(participant=caller, session_id=dispatch.get("session_id"))
            phone = caller.kind == rtc.ParticipantKind.PARTICIPANT_KIND_SIP

    # What hears, thinks and speaks.
    models, description = await pick_models(ctx)
    session = AgentSession[Call](userdata=call, **models)
    if session.tts is None:
        session.output.set_audio_enabled(False)
    logger.info("call", extra={"memory": store, "memory_state": memory.state, "models": description})

    # Recall before every reply, capture of what is said.
    memory.attach(session)

    # The page: pause, forget, and what memory did. Before the start, or a fast page finds nobody.
    call.page = PageLink(ctx, memory, caller=call.caller, store=store)
    await call.page.start()

    # How a call ends: silence, the longest call, a caller who left.
    session.on("user_state_changed", lambda event: on_silence(session, event))
    call.limit = asyncio.create_task(end_after(session, LONGEST_CALL), name="longest call")
    session.on("close", lambda _: end_job(call))

    await session.start(
        agent=Assistant(memory, known_by_caller_id=phone),
        room=ctx.room,
        room_options=room_io.RoomOptions(participant_identity=call.caller or NOT_GIVEN),
        # True would let everybody in the room read the prompt, the memory block included.
        session_host=ctx.simulation_context() is not None or settings.switch("LIVEKIT_SESSION_HOST"),
    )


def read_dispatch(ctx: JobContext) -> dict[str, str]:
    """The dispatch's metadata; what is no JSON object of strings counts as absent."""
    try:
        found = json.loads(ctx.job.metadata or "{}")
    except ValueError:
        found = {}
    if ctx.is_fake_job() and not found:
        found = {"container_tag": settings.get("MEMORY_CALLER")}
    return {k: v for k, v in found.items() if isinstance(v, str) and v} if isinstance(found, dict) else {}


async def wait_for_caller(ctx: JobContext, identity: str | None) -> rtc.RemoteParticipant | None:
    """The caller, or None and an empty room deleted: they have hung up, and our joining opened it anew."""
    try:
        async with asyncio.timeout(ABSENCE if identity else ARRIVAL):
            return await ctx.wait_for_participant(identity=identity)
    except TimeoutError:
        if not ctx.room.remote_participants:
            ctx.delete_room()
        return None


def is_superfluous(ctx: JobContext) -> bool:
    """Whether another agent of this name was in the room first: two would talk over each other."""

    def came_first(other: rtc.RemoteParticipant) -> bool:
        me = ctx.room.local_participant
        if me.joined_at is None or other.joined_at is None:
            return True
        return (other.joined_at, other.sid) < (me.joined_at, me.sid)

    # By what LiveKit gives an agent at its join: of two that join at a time, exactly one goes.
    return any(
        other.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
        and other.attributes.get(ATTRIBUTE_AGENT_NAME) == ctx.job.agent_name
        and came_first(other)
        for other in ctx.room.remote_participants.values()
    )


def on_silence(session: AgentSession[Call], event: UserStateChangedEvent) -> None:
    """A caller who is silent for long is asked, then told goodbye and hung up on."""
    call = session.userdata
    if call.patience is not None:
        call.patience.cancel()
        call.patience = None
    if event.new_state == "away":
        call.patience = asyncio.create_task(ask_and_wait(session), name="patience")


async def ask_and_wait(session: AgentSession[Call]) -> None:
    await say(session, "The caller is silent. Ask in one short sentence if they are still there.")
    await asyncio.sleep(PATIENCE)
    if await say(session, "The caller has been silent for long. Say goodbye in one short sentence."):
        hang_up(session)


async def end_after(session: AgentSession[Call], seconds: float) -> None:
    await asyncio.sleep(seconds)
    await say(session, "The call has to end now. Say goodbye in one short sentence.")
    hang_up(session)


async def say(session: AgentSession[Call], instructions: str) -> bool:
    """Whether it was said to its end, or could not be; false when the caller spoke: they are there."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_SENTENCE):
            speech = await session.generate_reply(instructions=instructions, tool_choice="none")
            return not speech.interrupted
    return True


def hang_up(session: AgentSession[Call]) -> None:
    session.userdata.said_goodbye = True
    session.shutdown(drain=False)  # everything was said, or could not be


def end_job(call: Call) -> None:
    """A session that closes ends neither its job nor the room, and an open room costs money."""
    call.stop_clocks()
    # A room whose caller is still there and was told no goodbye is left to the agent that replaces this one.
    if call.said_goodbye or call.caller not in call.ctx.room.remote_participants:
        call.ctx.delete_room()
    call.ctx.shutdown("the call is over")


def main() -> None:
    if set(sys.argv[1:]) & {"start", "dev", "connect"}:
        try:
            check_settings()
            asyncio.run(check_keys())
        except settings.SettingsError as error:
            sys.exit(str(error))
        if settings.check_memory() is None:
            logger.warning("memory is a file on this machine; with SUPERMEMORY_API_KEY it is Supermemory")
    cli.run_app(server)


if __name__ == "__main__":
    main()
