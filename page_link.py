"""What the page and the agent tell each other about memory, over the room they share.

The page calls: `memory.ping`, `memory.pause` and `memory.forget`. The agent answers the linked caller
only, tells of each recall on the topic `memory.events`, and shows the state in attributes.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any

from livekit import rtc
from livekit.agents import JobContext

from memory import MemoryConfigurationError, MemoryEvent, MemoryStoreError, SupermemoryLiveKit

logger = logging.getLogger("agent")

EVENTS_TOPIC = "memory.events"
MAX_PAYLOAD = 16_384


class PageLink:
    """One call's side channel to the caller's page; harmless where there is no page, as on a phone."""

    def __init__(self, ctx: JobContext, memory: SupermemoryLiveKit, *, caller: str, store: str) -> None:
        self._ctx, self._memory = ctx, memory
        self._caller = caller
        self._attributes = {
            "memory.store": store,
            "memory.state": memory.state,
            "memory.recorded": json.dumps(bool(ctx.job.enable_recording)),
        }
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Registers the methods; before the session starts, else a fast page finds none."""
        local = self._ctx.room.local_participant
        for name, method in (("ping", self._ping), ("pause", self._pause), ("forget", self._forget)):
            local.register_rpc_method(f"memory.{name}", method)
        self._memory.on("recalled", self._on_event)
        self._memory.on("saved", self._on_event)
        self._memory.on("forgotten", self._on_event)
        self._memory.on("state_changed", self._on_event)
        await local.set_attributes(self._attributes)

    async def aclose(self) -> None:
        """Drops what has not been told yet: the call is over."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ping(self, data: rtc.RpcInvocationData) -> str:
        self._check(data)
        return "pong"

    async def _pause(self, data: rtc.RpcInvocationData) -> str:
        paused = _object(self._check(data)).get("paused")
        if not isinstance(paused, bool):  # a mistake must not switch storing on
            raise rtc.RpcError(1400, "paused is neither true nor false")
        if paused:
            self._memory.pause()
        else:
            self._memory.resume()
        return json.dumps({"state": self._memory.state})

    async def _forget(self, data: rtc.RpcInvocationData) -> str:
        """One fact or all. The agent does it and not the server: a call's transcript has one writer."""
        wanted = _object(self._check(data))
        fact_id = wanted.get("id")
        try:
            if wanted.get("everything") is True:
                return json.dumps({"removed": await self._memory.erase()})
            if not isinstance(fact_id, str):
                raise rtc.RpcError(1400, "neither the id of a fact nor everything")
            await self._memory.facts()  # as the page has done: each of them can be chosen
            return json.dumps({"forgotten": [fact.id for fact in await self._memory.forget([fact_id])]})
        except MemoryConfigurationError:
            return json.dumps({"forgotten": []})  # nothing of this call's; the page asks the server
        except MemoryStoreError as error:
            logger.warning("the page's wish to forget failed", extra={"error": type(error).__name__})
            raise rtc.RpcError(1500, "the memory could not do that") from None

    def _check(self, data: rtc.RpcInvocationData) -> str:
        # Everybody in the room can call; only the caller whose memory it is may.
        if data.caller_identity != self._caller:
            raise rtc.RpcError(1403, "only the caller may do this")
        if len(data.payload) > MAX_PAYLOAD:
            raise rtc.RpcError(1413, "too long")
        return data.payload

    def _on_event(self, event: MemoryEvent) -> None:
        if event.type == "state_changed":
            self._spawn(self._ctx.room.local_participant.set_attributes({"memory.state": event.state}))
            body: dict[str, Any] = {"type": "state", "state": event.state}
        else:
            facts = [{**asdict(f), "when": f.when and f.when.isoformat()} for f in event.facts]
            body = {"type": event.type, "facts": facts, "waited_ms": round(event.waited * 1000)}
        self._spawn(self._send(json.dumps(body)))

    async def _send(self, text: str) -> None:
        await self._ctx.room.local_participant.send_text(
            text, topic=EVENTS_TOPIC, destination_identities=[self._caller]
        )

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(self._guarded(work), name="page link")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as error:  # the page is gone, or the room is
            logger.debug("page not reached", extra={"error": type(error).__name__})


def _object(payload: str) -> dict[str, Any]:
    try:
        found = json.loads(payload or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise rtc.RpcError(1400, "the payload is not a JSON object")
    return found
