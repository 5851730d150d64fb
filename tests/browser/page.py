"""The page as the person in front of it has it: what they do, see and hear."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from typing import Any
from urllib.parse import urlsplit

from faster_whisper import decode_audio
from livekit import rtc
from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, expect

from local import whisper_stt
from settings import ROOT

PICTURES = ROOT / ".ci" / "artifacts" / "page"
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
HEARD_RATE = 16_000

expect.set_options(timeout=20_000)  # of a step of a call on a busy machine


class CallerPage:
    """One tab with the page in it. `expect` its locators; they wait for up to 20 s."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        """What the page did not catch, or was refused by its policy."""
        self.hosts: set[str] = set()
        """Every host that it asked for anything."""
        self.console: list[str] = []
        """What its scripts wrote to the console."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._on_console)
        page.on("request", self._on_request)
        self.body = page.locator("body")
        self.main = page.locator("#main")
        """The one button that starts and ends a call."""
        self.state = page.locator("#state")
        self.detail = page.locator("#detail")
        self.stage = page.locator("#stage")
        self.alerts = page.locator("#alerts .notice")
        self.caller_rows = page.locator(".row.caller .said:visible")
        self.agent_rows = page.locator(".row.agent:not(.open) .said:visible")
        """What the agent has finished saying."""
        self.notes = page.locator(".row.note")
        self.chips = page.locator(".row.agent summary")
        self.facts = page.locator("#facts li")
        self.forgetful = page.get_by_role("switch", name="Don’t remember")
        self.mute = page.locator("#mute")

    @classmethod
    async def open(cls, context: BrowserContext) -> CallerPage:
        blank = [tab for tab in context.pages if tab.url == "about:blank"]  # a new window has one
        page = cls(blank[0] if blank else await context.new_page())
        await page.page.goto("/")
        await expect(page.main).to_be_enabled()
        return page

    async def start(self) -> None:
        """Presses the main button, and returns when the agent is there."""
        await self.main.click()
        await self.is_live()

    async def is_live(self) -> None:
        await expect(self.body).to_have_attribute("data-phase", "live")

    async def is_greeted(self) -> str:
        """Waits for the agent's first words, and returns them."""
        await expect(self.agent_rows).to_have_count(1)
        await self.falls_silent()
        return await self.agent_rows.first.inner_text()

    async def falls_silent(self) -> None:
        await expect(self.stage).to_have_attribute("data-state", "listening")

    async def hang_up(self) -> None:
        await self.main.click()
        await expect(self.state).to_have_text("Call ended")

    async def type(self, text: str) -> None:
        await self.page.get_by_label("Message to the agent").fill(text)
        await self.page.get_by_role("button", name="Send").click()

    async def answer_to(self, text: str) -> str:
        """Types it while the agent is silent, and returns the whole answer."""
        await self.falls_silent()
        before = await self.agent_rows.count()
        await self.type(text)
        await expect(self.agent_rows).to_have_count(before + 1)
        return await self.agent_rows.last.inner_text()

    async def fact_texts(self) -> str:
        return "\n".join(await self.facts.locator("p[dir=auto]").all_inner_texts())

    # What is heard

    async def loud_seconds(self) -> float:
        """How much sound has come out of the loudspeaker, measured every 20 ms."""
        return len(await self.page.evaluate("ear.loud")) * 0.02

    async def heard(self) -> str:
        """The words that came out of the loudspeaker since the agent came, in small letters."""
        webm = base64.b64decode(await self.page.evaluate("ear.recording()"))
        wave = await asyncio.to_thread(decode_audio, io.BytesIO(webm), HEARD_RATE)
        samples = (wave * 32767).clip(-32768, 32767).astype("<i2")
        frame = rtc.AudioFrame(samples.tobytes(), HEARD_RATE, 1, len(samples))
        speech = await asyncio.to_thread(whisper_stt.load)
        return (await speech.recognize([frame])).alternatives[0].text.lower()

    # What is seen

    async def look(self, name: str) -> None:
        """Keeps a picture of this state, and checks it for accessibility and for a width that fits."""
        await self.page.evaluate(_AT_REST)
        PICTURES.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=PICTURES / f"{name}.png")
        if not await self.page.evaluate("'axe' in globalThis"):
            await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await self.page.evaluate("axe.run({ resultTypes: ['violations'] })")
        assert not found["violations"], f"{name}: {_in_words(found['violations'])}"
        too_wide = await self.page.evaluate(_TOO_WIDE)
        assert not too_wide, f"{name}: scrolls sideways: {too_wide}"

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.args:  # else the browser says it, of an address that failed for instance
            self.console.append(message.text)
        if re.search(r"Content Security Policy|Permissions Policy|Trusted", message.text):
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if host := urlsplit(request.url).hostname:
            self.hosts.add(host)


_AT_REST = """() => Promise.allSettled(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().iterations !== Infinity).map((one) => one.finished))"""

_TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll('body, body *')]
  .filter((one) => one === document.documentElement || /auto|scroll/.test(getComputedStyle(one).overflowX))
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => `${one.localName}#${one.id}: ${one.scrollWidth} in ${one.clientWidth}`)"""


def _in_words(violations: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"{rule['help']} ({node['html'][:160]}: {node['any'][0]['message'] if node['any'] else rule['id']})"
        for rule in violations
        for node in rule["nodes"][:3]
    )
