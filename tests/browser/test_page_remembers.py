"""Three calls by voice: a fact told in one is known in the next, and to nobody else."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.visitors import Speak

SPOKEN = 45_000
"""Milliseconds for the agent to hear the whole sentence, which is said again every 13 s."""


async def test_a_caller_is_remembered_in_the_same_browser_and_in_no_other(speak: Speak) -> None:
    """What is spoken is written down and answered aloud, and known when the same browser calls again."""
    first = await speak("I live in Boston, and I am allergic to peanuts.", profile="emily")
    await first.start()
    await expect(first.caller_rows.filter(has_text="Boston").first).to_be_visible(timeout=SPOKEN)
    await expect(first.agent_rows.filter(has_text="Boston").first).to_be_visible()
    await first.falls_silent()
    assert await first.loud_seconds() > 1
    assert "boston" in await first.heard()
    await first.look("spoken-call")
    await first.hang_up()
    await expect(first.facts.filter(has_text="Boston")).to_be_visible()
    await first.look("after-the-call")
    await first.page.context.close()

    again = await speak("Where do I live?", profile="emily")
    await expect(again.facts.filter(has_text="Boston")).to_be_visible()
    await again.start()
    assert "nothing" not in await again.is_greeted()
    await expect(again.agent_rows.filter(has_text="Boston").first).to_be_visible(timeout=SPOKEN)
    await expect(again.chips.first).to_contain_text("recalled")
    await again.falls_silent()
    assert "boston" in await again.heard()
    await again.look("remembered")
    await again.hang_up()
    await again.page.context.close()

    stranger = await speak("Where do I live?", profile="somebody-else")
    await stranger.start()
    assert "nothing" in await stranger.is_greeted()
    await expect(stranger.caller_rows.filter(has_text="live").first).to_be_visible(timeout=SPOKEN)
    await expect(stranger.agent_rows.nth(1)).to_be_visible()
    await stranger.falls_silent()
    assert await stranger.loud_seconds() > 1
    assert "boston" not in await stranger.heard()
    assert "Boston" not in await stranger.page.content()
