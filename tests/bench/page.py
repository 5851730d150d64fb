"""How fast a call is for the person in front of the page. Run with: python -m tests.bench.page

Prints seconds, median and slowest, in a headless browser with the speech and the demo model of this machine:
from the click to the agent in the call and to the first sound that comes out of the loudspeaker. A process
with loaded models waits for each call; the next one loads them while the call begins.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from playwright.async_api import async_playwright

from tests.browser import microphone
from tests.browser.page import CallerPage
from tests.browser.stack import running_stack
from tests.browser.visitors import FLAGS, Visitors
from tests.support.livekit_server import livekit_server

CALLS = 5


async def hold(page: CallerPage, waits: dict[str, list[float]]) -> None:
    """One call, from the click to the end of the greeting; adds what it measured to `waits`."""
    clicked = time.monotonic()
    await page.start()
    waits["click to agent in the call"].append(time.monotonic() - clicked)
    await page.is_greeted()
    first = await page.page.evaluate("(ear.loud[0] - ear.clicked) / 1000")
    waits["click to first sound"].append(first)
    await page.hang_up()
    await page.page.context.close()


async def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium on PATH.")
    waits: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, livekit_server(Path(name)) as livekit:
        directory = Path(name)
        silence = microphone.silence(directory / "silence.wav")
        flags = [*FLAGS, f"--use-file-for-fake-audio-capture={silence}"]
        with running_stack(livekit, directory) as stack:
            async with (
                async_playwright() as playwright,
                await playwright.chromium.launch(executable_path=chromium, args=flags) as browser,
            ):
                visitors = Visitors(stack, playwright, chromium, browser)
                for _ in range(CALLS):
                    await hold(await visitors.visit(), waits)
                await visitors.leave(picture=None)
    sys.stdout.write(f"{'':50} {'median':>7} {'slowest':>7}\n")
    for what, seconds in sorted(waits.items()):
        sys.stdout.write(f"{what:50} {median(seconds):7.2f} {max(seconds):7.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
