"""The memory panel's API: one person's memory, and only theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.token_server.service import Browser, Service


async def remember(service: Service, browser: Browser, *texts: str) -> str:
    """Stores facts for the person in this browser; returns their container tag."""
    tag = await browser.tag()
    for text in texts:
        await service.store.remember(tag, text, {})
    return tag


async def shown(browser: Browser) -> list[dict[str, Any]]:
    status, answer = await browser.ask("GET", "/api/memories")
    assert status == 200, answer
    facts: list[dict[str, Any]] = answer["facts"]
    return facts


async def test_a_new_visitor_has_no_memories(browser: Browser) -> None:
    """Nothing stored is normal, not an error; the page learns which store it talks to."""
    status, answer = await browser.ask("GET", "/api/memories")
    assert (status, answer) == (200, {"facts": [], "store": "embedded"})


async def test_a_person_sees_what_is_known_of_them(service: Service, browser: Browser) -> None:
    """Each fact with its words, its age, how it is known, and the id that forgets it."""
    await remember(service, browser, "Is allergic to peanuts")
    [fact] = await shown(browser)
    assert set(fact) == {"id", "text", "when", "source", "inferred"}
    assert "peanuts" in fact["text"]
    assert fact["id"]
    assert fact["when"].endswith("+00:00")


async def test_nobody_sees_or_forgets_what_belongs_to_another(service: Service) -> None:
    """With the other's ids in hand too: they mean nothing in a memory of one's own."""
    anna, bob = service.browser(), service.browser()
    await remember(service, anna, "Is allergic to peanuts")
    [fact] = await shown(anna)
    assert await shown(bob) == []
    await bob.ask("DELETE", f"/api/memories/{fact['id']}")
    await bob.ask("DELETE", "/api/memories", {"confirm": True})
    status, answer = await bob.ask("GET", "/api/memories/export")
    assert status == 200
    assert "peanuts" not in json.dumps(answer)
    assert await shown(anna) == [fact]


async def test_one_memory_is_forgotten_and_the_rest_stays(service: Service, browser: Browser) -> None:
    """The answer holds what is gone; asking again is harmless."""
    await remember(service, browser, "Is allergic to peanuts", "Lives in Boston")
    facts = await shown(browser)
    gone = next(fact for fact in facts if "peanuts" in fact["text"])
    for _ in range(2):
        status, answer = await browser.ask("DELETE", f"/api/memories/{gone['id']}")
        assert status == 200
        assert [fact["id"] for fact in answer["forgotten"]] == [gone["id"]]
    assert [fact["text"] for fact in await shown(browser)] == [
        fact["text"] for fact in facts if fact is not gone
    ]


@pytest.mark.parametrize(
    "fact_id",
    ["..%2fbob", "%2e%2e%2f%2e%2e", "a%20b", "a%0a", "a%3fb", "aggregated_1", "x" * 101, "%00", "é"],
)
async def test_an_id_that_could_reach_elsewhere_is_refused(browser: Browser, fact_id: str) -> None:
    """The service's client puts ids into addresses as they are."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with browser.session.delete(f"/api/memories/{fact_id}", headers=headers) as answer:
        expected = "not_possible" if fact_id == "aggregated_1" else "bad_id"
        assert (answer.status, (await answer.json())["code"]) == (400, expected)


@pytest.mark.parametrize(
    "body", [None, {}, {"confirm": False}, {"confirm": "true"}, {"confirm": 1}, {"confirmed": True}]
)
async def test_forgetting_everything_has_to_be_confirmed(
    service: Service, browser: Browser, body: dict[str, Any] | None
) -> None:
    """A stray request erases nobody."""
    await remember(service, browser, "Lives in Boston")
    status, answer = await browser.ask("DELETE", "/api/memories", body)
    assert (status, answer["code"]) == (400, "not_confirmed")
    assert len(await shown(browser)) == 1


async def test_everything_is_forgotten_when_confirmed(service: Service, browser: Browser) -> None:
    """Facts and transcripts are gone, and the answer counts them; a second time there are none."""
    tag = await remember(service, browser, "Lives in Boston")
    await service.store.append(tag, "lk-call", "[1] 2026-01-01T10:00:00Z Caller: I have a dog.", {})
    status, answer = await browser.ask("DELETE", "/api/memories", {"confirm": True})
    assert status == 200
    assert answer["removed"]["documents"] == 2
    assert await shown(browser) == []
    _, answer = await browser.ask("DELETE", "/api/memories", {"confirm": True})
    assert answer["removed"] == {"documents": 0, "memories": 0}


async def test_a_person_takes_everything_along(service: Service, browser: Browser) -> None:
    """The export is a file with the facts and with what was said, word for word."""
    tag = await remember(service, browser, "Lives in Boston")
    await service.store.append(tag, "lk-call", "[1] 2026-01-01T10:00:00Z Caller: Guten Tag, größer.", {})
    async with browser.session.get("/api/memories/export") as answer:
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.content_type == "application/json"
        text = await answer.text()
    assert "Lives in Boston" in text
    assert "Guten Tag, größer." in text


async def test_a_new_visitor_can_export_too(browser: Browser) -> None:
    """There is nothing in it."""
    status, answer = await browser.ask("GET", "/api/memories/export")
    assert (status, answer["facts"], answer["documents"]) == (200, [], [])


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/memories"), ("GET", "/api/memories/export"), ("DELETE", "/api/memories")],
)
@pytest.mark.parametrize(
    ("memory_status", "status", "code"),
    [
        (401, 503, "memory_unauthorized"),
        (402, 503, "memory_payment"),
        (403, 503, "memory_forbidden"),
        (409, 503, "memory_conflict"),
        (422, 502, "memory_invalid"),
        (429, 503, "memory_rate_limited"),
        (500, 502, "memory_server"),
        (503, 502, "memory_server"),
    ],
)
async def test_a_failing_memory_is_a_sentence(
    service: Service,
    browser: Browser,
    method: str,
    path: str,
    memory_status: int,
    status: int,
    code: str,
) -> None:
    """Each cause has a status and words for the visitor, and quotes nothing of what the service said."""
    service.faults.status(memory_status)
    body = {"confirm": True} if method == "DELETE" else None
    got, answer = await browser.ask(method, path, body)
    assert (got, answer["code"]) == (status, code)
    assert answer["error"].endswith(".")


async def test_an_answer_that_is_none_of_the_services_is_a_sentence_too(
    service: Service, browser: Browser
) -> None:
    """A proxy's page instead of JSON, a closed connection: 502, and nobody is told that it was done."""
    service.faults.malformed("html")
    assert (await browser.ask("GET", "/api/memories"))[0] == 502
    service.faults.clear()
    service.faults.drop(on="delete_namespace")
    status, answer = await browser.ask("DELETE", "/api/memories", {"confirm": True})
    assert (status, answer["code"]) == (502, "memory_network")
    assert "did not confirm" in answer["error"]


async def test_a_busy_memory_says_when_to_come_again(service: Service, browser: Browser) -> None:
    """The wait that the service asks for is passed on."""
    service.faults.status(429, headers={"Retry-After": "30"})
    async with browser.session.get("/api/memories") as answer:
        assert answer.status == 503
        assert 30 <= int(answer.headers["Retry-After"]) <= 31


async def test_a_call_starts_while_the_memory_is_down(service: Service, browser: Browser) -> None:
    """Memory is not what a call depends on."""
    service.faults.status(500)
    assert (await browser.token()).identity
