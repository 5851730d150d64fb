"""The page on a small phone, in the dark, without a mouse, with words that run from right to left."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.page import CallerPage
from tests.browser.visitors import Visit

NAME = "קוראים לי אמה"


async def test_a_call_on_a_small_phone_by_keyboard_alone(visit: Visit) -> None:
    """Every control is reached by Tab, nothing is wider than 320 px, and all of it is legible."""
    page = await visit(
        viewport={"width": 320, "height": 568}, color_scheme="dark", reduced_motion="reduce", locale="he-IL"
    )
    keyboard = page.page.keyboard
    await page.look("phone-idle")
    await _tab_to(page, "main")
    await keyboard.press("Enter")
    await page.is_live()
    await page.is_greeted()
    await page.look("phone-live")

    await _tab_to(page, "words")
    await keyboard.insert_text(NAME)
    await keyboard.press("Enter")
    await expect(page.caller_rows).to_have_text([NAME])
    await expect(page.caller_rows).to_have_css("direction", "rtl")
    await expect(page.agent_rows).to_have_count(2)
    await _tab_to(page, "words")
    await keyboard.insert_text("Remember that my name is אמה.")
    await keyboard.press("Enter")
    await expect(page.agent_rows).to_have_count(3)
    await page.look("phone-right-to-left")

    await _tab_to(page, "forgetful")
    await keyboard.press("Space")
    await expect(page.forgetful).to_be_checked()
    await keyboard.press("Alt+m")
    await expect(page.mute).to_have_text("Unmute")
    await expect(page.agent_rows.last).to_be_in_viewport(ratio=0.9)
    await page.look("phone-muted-and-not-remembered")

    await _tab_to(page, "open-memory")
    await keyboard.press("Enter")
    await expect(page.page.get_by_role("dialog")).to_be_visible()
    await expect(page.facts.filter(has_text="אמה")).to_be_visible()
    await page.look("phone-memory")
    await keyboard.press("Escape")
    await expect(page.page.get_by_role("dialog")).to_have_count(0)
    await expect(page.page.locator("#open-memory")).to_be_focused()

    await _tab_to(page, "open-sound")
    await keyboard.press("Enter")
    await expect(page.page.get_by_label("Microphone")).to_be_focused()
    await expect(page.page.get_by_label("Microphone")).to_contain_text("Fake Audio Input 1")
    await page.look("phone-sound")
    await keyboard.press("Escape")

    await _tab_to(page, "main")
    await keyboard.press("Enter")
    await expect(page.state).to_have_text("Call ended")
    await expect(page.main).to_be_focused()
    await expect(page.main).to_be_in_viewport(ratio=1)
    await page.look("phone-ended")


async def _tab_to(page: CallerPage, control: str) -> None:
    """Presses Tab until the control with this id has the focus; within one round of the page it has to."""
    for _ in range(40):
        await page.page.keyboard.press("Tab")
        if await page.page.evaluate("document.activeElement.id") == control:
            return
    raise AssertionError(f"Tab does not lead to #{control}")
