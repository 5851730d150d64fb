"""How fast a call on a LiveKit server of this machine is. Run with: python -m tests.bench.rooms

Prints seconds, median and slowest, with the speech and the demo model of this machine: from the connection
to the agent in the room and to its first sound, from a typed message to the first word of the answer, and
from the end of speech to the first sound of the answer, for a caller with a memory and one without.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from tests.support import worker
from tests.support.livekit_server import LiveKitServer, livekit_server
from tests.support.room_caller import dispatch, joining

CALLS = 5
SENTENCES = ("I live in Boston.", "I'm allergic to peanuts.", "My name is Emily.")


async def hold(livekit: LiveKitServer, room: str, caller_is: str, waits: dict[str, list[float]]) -> None:
    """One call; adds what it measured to `waits`."""
    async with joining(livekit, room, caller_is, dispatches=[dispatch()]) as caller:
        connected = time.monotonic()
        await caller.agent()
        waits["connection to agent in the room"].append(time.monotonic() - connected)
        waits["connection to first sound"].append(await caller.hears(connected) - connected)
        await caller.reply()
        await caller.agent_listens()
        typed = time.monotonic()
        await caller.types("Hello?")
        waits["typed message to first word"].append(caller.lines[-1].begun - typed)
        for sentence in SENTENCES:
            await caller.agent_listens()
            await caller.speaks(sentence)
            spoke_until = caller.spoke_until
            await caller.reply()
            name = "without memory" if caller_is == "anonymous" else "with memory"
            waits[f"end of speech to first sound, {name}"].append(
                await caller.hears(spoke_until) - spoke_until
            )


async def main() -> None:
    waits: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, livekit_server(Path(folder)) as livekit:
        environment = {**livekit.environment, "MEMORY_DIR": folder}
        async with worker.running("tests.support.agent_start", environment) as agents:
            for number in range(CALLS):
                for caller_is in ("emily", "anonymous"):
                    room = f"{caller_is}-{number}"
                    await hold(livekit, room, caller_is, waits)
                    summary = await agents.logs("memory of this call", room=room)
                    if caller_is == "emily":
                        waits["longest wait for memory in a call"].append(summary["waited_most"])
    sys.stdout.write(f"{'':50} {'median':>7} {'slowest':>7}\n")
    for name, seconds in sorted(waits.items()):
        sys.stdout.write(f"{name:50} {median(seconds):7.2f} {max(seconds):7.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
