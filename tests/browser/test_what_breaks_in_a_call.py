"""A call outlives the death of its agent, and that of the LiveKit server."""

from __future__ import annotations

import os
import signal

from playwright.async_api import expect

from tests.browser.stack import Stack
from tests.browser.visitors import Visit


async def test_a_killed_agent_is_replaced_and_the_call_goes_on(visit: Visit, stack: Stack) -> None:
    """Nobody tells the page that a process died: it misses the heartbeat, and the caller's switch stays."""
    page = await visit()
    await page.start()
    await page.is_greeted()
    await page.forgetful.click()
    await expect(page.forgetful).to_be_checked()
    await page.falls_silent()

    os.kill(stack.calls()[-1], signal.SIGKILL)
    # LiveKit itself notices after 21 s.
    await expect(page.state).to_have_text("The agent dropped out. Bringing it back…", timeout=17_000)
    await page.look("agent-lost")
    await page.is_live()
    await expect(page.agent_rows).to_have_count(2)  # its greeting
    await expect(page.forgetful).to_be_checked()
    before = await page.loud_seconds()
    assert await page.answer_to("I live in Boston.") == "All right, I keep nothing of that."
    assert await page.loud_seconds() > before
    await page.hang_up()
    assert "Boston" not in await page.fact_texts()


async def test_a_call_survives_the_livekit_server(visit: Visit, stack: Stack) -> None:
    """After a crash and a restart the same agent answers in the same call; meanwhile nobody gets through."""
    page = await visit()
    await page.start()
    await page.is_greeted()
    await page.answer_to("My name is Emily.")
    await page.falls_silent()
    calls = stack.calls()

    stack.livekit.kill()
    await expect(page.state).to_have_text("Reconnecting…")
    await page.look("reconnecting")
    other = await visit()
    await other.main.click()
    await expect(other.alerts).to_contain_text("cannot be reached.")
    await other.look("no-livekit")
    stack.livekit.start()

    await page.is_live()
    assert "Emily" in await page.answer_to("What is my name?")
    assert stack.calls() == calls
    await page.hang_up()
    await other.start()
    assert "nothing" in await other.is_greeted()
    await other.hang_up()
