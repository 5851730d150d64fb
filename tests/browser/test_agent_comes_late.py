"""An agent that is not there when the call begins: absent, or busy with somebody else."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Response, expect

from settings import ROOT
from tests.browser.page import CallerPage
from tests.browser.stack import Stack
from tests.browser.visitors import DESK, Visitors

IMPATIENT = Path(__file__).with_name("impatient.js")
AGENT = "an-agent-of-another-name"


@asynccontextmanager
async def process(stack: Stack, sign: str, *command: str) -> AsyncIterator[str]:
    """A further process beside the stack; yields the line in which `sign` stands."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        cwd=ROOT,
        env=stack.environment | {"LIVEKIT_AGENT_NAME": AGENT, "TOKEN_SERVER_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert running.stdout is not None
    try:
        async with asyncio.timeout(60):
            async for line in running.stdout:
                if sign in line.decode():
                    break
        yield line.decode()
    finally:
        running.kill()
        await running.wait()


@pytest_asyncio.fixture(loop_scope="session")
async def elsewhere(stack: Stack) -> AsyncIterator[str]:
    """The address of a page whose agent is not running."""
    async with process(stack, "Open http", "token_server.py") as line:
        found = re.search(r"http://\S+", line)
        assert found
        yield found[0]


async def test_an_absent_agent_is_asked_for_and_a_busy_one_comes_when_it_is_free(
    browser: Browser, visitors: Visitors, elsewhere: str, stack: Stack
) -> None:
    """The page asks again, then says what to check; an agent that takes one call at a time gets the next."""

    async def open_impatient() -> CallerPage:
        context = await browser.new_context(viewport=DESK, base_url=elsewhere, permissions=["microphone"])
        await context.add_init_script(path=IMPATIENT)
        return await visitors.arrive(context)

    first = await open_impatient()
    asked: list[int] = []
    first.page.on("response", lambda answer: _note_dispatch(answer, asked))
    await first.main.click()
    await expect(first.state).to_have_text("Waiting for the agent…")
    await expect(first.page.get_by_label("Message to the agent")).to_be_disabled()
    await first.look("waiting")
    await expect(first.alerts).to_contain_text("Still waking up.")
    await first.look("waiting-long")
    await expect(first.alerts).to_contain_text("The agent did not join.")
    await expect(first.alerts).to_contain_text("LIVEKIT_AGENT_NAME")
    await expect(first.main).to_have_text("Try again")
    await first.look("no-agent")
    assert asked == [202, 202]

    async with process(stack, "registered", str(Path(__file__).with_name("agent_for_one.py"))):
        await first.start()
        await expect(first.detail).to_have_text("This call has no memory.")
        second = await open_impatient()
        await second.main.click()
        await expect(second.state).to_have_text("Waiting for the agent…")
        await first.hang_up()
        await second.is_live()
        await second.hang_up()


def _note_dispatch(answer: Response, asked: list[int]) -> None:
    if answer.url.endswith("/api/dispatch"):
        asked.append(answer.status)
