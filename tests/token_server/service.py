"""A running token server over the embedded memory, and browsers that open it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

import aiohttp
from aiohttp.test_utils import TestServer
from livekit import api

from memory import embedded
from memory.store import MemoryStore
from server.callers import ResolveSubject
from server.config import Config

API_KEY = "devkey"
API_SECRET = "a-secret-of-the-tests-at-least-32-characters-long"
CONFIG = Config(
    livekit_url="ws://127.0.0.1:7880",
    api_key=API_KEY,
    api_secret=API_SECRET,
    secret="a-session-secret-of-the-tests-long-enough",
    agent_name="memory-agent",
)
PAGE = """<!doctype html><title>Call</title>
<script src="/static/vendor/livekit-client.umd.min.js" defer></script>
<script type="module" src="/static/app.js"></script>
"""


class Browser:
    """Sends what a browser's page of this server sends: the cookie, the origin, JSON."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = aiohttp.ClientSession(url, cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def ask(self, method: str, path: str, body: object = None, **kwargs: Any) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        headers = {"Sec-Fetch-Site": "same-origin", **kwargs.pop("headers", {})}
        async with self.session.request(method, path, json=body, headers=headers, **kwargs) as answer:
            return answer.status, await answer.json()

    async def token(self, body: object | None = None) -> api.access_token.Claims:
        """The verified claims of a new token."""
        status, answer = await self.ask("POST", "/api/token", {} if body is None else body)
        assert status == 201, answer
        return api.TokenVerifier(API_KEY, API_SECRET).verify(answer["participant_token"])

    async def tag(self) -> str:
        """The container tag that this browser's calls get."""
        claims = await self.token()
        assert claims.attributes is not None
        return claims.attributes["supermemory_container_tag"]

    @property
    def cookie(self) -> str:
        cookies = {cookie.key: cookie.value for cookie in self.session.cookie_jar}
        return cookies["caller"]


class Service:
    """One token server on a free port, with the memory behind it."""

    def __init__(self, server: TestServer, faults: embedded.Faults, store: MemoryStore) -> None:
        self.url = str(server.make_url("/"))
        self.app = server.app
        self.faults = faults
        self.store = store
        self._browsers: list[Browser] = []

    def browser(self) -> Browser:
        """A browser that has never been here."""
        self._browsers.append(Browser(self.url))
        return self._browsers[-1]

    async def aclose(self) -> None:
        for browser in self._browsers:
            await browser.session.close()


class StartService(Protocol):
    """Starts a token server; `changes` replace fields of its configuration."""

    def __call__(self, resolve: ResolveSubject = ..., **changes: Any) -> Awaitable[Service]: ...
