"""Three calls by voice: a fact told in one is known in the next, and to nobody else."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.visitors import Speak

SPOKEN = 45_000
"""Milliseconds for the agent to hear the sentence right, which is said again every 13 s."""


async def test_a_caller_is_remembered_in_the_same_browser_and_in_no_other(speak: Speak) -> None:
    """What is spoken is written down and answered aloud, and known when the same browser calls again."""
    first = await speak("I am allergic to peanuts.", profile="emily")
    await first.start()
    await expect(first.caller_rows.filter(has_text="allergic to peanuts").first).to_be_visible(timeout=SPOKEN)
    await expect(first.agent_rows.filter(has_text="peanuts").first).to_be_visible()
    await first.falls_silent()
    assert await first.loud_seconds() > 1
    assert "peanuts" in await first.heard()
    await first.look("spoken-call")
    await first.hang_up()
    await expect(first.facts.filter(has_text="peanuts").first).to_be_visible()
    await first.look("after-the-call")
    await first.page.context.close()

    again = await speak("What am I allergic to?", profile="emily")
    await expect(again.facts.filter(has_text="peanuts").first).to_be_visible()
    await again.start()
    assert "nothing" not in await again.is_greeted()
    await expect(again.agent_rows.filter(has_text="peanuts").first).to_be_visible(timeout=SPOKEN)
    await expect(again.chips.first).to_contain_text("recalled")
    await again.falls_silent()
    assert "peanuts" in await again.heard()
    await again.look("remembered")
    await again.hang_up()
    await again.page.context.close()

    stranger = await speak("What am I allergic to?", profile="somebody-else")
    await stranger.start()
    assert "nothing" in await stranger.is_greeted()
    await expect(stranger.caller_rows.filter(has_text="allergic").first).to_be_visible(timeout=SPOKEN)
    await expect(stranger.agent_rows.nth(1)).to_be_visible()
    await stranger.falls_silent()
    assert await stranger.loud_seconds() > 1
    assert "peanuts" not in await stranger.heard()
    await expect(stranger.agent_rows.filter(has_text="peanuts")).to_have_count(0)
    assert await stranger.fact_texts() == ""
