"""What every request passes before a handler sees it, and every answer before it leaves."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from server.callers import COOKIE_LIFE, KEYS, SESSION, Session
from server.config import Config
from server.errors import ApiError
from server.limits import TokenBuckets, client_address

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MOST_BODY = 4096  # bytes
BODY_TIMEOUT = 10.0
CONFIG = web.AppKey("config", Config)
CALL_ROUTES = frozenset({"/api/token", "/api/dispatch"})


class Limits:
    """Calls cost money, the rest costs work; a browser is one person, an address may be an office."""

    def __init__(self) -> None:
        self.calls_of_address = TokenBuckets(burst=20, interval=3.0)
        self.calls_of_session = TokenBuckets(burst=10, interval=6.0)
        self.requests_of_address = TokenBuckets(burst=120, interval=0.25)
        self.requests_of_session = TokenBuckets(burst=40, interval=1.0)

    def for_route(self, route: str) -> tuple[TokenBuckets, TokenBuckets]:
        """The buckets of the address and of the session."""
        if route in CALL_ROUTES:
            return self.calls_of_address, self.calls_of_session
        return self.requests_of_address, self.requests_of_session


LIMITS = web.AppKey("limits", Limits)

_PLAIN_ERRORS = {
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address does not take this method."),
    413: ("too_large", f"The body is larger than {MOST_BODY} bytes."),
}


@web.middleware
async def answers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every failure into JSON and writes one line about every request: its route, never its path."""
    started = time.monotonic()
    try:
        response = await handler(request)
    except ApiError as error:
        response = error.response()
    except web.HTTPException as error:
        code, message = _PLAIN_ERRORS.get(error.status, ("refused", "This request was refused."))
        response = ApiError(error.status, code, message).response()
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
    except Exception:
        logger.exception("request failed")
        response = ApiError(500, "failed", "Something went wrong here. Try again.").response()
    logger.info(
        "request",
        extra={
            "method": request.method if request.method in _METHODS else "other",
            "route": _route(request),
            "status": response.status,
            "duration_ms": round((time.monotonic() - started) * 1000, 1),
        },
    )
    return response


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@web.middleware
async def host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses requests for another name: a page elsewhere may have pointed its own name at this machine."""
    # A load balancer asks for health by address.
    if _route(request) != "/healthz" and not request.app[CONFIG].serves(_host_and_port(request)[0]):
        raise ApiError(
            421,
            "wrong_host",
            "This server does not go by that name. Its names are set in TOKEN_SERVER_HOSTS.",
        )
    return await handler(request)


@web.middleware
async def same_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Lets only our own page use the API: other pages could make a browser send its cookie along.

    Reading is refused to other sites as well; without either header a reader is no browser's page.
    """
    if _route(request).startswith("/api/"):
        site = request.headers.get("Sec-Fetch-Site")
        reading = request.method in ("GET", "HEAD", "OPTIONS")
        if site is not None:
            ours = site == "same-origin" or (reading and site == "none")
        elif "Origin" in request.headers:
            ours = _is_own_origin(request)
        else:
            ours = reading
        if not ours:
            raise ApiError(
                403,
                "cross_origin",
                "Only this server's own page may do that. Other programs send its Origin.",
            )
        if request.can_read_body and request.content_type != "application/json":
            raise ApiError(415, "not_json", "Send the body as application/json.")
    return await handler(request)


@web.middleware
async def limits(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers 429 with `Retry-After` to a browser or an address that asks too often."""
    if (route := _route(request)).startswith("/api/"):
        config = request.app[CONFIG]
        of_address, of_session = request.app[LIMITS].for_route(route)
        forwarded = request.headers.getall("X-Forwarded-For", [])
        wait = of_address.take(client_address(request.remote, forwarded, config))
        # A new visitor's session is nobody's yet: counting it would only fill the table.
        if not wait and not request[SESSION].fresh:
            wait = of_session.take(request[SESSION].id)
        if wait:
            raise ApiError(429, "too_many_requests", "Too many requests. Wait a moment.", retry_after=wait)
    return await handler(request)


@web.middleware
async def session(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reads the browser's cookie, and sends one where there was none or where the page was opened."""
    opening = _route(request) == "/"
    if not opening and not _route(request).startswith("/api/"):
        return await handler(request)
    keys = request.app[KEYS]
    secure = is_https(request)
    # The prefix keeps a neighbouring subdomain from planting its own cookie here; browsers want https for it.
    name = "__Host-caller" if secure else "caller"
    request[SESSION] = Session.read(request.cookies.get(name), keys)
    response = await handler(request)
    if request[SESSION].fresh or opening:
        response.set_cookie(
            name,
            request[SESSION].cookie(keys),
            max_age=COOKIE_LIFE,
            path="/",
            httponly=True,
            samesite="Lax",
            secure=secure,
        )
    return response


MIDDLEWARES = (answers, host, same_origin, session, limits)


def security_headers(policy: str) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """A signal handler that sets what every answer carries, errors included."""

    async def prepare(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = policy
        response.headers["Permissions-Policy"] = "microphone=(self)"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.pop("Server", None)

    return prepare


async def json_object(request: web.Request) -> dict[str, object]:
    """The JSON object in the body; answers 400, 408 or 413 where there is none to be had."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            raw = await request.read()
    except TimeoutError:
        raise ApiError(408, "too_slow", "The body did not arrive in time.") from None
    except web.RequestPayloadError:  # it is not encoded as its headers say
        raw = b""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ApiError(400, "not_an_object", "The body has to be a JSON object.")
    return value


def _route(request: web.Request) -> str:
    """The route that will answer, such as `/api/memories/{id}`; `none` where there is none.

    What is asked of a request goes by this and not by its path, which can be spelled in many ways.
    """
    resource = request.match_info.route.resource
    return resource.canonical if resource else "none"


def is_https(request: web.Request) -> bool:
    """Whether the browser speaks https, to us or to a proxy that we trust."""
    if request.secure:
        return True
    forwarded = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip()
    return forwarded == "https" and request.app[CONFIG].trusts(request.remote)


def _is_own_origin(request: web.Request) -> bool:
    try:
        origin = urlsplit(request.headers["Origin"])
        name, port = origin.hostname or "", origin.port
    except ValueError:
        return False
    if origin.scheme not in ("http", "https") or (is_https(request) and origin.scheme != "https"):
        return False
    default = 443 if origin.scheme == "https" else 80
    own_name, own_port = _host_and_port(request)
    name = f"[{name}]" if ":" in name else name
    return (name, port or default) == (own_name, own_port or default)


def _host_and_port(request: web.Request) -> tuple[str, int | None]:
    # Not `request.host`, which makes up a name where the header is missing.
    try:
        parts = urlsplit(f"//{request.headers.get('Host', '')}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    return (f"[{name}]" if ":" in name else name), port
