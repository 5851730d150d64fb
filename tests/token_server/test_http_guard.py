"""Who may ask at all: hosts, origins, methods and rates, and what every answer carries."""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest
from yarl import URL

from server.limits import MOST_BUCKETS, TokenBuckets, client_address
from tests.token_server.service import CONFIG, Browser, Service, StartService


async def post(service: Service, path: str, headers: dict[str, str], body: bytes = b"{}") -> int:
    """The status that a bare client gets, which sends nothing by itself but a host."""
    headers = {"Content-Type": "application/json", **headers}
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.post(path, data=body, headers=headers) as answer,
    ):
        return answer.status


@pytest.mark.parametrize("path", ["/api/token", "/api/dispatch", "/api/session/reset"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "SELF"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[broken"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "file://127.0.0.1"},
        {"Referer": "SELF"},
        {},
    ],
    ids=str,
)
async def test_only_our_own_page_starts_anything(
    service: Service, path: str, headers: dict[str, str]
) -> None:
    """Whatever a foreign page can make a browser send is refused."""
    sent = {name: value.replace("SELF", service.url.rstrip("/")) for name, value in headers.items()}
    assert await post(service, path, sent) == 403


@pytest.mark.parametrize(
    "path", ["/%61pi/token", "/api%2ftoken", "/api/%74oken", "//api/token", "/api/./token"]
)
async def test_another_spelling_of_an_address_is_no_way_round(service: Service, path: str) -> None:
    """Refused or not found; in no case answered."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            URL(service.url.rstrip("/") + path, encoded=True),
            json={},
            headers={"Origin": "https://evil.example"},
        ) as answer,
    ):
        assert answer.status in (403, 404)


@pytest.mark.parametrize("path", ["/api/memories", "/api/memories/some-id"])
async def test_a_foreign_page_cannot_delete(service: Service, path: str) -> None:
    """Forgetting is as protected as starting a call."""
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.delete(path, json={"confirm": True}, headers={"Origin": "https://evil.example"}) as answer,
    ):
        assert answer.status == 403


@pytest.mark.parametrize("path", ["/api/memories", "/api/memories/export"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({}, 200),
    ],
    ids=str,
)
async def test_a_foreign_page_cannot_read(
    browser: Browser, path: str, headers: dict[str, str], status: int
) -> None:
    """An address typed by the visitor and a program without a browser may read; another site may not."""
    async with browser.session.get(path, headers=headers) as answer:
        assert answer.status == status
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_client_that_names_our_origin_is_let_in(service: Service) -> None:
    """Older browsers send no Sec-Fetch-Site."""
    assert await post(service, "/api/token", {"Origin": service.url.rstrip("/")}) == 201


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "http://localhost", 201),
        ("localhost:80", "http://localhost", 201),
        ("LOCALHOST:3000", "http://localhost:3000", 201),
        ("[::1]:3000", "http://[::1]:3000", 201),
        ("localhost:3000", "http://localhost:3001", 403),
        ("127.0.0.1:3000", "http://localhost:3000", 403),
        ("evil.example", "http://evil.example", 421),
        ("evil.example:3000", "http://evil.example:3000", 421),
        ("localhost.evil.example", "http://localhost.evil.example", 421),
        ("localhost:x", "http://localhost:x", 421),
        ("", "http://localhost", 421),
        ("voice.example.com", "https://voice.example.com", 201),
    ],
)
async def test_only_our_own_names_are_served(
    start: StartService, host: str, origin: str, status: int
) -> None:
    """A page that points its own name at this machine is not our page."""
    service = await start(hosts=frozenset({"voice.example.com"}))
    assert await post(service, "/api/token", {"Host": host, "Origin": origin}) == status


async def test_a_public_server_without_names_takes_any(start: StartService) -> None:
    """It cannot know them; with names it takes those alone."""
    anywhere = dataclasses.replace(CONFIG, host="0.0.0.0")
    assert anywhere.serves("whatever.example")
    named = dataclasses.replace(anywhere, hosts=frozenset({"voice.example.com"}))
    assert named.serves("voice.example.com")
    assert not named.serves("whatever.example")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("OPTIONS", "/api/token", "POST"),
        ("GET", "/api/token", "POST"),
        ("PUT", "/api/memories", "DELETE,GET,HEAD"),
        ("POST", "/", "GET,HEAD"),
    ],
)
async def test_other_methods_are_refused_with_the_right_ones(
    browser: Browser, method: str, path: str, allow: str
) -> None:
    """A preflight from another site fails too: it finds no permission in the answer."""
    async with browser.session.request(method, path, headers={"Sec-Fetch-Site": "same-origin"}) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == allow
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


async def test_head_answers_like_get(browser: Browser) -> None:
    """Monitors use it."""
    for path in ("/", "/healthz", "/api/memories"):
        async with browser.session.head(path) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/memories", "/nothing", "/static/nothing.js"])
async def test_every_answer_carries_the_security_headers(browser: Browser, path: str) -> None:
    """Errors too; and no answer says what runs here."""
    async with browser.session.get(path) as answer:
        headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Permissions-Policy"] == "microphone=(self)"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "Server" not in headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == "'self' ws://127.0.0.1:7880 http://127.0.0.1:7880"


async def test_livekit_cloud_may_send_the_page_to_another_region(start: StartService) -> None:
    """The policy admits the project and LiveKit Cloud's regions, and only securely."""
    service = await start(livekit_url="wss://project.livekit.cloud")
    async with service.browser().session.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert (
        "connect-src 'self' wss://project.livekit.cloud https://project.livekit.cloud "
        "wss://*.livekit.cloud https://*.livekit.cloud;" in policy
    )


async def test_health_answers_under_any_name(service: Service) -> None:
    """A load balancer asks by address."""
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.get("/healthz", headers={"Host": "10.0.0.7"}) as answer,
    ):
        assert await answer.json() == {"status": "ok"}
        assert "Set-Cookie" not in answer.headers


async def test_a_browser_that_asks_for_many_calls_has_to_wait(browser: Browser) -> None:
    """Every token starts a paid call: after a handful the answer is 429 with the seconds to wait."""
    statuses = []
    for _ in range(15):
        async with browser.session.post(
            "/api/token", json={}, headers={"Sec-Fetch-Site": "same-origin"}
        ) as answer:
            statuses.append(answer.status)
    assert 429 in statuses
    assert statuses.index(429) >= 5
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    status, _ = await browser.ask("GET", "/api/memories")
    assert status == 200, "looking at one's memory does not wait for calls"


async def test_throwing_the_cookie_away_does_not_help(service: Service) -> None:
    """New visitors from one address share its limit."""
    statuses = [(await service.browser().ask("POST", "/api/token", {}))[0] for _ in range(25)]
    assert statuses[:10] == [201] * 10
    assert statuses[-1] == 429


async def test_an_address_claimed_by_the_client_does_not_help(service: Service) -> None:
    """Without a configured proxy X-Forwarded-For is not read."""
    statuses = []
    for number in range(25):
        headers = {"X-Forwarded-For": f"203.0.113.{number}"}
        statuses.append((await service.browser().ask("POST", "/api/token", {}, headers=headers))[0])
    assert statuses[-1] == 429


async def test_behind_a_trusted_proxy_each_address_has_its_own_limit(start: StartService) -> None:
    """With the proxy configured its visitors do not wait for one another."""
    service = await start(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))
    for number in range(25):
        headers = {"X-Forwarded-For": f"203.0.113.{number}"}
        assert (await service.browser().ask("POST", "/api/token", {}, headers=headers))[0] == 201


def test_buckets_refill_with_time() -> None:
    """A burst at once, then one each interval, and never more than the burst."""
    now = 0.0
    buckets = TokenBuckets(burst=2, interval=10.0, clock=lambda: now)
    assert [buckets.take("a"), buckets.take("a")] == [0.0, 0.0]
    assert buckets.take("a") == pytest.approx(10.0)
    assert buckets.take("b") == 0.0
    now = 4.0
    assert buckets.take("a") == pytest.approx(6.0)
    now = 10.0
    assert buckets.take("a") == 0.0
    now = 1000.0
    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_buckets_stay_bounded() -> None:
    """However many addresses come, the table does not grow, and who asked last is still counted."""
    buckets = TokenBuckets(burst=1, interval=1e9)
    for number in range(MOST_BUCKETS + 500):
        buckets.take(str(number))
    assert len(buckets) == MOST_BUCKETS
    assert buckets.take(str(MOST_BUCKETS + 499)) > 0


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("198.51.100.1", [], "198.51.100.1"),
        ("198.51.100.1", ["1.2.3.4"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["6.6.6.6", "1.2.3.4, 10.0.0.9"], "1.2.3.4"),
        ("10.0.0.1", ["1.2.3.4:5678"], "1.2.3.4"),
        ("10.0.0.1", ["[2001:db8::1]:5678"], "2001:db8::/64"),
        ("10.0.0.1", ["garbage"], "10.0.0.1"),
        ("10.0.0.1", ["1.2.3.4, garbage"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.1", [], "198.51.100.1"),
        (None, [], "unknown"),
        ("", ["1.2.3.4"], "unknown"),
    ],
)
def test_the_address_is_what_trusted_proxies_vouch_for(
    peer: str | None, forwarded: list[str], address: str
) -> None:
    """Read from the right, as far as the proxies are ours; one person's IPv6 network is one address."""
    config = dataclasses.replace(CONFIG, trusted_proxies=(ipaddress.ip_network("10.0.0.0/8"),))
    assert client_address(peer, forwarded, config) == address


async def test_logs_hold_nothing_about_people(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    """No tag, identity, room, cookie, address or id, whatever was asked; the route says what it was."""
    caplog.set_level(logging.DEBUG)
    claims = await browser.token({"participant_name": "Annabella"})
    await browser.ask("DELETE", "/api/memories/secret-fact-id")
    await browser.ask("GET", "/api/memories?q=peanuts")
    await browser.ask("GET", "/secret-path")
    written = " ".join(repr(vars(record)) for record in caplog.records if record.name.startswith("server"))
    assert claims.video is not None
    assert claims.attributes is not None
    for personal in (
        claims.identity,
        claims.video.room,
        claims.attributes["supermemory_container_tag"],
        browser.cookie,
        "127.0.0.1",
        "Annabella",
        "secret-fact-id",
        "peanuts",
        "secret-path",
    ):
        assert personal not in written
    routes = [record.__dict__["route"] for record in caplog.records if record.msg == "request"]
    assert routes == ["/api/token", "/api/memories/{id}", "/api/memories", "none"]


async def test_a_slow_body_does_not_hold_a_request_for_ever(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that announces a body and sends none is answered 408."""
    monkeypatch.setattr("server.guard.BODY_TIMEOUT", 0.1)
    host = service.url.removeprefix("http://").rstrip("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(
        f"POST /api/token HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: same-origin\r\n"
        "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{".encode()
    )
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()
    await writer.wait_closed()


async def test_body_that_is_not_encoded_as_it_says_is_a_bad_request(service: Service) -> None:
    """And no failure of ours, with a traceback in the log."""
    headers = {
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
        "Origin": service.url.rstrip("/"),
    }
    async with (
        aiohttp.ClientSession(service.url, skip_auto_headers=["Content-Encoding"]) as session,
        session.request("DELETE", "/api/memories", data=_chunks(b"xx"), headers=headers) as answer,
    ):
        assert answer.status == 400


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body
