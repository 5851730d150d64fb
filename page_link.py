"""What the page and the agent tell each other about memory, over the room they share.

The page calls: `memory.ping`, `memory.pause` and `memory.refresh`. The agent answers the linked caller
only, tells of each recall on the topic `memory.events`, and keeps the last known state in attributes.
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

from memory import MemoryEvent, SupermemoryLiveKit

logger = logging.getLogger("agent")

EVENTS_TOPIC = "memory.events"
MAX_PAYLOAD = 16_384
MAX_FORGOTTEN = 500


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
        for name, method in (("ping", self._ping), ("pause", self._pause), ("refresh", self._refresh)):
            local.register_rpc_method(f"memory.{name}", method)
        self._memory.on("recalled", self._on_event)
        self._memory.on("saved", self._on_event)
        self._memory.on("forgotten", self._on_event)
        self._memory.on("state_changed", self._on_event)
        await local.set_attributes(self._attributes)

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

    async def _refresh(self, data: rtc.RpcInvocationData) -> str:
        ids = _object(self._check(data)).get("forgotten", [])
        if not isinstance(ids, list) or len(ids) > MAX_FORGOTTEN:
            raise rtc.RpcError(1400, "forgotten is not a short list")
        await self._memory.refresh([item for item in ids if isinstance(item, str)])
        return json.dumps({"ok": True})

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
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise rtc.RpcError(1400, "the payload is not a JSON object")
    return found
