"""Who a visitor is: the same browser comes back to its memory, and nobody else's browser does."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
from aiohttp import web

from memory.identity import container_tag_from, is_container_tag
from server import guard
from server.callers import Caller, Keys, Session
from tests.token_server.service import CONFIG, Browser, Service, StartService

KEYS = Keys(CONFIG.secret)


def caller(subject: str | None = None) -> Caller:
    session = Session.new()
    return Caller(subject if subject is not None else session.id, session, KEYS)


def test_ten_thousand_visitors_have_ten_thousand_tags() -> None:
    """No two meet in a tag, an identity or a room, and each tag is used as it stands."""
    visitors = [caller() for _ in range(10_000)]
    assert len({visitor.container_tag for visitor in visitors}) == 10_000
    assert len({visitor.identity for visitor in visitors}) == 10_000
    assert len({visitor.new_room() for visitor in visitors}) == 10_000
    assert all(
        container_tag_from(visitor.container_tag) == visitor.container_tag for visitor in visitors[:500]
    )


@pytest.mark.parametrize(
    "subject",
    ["alice@example.com", "+14155550100", "../bob", "a?b=c", "名前😀", "\ud800", "x" * 5000, "default"],
    ids=ascii,
)
def test_any_subject_becomes_a_valid_tag_that_does_not_show_it(subject: str) -> None:
    """A sign-in may know people by e-mail or number; the room sees neither."""
    tag = caller(subject).container_tag
    assert is_container_tag(tag)
    assert subject not in tag
    assert tag == caller(subject).container_tag


def test_another_secret_makes_other_tags() -> None:
    """Without the key nobody can compute the tag of a known e-mail address."""
    session = Session.new()
    here = Caller("alice@example.com", session, KEYS)
    there = Caller("alice@example.com", session, Keys("another secret of sufficient length"))
    assert here.container_tag != there.container_tag


async def test_the_same_browser_comes_back_to_the_same_memory(browser: Browser) -> None:
    """The cookie is the person, across calls."""
    assert await browser.tag() == await browser.tag()


async def test_another_browser_has_another_memory(service: Service) -> None:
    """Two browsers on one address are two people."""
    assert await service.browser().tag() != await service.browser().tag()


async def test_the_cookie_survives_a_restart_of_the_server(start: StartService) -> None:
    """Nothing is kept on the server: another one with the same secret knows the visitor."""
    first, second = await start(), await start()
    before = first.browser()
    tag = await before.tag()
    after = second.browser()
    after.session.cookie_jar.update_cookies({"caller": before.cookie})
    assert await after.tag() == tag


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cookie: cookie[:-1],
        lambda cookie: cookie[:32],
        lambda cookie: cookie.partition(".")[0] + ".",
        lambda cookie: ("0" if cookie[0] != "0" else "1") + cookie[1:],
        lambda cookie: cookie[:-1] + ("0" if cookie[-1] != "0" else "1"),
        lambda cookie: cookie.upper(),
        lambda cookie: cookie + "\u0661",
        lambda cookie: "f" * 32 + "." + "f" * 32,
        lambda cookie: "",
        lambda cookie: "x" * 4000,
    ],
)
def test_a_spoilt_cookie_is_a_new_visitor(spoil: Callable[[str], str]) -> None:
    """Cut short, changed or made up: the answer is a new person, never an error or somebody else."""
    session = Session.new()
    read = Session.read(spoil(session.cookie(KEYS)), KEYS)
    assert read.fresh
    assert read.id != session.id


async def test_a_forged_cookie_gets_a_cookie_of_its_own(browser: Browser) -> None:
    """The visitor keeps what the server gave them instead."""
    browser.session.cookie_jar.update_cookies({"caller": "f" * 32 + "." + "0" * 32})
    tag = await browser.tag()
    assert not browser.cookie.startswith("f" * 32)
    assert await browser.tag() == tag


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(service: Service) -> None:
    """HttpOnly, SameSite=Lax, for the whole site, for a year; plain http on one's own machine."""
    async with service.browser().session.get("/") as answer:
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert "Max-Age=31536000" in cookie
    assert "Secure" not in cookie


async def test_behind_a_trusted_https_proxy_the_cookie_is_secure(start: StartService) -> None:
    """The prefix also keeps neighbouring subdomains from planting a cookie."""
    service = await start(trusted_proxies=(ipaddress.ip_network("127.0.0.0/8"),))
    async with service.browser().session.get("/", headers={"X-Forwarded-Proto": "https"}) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-caller=")
    assert "Secure" in cookie
    assert "Domain" not in cookie


async def test_anybody_elses_word_about_https_is_not_taken(browser: Browser) -> None:
    """Without a configured proxy the header is only a visitor's claim."""
    async with browser.session.get("/", headers={"X-Forwarded-Proto": "https"}) as answer:
        assert answer.headers["Set-Cookie"].startswith("caller=")


async def test_a_refused_request_leaves_the_cookie_alone(browser: Browser) -> None:
    """Another site must not be able to replace a visitor, and with that their memory."""
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with browser.session.post("/api/token", json={}, headers=headers) as answer:
        assert answer.status == 403
        assert "Set-Cookie" not in answer.headers


async def test_starting_anew_makes_a_new_visitor_and_says_what_happens_to_the_old(browser: Browser) -> None:
    """The old memory is out of reach, not deleted, and the answer says so."""
    tag = await browser.tag()
    status, answer = await browser.ask("POST", "/api/session/reset")
    assert status == 200
    assert "still exists" in answer["message"]
    assert await browser.tag() != tag


async def test_a_deployment_decides_who_a_caller_is(start: StartService) -> None:
    """With a sign-in of one's own a person has one memory in every browser, and none without it."""

    async def signed_in(request: web.Request) -> str | None:
        if not request.app[guard.CONFIG].trusts(request.remote):
            return None
        return request.headers.get("X-Auth-Request-User")

    service = await start(signed_in, trusted_proxies=(ipaddress.ip_network("127.0.0.0/8"),))
    tags = []
    for name in ("anna@example.com", "anna@example.com", "bob@example.com"):
        browser = service.browser()
        browser.session.headers["X-Auth-Request-User"] = name
        tags.append(await browser.tag())
    assert tags[0] == tags[1] != tags[2]
    status, answer = await service.browser().ask("POST", "/api/token", {})
    assert (status, answer["code"]) == (401, "not_signed_in")
    from_anywhere = (await start(signed_in)).browser()
    from_anywhere.session.headers["X-Auth-Request-User"] = "bob@example.com"
    assert (await from_anywhere.ask("POST", "/api/token", {}))[0] == 401
    _, answer = await browser.ask("POST", "/api/session/reset")
    assert "stays" in answer["message"]
    assert await browser.tag() == tags[2]


def test_rooms_belong_to_one_person_in_one_browser() -> None:
    """The name itself proves whose room it is; a changed one proves nothing."""
    anna, bob = caller(), caller()
    room = anna.new_room()
    assert anna.owns(room)
    assert not bob.owns(room)
    signed_in_later = Caller("anna@example.com", anna.session, KEYS)
    assert not signed_in_later.owns(room)
    for other in (room[:-1], room + "\n", room.upper(), "call_", "", f"{room[:-1]}x", "../" + room):
        assert not anna.owns(other)
