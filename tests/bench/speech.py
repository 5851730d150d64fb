"""How fast speech on this machine is. Run with: python -m tests.bench.speech

Prints milliseconds, median and slowest of several runs: from a sentence to the first sound of it, from the
end of an utterance to its text, and the longest that the event loop was kept waiting meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from statistics import median

from livekit import rtc

from local import hibari_tts, whisper_stt

RUNS = 10
SENTENCES = (
    "Hello, Emily.",
    "I remember that you live in Boston and that you are allergic to peanuts.",
    "Well, " + ", ".join(["this is a clause that goes on and on"] * 12) + ".",
)


async def first_sound(text: str) -> tuple[float, list[rtc.AudioFrame]]:
    began = time.perf_counter()
    async with hibari_tts.load().synthesize(text) as stream:
        frames = [(await anext(stream)).frame]
        waited = time.perf_counter() - began
        frames += [audio.frame async for audio in stream]
    return waited, frames


async def to_text(frames: list[rtc.AudioFrame]) -> float:
    began = time.perf_counter()
    await whisper_stt.load().recognize(frames)
    return time.perf_counter() - began


async def watch_loop(longest: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        longest[0] = max(longest[0], time.perf_counter() - began - 0.001)


def row(name: str, seconds: list[float]) -> None:
    sys.stdout.write(f"{name:60} {median(seconds) * 1000:7.0f} {max(seconds) * 1000:7.0f}\n")


async def main() -> None:
    sys.stdout.write(f"{'':60} {'median':>7} {'slowest':>7}\n")
    longest = [0.0]
    watching = asyncio.create_task(watch_loop(longest))
    for text in SENTENCES:
        spoken = [await first_sound(text) for _ in range(RUNS)]
        row(f"first sound of {len(text)} characters", [waited for waited, _ in spoken])
        frames = spoken[0][1]
        seconds = sum(frame.duration for frame in frames)
        row(f"text of {seconds:.1f} s of speech", [await to_text(frames) for _ in range(RUNS)])
    watching.cancel()
    row("the event loop kept waiting", longest)


if __name__ == "__main__":
    whisper_stt.load()
    hibari_tts.load()
    asyncio.run(main())
