"""What is typed, muted and chosen in a call, and a call without a microphone."""

from __future__ import annotations

import asyncio

from livekit import api
from playwright.async_api import Playwright, expect

from tests.browser.stack import Stack
from tests.browser.visitors import DESK, FLAGS, Visit, Visitors


async def test_a_call_is_typed_muted_and_moved_to_another_microphone(visit: Visit, stack: Stack) -> None:
    """Typed words are answered aloud, mute holds the voice back, and a microphone can be chosen and lost."""
    page = await visit()
    await page.start()
    await page.is_greeted()
    before = await page.loud_seconds()
    assert "Emily" in await page.answer_to("My name is Emily.")
    await expect(page.caller_rows).to_have_text(["My name is Emily."])
    assert await page.loud_seconds() > before

    await page.falls_silent()
    await page.mute.click()
    await expect(page.detail).to_have_text("You are muted.")
    await expect(page.mute).to_have_text("Unmute")
    await page.look("muted")
    await _until_microphone_is("muted", stack)
    await page.page.keyboard.press("Alt+m")
    await expect(page.detail).to_have_text("Just talk.")
    await _until_microphone_is("open", stack)

    await page.page.get_by_role("button", name="Sound").click()
    await expect(page.page.get_by_label("Microphone")).to_contain_text("Fake Audio Input 2")
    await page.look("sound")
    assert await page.page.evaluate("ear.opened.at(-1).label") != "Fake Audio Input 2"
    await page.page.get_by_label("Microphone").select_option(label="Fake Audio Input 2")
    await page.page.get_by_role("button", name="Done").click()
    await expect(page.page.get_by_role("dialog")).to_have_count(0)
    assert await page.page.evaluate("ear.opened.at(-1).label") == "Fake Audio Input 2"
    await _until_microphone_is("open", stack)

    await page.page.context.clear_permissions()
    await expect(page.alerts).to_contain_text("The microphone was lost.")
    await page.look("microphone-lost")
    assert "Emily" in await page.answer_to("What is my name?")
    await page.page.context.grant_permissions(["microphone"])
    await page.alerts.get_by_role("button", name="Try again").click()
    await expect(page.alerts).to_have_count(0)
    await _until_microphone_is("open", stack)


async def test_without_a_microphone_the_call_goes_on_in_writing(
    visit: Visit, visitors: Visitors, playwright: Playwright, chromium: str
) -> None:
    """Blocked or not there at all: the page says which, the agent speaks, and typed words are answered."""
    blocked = await visit(microphone=False)
    await blocked.start()
    await expect(blocked.alerts).to_contain_text("The microphone is blocked for this page.")
    await blocked.is_greeted()
    assert await blocked.loud_seconds() > 0.5
    await blocked.look("microphone-blocked")
    assert "Boston" in await blocked.answer_to("I live in Boston.")
    await blocked.page.context.grant_permissions(["microphone"])
    await blocked.alerts.get_by_role("button", name="Try again").click()
    await expect(blocked.alerts).to_have_count(0)
    await expect(blocked.mute).to_be_enabled()
    await blocked.hang_up()

    flags = [flag for flag in FLAGS if "fake-device" not in flag] + ["--use-fake-ui-for-media-stream"]
    async with await playwright.chromium.launch(executable_path=chromium, args=flags) as deaf:
        context = await deaf.new_context(viewport=DESK, base_url=visitors.stack.url)
        none = await visitors.arrive(context)
        await none.start()
        await expect(none.alerts).to_contain_text("No microphone was found.")
        await none.is_greeted()
        await none.look("no-microphone")
        assert "Boston" in await none.answer_to("I live in Boston.")
        await none.hang_up()


async def _until_microphone_is(wanted: str, stack: Stack) -> None:
    """Waits until the LiveKit server has the one caller's microphone as `muted` or as `open`."""
    livekit = stack.livekit
    async with (
        api.LiveKitAPI(livekit.http_url, livekit.api_key, livekit.api_secret) as server,
        asyncio.timeout(10),
    ):
        while await _microphones(server) != [wanted]:  # noqa: ASYNC110  # LiveKit tells only its own clients
            await asyncio.sleep(0.1)


async def _microphones(server: api.LiveKitAPI) -> list[str]:
    rooms = (await server.room.list_rooms(api.ListRoomsRequest())).rooms
    listed = [
        await server.room.list_participants(api.ListParticipantsRequest(room=room.name)) for room in rooms
    ]
    return [
        "muted" if track.muted else "open"
        for room in listed
        for person in room.participants
        if person.kind == api.ParticipantInfo.STANDARD
        for track in person.tracks
    ]
