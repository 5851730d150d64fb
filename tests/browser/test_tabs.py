"""A second tab, and a page that is loaded anew."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.visitors import Visit, Visitors


async def test_each_tab_and_each_reload_is_a_call_of_its_own(visit: Visit, visitors: Visitors) -> None:
    """Tabs do not mix or end each other's calls; a reload ends its call, and the next one gets its agent."""
    first = await visit()
    await first.start()
    await first.is_greeted()

    second = await visitors.arrive(first.page.context)
    await second.start()
    await second.is_greeted()
    assert "Boston" in await second.answer_to("I live in Boston.")
    assert "Emily" in await first.answer_to("My name is Emily.")
    await expect(first.caller_rows).to_have_text(["My name is Emily."])
    await expect(second.caller_rows).to_have_text(["I live in Boston."])
    await second.hang_up()
    assert "Emily" in await first.answer_to("What is my name?")

    await first.page.reload()
    await expect(first.state).to_be_empty()
    await expect(first.caller_rows).to_have_count(0)
    await first.start()
    await first.is_greeted()


async def test_a_call_that_is_taken_to_another_tab_says_so_in_the_first(
    visit: Visit, visitors: Visitors
) -> None:
    """A copied tab joins with the same token: it goes on with the same agent, and the first one ends."""
    first = await visit()
    async with first.page.expect_response("**/api/token") as answering:
        await first.start()
    token = await (await answering.value).body()
    await first.is_greeted()
    await first.answer_to("My name is Emily.")

    second = await visitors.arrive(first.page.context)
    await second.page.route("**/api/token", lambda route: route.fulfill(status=201, body=token))
    await second.start()
    await expect(first.detail).to_contain_text("The call went on in another tab.")
    await first.look("taken-over")
    assert "Emily" in await second.answer_to("What is my name?")
    await second.hang_up()
