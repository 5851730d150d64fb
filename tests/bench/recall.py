"""What memory costs a reply. Run with: python -m tests.bench.recall

For each latency of the memory service: the time from the caller's last word to the first sound of the reply,
as a ratio to the same call without memory, model calls per reply, and how often the search made it in time.
The model needs 300 ms to its first word and the end of a turn 300 ms; `reply_budget` is 0.4 as in agent.py.
Then the longest that the event loop was blocked while a caller with 200 facts was recalled.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from livekit.agents import Agent
from supermemory import AsyncSupermemory

from memory import InputParams, SupermemoryLiveKit, embedded
from memory.embedded import Faults
from tests.harness import Call, Reply

TURNS = 6
LATENCIES = (0.0, 0.15, 0.3, 0.6)


async def one_call(client: AsyncSupermemory | None, *, preemptive: bool) -> tuple[list[float], Call]:
    """Seconds to the first sound, turn by turn."""
    call = Call(
        Agent(instructions="Be brief."),
        model=lambda request: Reply("All right.", delay=0.3),
        min_delay=0.3,
        preemptive=preemptive,
    )
    memory = None
    if client is not None:
        memory = SupermemoryLiveKit(client=client, params=InputParams(reply_budget=0.4))
        memory.bind(container_tag="alice")
        memory.attach(call.session)
    waits = []
    async with call:
        await call.says("Hello there everybody")
        for number in range(TURNS):
            await call.speech_started()
            await call.final(f"Question {number}: where do I live?")
            ended = time.perf_counter()
            await call.speech_ended()
            await call.agent_speaking()
            waits.append(time.perf_counter() - ended)
            await call.reply()
    if memory is not None:
        await memory.aclose()
    return waits, call


async def loop_lag(work: asyncio.Task[object]) -> float:
    """The longest that the loop was late for a 1 ms sleep while `work` ran."""
    worst = 0.0
    while not work.done():
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - begun - 0.001)
    await work
    return worst


async def main() -> None:
    faults = Faults()
    with tempfile.TemporaryDirectory() as folder:
        client = embedded.client(Path(folder) / "memory.sqlite3", faults=faults)
        for number in range(200):
            await client.add(
                "alice",
                content=f"The caller once lived in town number {number}",
                metadata={"kind": "remembered"},
            )
        for preemptive in (True, False):
            plain, _ = await one_call(None, preemptive=preemptive)
            sys.stdout.write(f"preemptive={preemptive}: {median(plain):.2f} s without memory\n")
            for latency in LATENCIES:
                faults.clear()
                if latency:
                    faults.delay(latency, on="search")
                waits, call = await one_call(client, preemptive=preemptive)
                recalled = sum("town number" in request.prompt for request in call.model.requests)
                sys.stdout.write(
                    f"  service {latency * 1000:3.0f} ms: {median(waits) / median(plain):.2f} times that, "
                    f"{len(call.model.requests) / (TURNS + 1):.1f} model calls a reply, "
                    f"memory in {recalled} of {TURNS + 1}\n"
                )
        faults.clear()
        lag = await loop_lag(asyncio.create_task(one_call(client, preemptive=True)))
        bare = await loop_lag(asyncio.create_task(one_call(None, preemptive=True)))
        sys.stdout.write(
            f"event loop late by at most {lag * 1000:.0f} ms with memory, {bare * 1000:.0f} ms without\n"
        )
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
