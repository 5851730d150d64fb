"""The visitors of one test, each with a browser of their own."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from playwright.async_api import Browser, BrowserContext, Playwright, ViewportSize

from tests.browser import microphone
from tests.browser.page import PICTURES, CallerPage
from tests.browser.stack import Stack

EAR = Path(__file__).with_name("ear.js")
DESK: ViewportSize = {"width": 1280, "height": 800}
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--use-fake-device-for-media-stream=device-count=2"),
]


class Visit(Protocol):
    """Opens the page in a browser that has never been here; `options` are those of a browser context."""

    async def __call__(self, *, microphone: bool = True, **options: Any) -> CallerPage: ...


class Speak(Protocol):
    """Opens the page in a browser whose microphone hears `text`; `profile` keeps what it stores for later."""

    async def __call__(self, text: str, *, profile: str) -> CallerPage: ...


class Visitors:
    def __init__(self, stack: Stack, playwright: Playwright, chromium: str, browser: Browser) -> None:
        self.stack = stack
        self._playwright, self._chromium, self._browser = playwright, chromium, browser
        self._pages: list[CallerPage] = []
        self._contexts = AsyncExitStack()

    async def visit(self, *, microphone: bool = True, **options: Any) -> CallerPage:
        await self.stack.gets_warm()
        options = {"permissions": ["microphone"] if microphone else [], **options}
        return await self.arrive(await self._browser.new_context(**self._seated(options)))

    async def speak(self, text: str, *, profile: Path) -> CallerPage:
        await self.stack.gets_warm()
        said = microphone.speech(profile.with_name(f"{len(self._pages)}.wav"), text)
        context = await self._playwright.chromium.launch_persistent_context(
            profile,
            executable_path=self._chromium,
            args=[*FLAGS, f"--use-file-for-fake-audio-capture={said}"],
            **self._seated({"permissions": ["microphone"]}),
        )
        return await self.arrive(context)

    async def arrive(self, context: BrowserContext) -> CallerPage:
        """Opens the page in this browser, as a first or a further tab."""
        if context not in {page.page.context for page in self._pages}:
            self._contexts.push_async_callback(context.close)
            await context.add_init_script(path=EAR)
        self._pages.append(page := await CallerPage.open(context))
        return page

    async def leave(self, picture: str | None) -> None:
        """Everybody hangs up and goes; for a `picture`, what they last saw is kept under that name."""
        for number, page in enumerate(self._pages):
            if page.page.is_closed():
                continue
            if picture:
                PICTURES.mkdir(parents=True, exist_ok=True)
                await page.page.screenshot(path=PICTURES / f"failed-{picture}-{number}.png")
            if await page.body.get_attribute("data-phase") not in ("idle", "ended", "failed"):
                await page.main.click()
        await self._contexts.aclose()

    def check(self) -> None:
        """What holds for every page in every test."""
        for page in self._pages:
            assert page.errors == []
            assert page.hosts <= {"localhost", "127.0.0.1"}, "the page asked another machine"
            assert not any("eyJ" in line for line in page.console), "a token is in the console"

    def _seated(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"viewport": DESK, "base_url": self.stack.url, **options}
