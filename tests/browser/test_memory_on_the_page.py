"""The caller is in charge of what is remembered: by a switch in the call, and by the list beside it."""

from __future__ import annotations

import asyncio
import json

from playwright.async_api import expect

from tests.browser.page import CallerPage
from tests.browser.visitors import Visit


async def test_what_is_remembered_is_paused_undone_forgotten_exported_and_erased(visit: Visit) -> None:
    """What was said with the switch on is nowhere; what is forgotten is gone from the running call too."""
    page = await visit()
    await page.start()
    await page.is_greeted()
    await page.answer_to("My name is Emily and I live in Boston.")
    await page.answer_to("Remember that I like tea.")
    await expect(page.notes).to_contain_text("saved:")
    await page.notes.get_by_role("button", name="Undo").click()
    await expect(page.notes).to_contain_text("not kept:")

    await page.forgetful.click()
    await expect(page.forgetful).to_be_checked()
    await expect(page.detail).to_have_text("Nothing you say is being remembered.")
    await page.answer_to("I collect stamps.")
    await page.look("not-remembered")
    await expect(page.notes).to_have_count(1)
    await page.hang_up()
    await expect(page.facts.filter(has_text="Boston")).to_be_visible()
    await expect(page.facts.filter(has_text="Emily")).to_be_visible()
    exported = await _export(page)
    assert "Boston" in exported
    assert "stamps" not in exported
    assert "tea" not in await page.fact_texts()

    await page.start()
    assert "Emily" in await page.is_greeted()
    assert "Boston" in await page.answer_to("Where do I live?")
    await page.chips.last.click()
    await expect(page.page.locator("details[open] li").filter(has_text="Boston")).to_be_visible()
    await page.look("recalled")
    boston = page.facts.filter(has_text="Boston")
    await boston.get_by_role("button", name="Forget").click()
    await expect(boston).to_contain_text("Forget this for good?")
    await page.look("forget-one")
    await boston.get_by_role("button", name="Forget", exact=True).click()
    await expect(boston).to_have_count(0)
    assert "Boston" not in await page.answer_to("Where do I live?")
    assert "Emily" in await page.fact_texts()
    await page.answer_to("I have a cat.")
    await page.page.get_by_role("button", name="Forget everything").click()
    await page.look("forget-all")
    await page.page.get_by_role("button", name="Forget all", exact=True).click()
    note = page.page.locator("#memory-note")
    await expect(note).to_contain_text("Forgotten:")
    await expect(note).to_contain_text("still has in mind")
    await expect(page.alerts).to_have_count(0)
    await page.page.wait_for_load_state("networkidle")
    await expect(note).to_contain_text("Forgotten:")
    await page.main.dblclick()
    await expect(page.state).to_have_text("Call ended")
    await expect(page.page.locator("#summary")).not_to_contain_text("Remembered")
    await page.page.reload()
    await expect(page.facts).to_have_class("none")
    left = await page.page.evaluate("fetch('/api/memories/export').then((answer) => answer.text())")
    assert "Emily" not in left
    assert "Boston" not in left
    assert "cat" not in left


async def _export(page: CallerPage) -> str:
    async with page.page.expect_download() as download:
        await page.page.get_by_role("button", name="Export").click()
    file = await download.value
    assert file.suggested_filename == "memories.json"
    text = await asyncio.to_thread((await file.path()).read_text, "utf-8")
    json.loads(text)
    return text
