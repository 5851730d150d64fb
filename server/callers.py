"""Who sent a request: a browser's signed cookie, the person behind it, and what may be derived from both.

Everything that leaves the server is a keyed hash: a container tag is visible to everyone in a room, so
it says nothing about the person, and nobody without the key can compute somebody else's.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from server.errors import ApiError

COOKIE_LIFE = 365 * 24 * 3600  # seconds; begins anew with each visit

ResolveSubject = Callable[[web.Request], Awaitable[str | None]]

_COOKIE = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")
_ROOM = re.compile(r"call_([0-9a-f]{32})_([0-9a-f]{32})")


class Keys:
    """Keyed hashes under one secret; each use has a label, so that one never passes for another."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def digest(self, label: str, *parts: str, length: int = 32) -> str:
        """`length` hex digits over the label and the parts; 32 are 128 bits."""
        # Each part carries its length: ("a", "bc") and ("ab", "c") must not meet.
        text = "".join(f"{len(part)}:{part}," for part in (label, *parts))
        message = text.encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()[:length]


@dataclass(frozen=True)
class Session:
    """One browser, known by its cookie."""

    id: str
    fresh: bool = False
    """Made for this request: the answer brings the cookie."""

    @classmethod
    def new(cls) -> Session:
        return cls(secrets.token_hex(16), fresh=True)

    @classmethod
    def read(cls, cookie: str | None, keys: Keys) -> Session:
        """The session of a cookie; one that is missing, cut short or forged is a new visitor's."""
        match = _COOKIE.fullmatch(cookie or "")
        if match and hmac.compare_digest(match[2], keys.digest("cookie", match[1])):
            return cls(match[1])
        return cls.new()

    def cookie(self, keys: Keys) -> str:
        return f"{self.id}.{keys.digest('cookie', self.id)}"


@dataclass(frozen=True)
class Caller:
    """A person in a browser."""

    subject: str
    session: Session
    keys: Keys

    @property
    def container_tag(self) -> str:
        """Where this person's memory lives, whatever browser they come with."""
        return f"web:{self.keys.digest('container tag', self.subject, length=40)}"

    @property
    def identity(self) -> str:
        """The LiveKit identity, one for this person in this browser."""
        return f"caller_{self.keys.digest('identity', self.session.id, self.subject)}"

    def new_room(self) -> str:
        """A room name that nobody can guess and that proves, without any state, whose it is."""
        nonce = secrets.token_hex(16)
        return f"call_{nonce}_{self._room_proof(nonce)}"

    def owns(self, room: str) -> bool:
        match = _ROOM.fullmatch(room)
        return match is not None and hmac.compare_digest(match[2], self._room_proof(match[1]))

    def _room_proof(self, nonce: str) -> str:
        return self.keys.digest("room", nonce, self.session.id, self.subject)


KEYS = web.AppKey("keys", Keys)
RESOLVE: web.AppKey[ResolveSubject] = web.AppKey("resolve")
SESSION = web.RequestKey("session", Session)


def anonymous(resolve: ResolveSubject) -> ResolveSubject:
    """Marks a `resolve_subject` that knows nobody; with it the server stays on this machine by default."""
    resolve.anonymous = True  # type: ignore[attr-defined]  # a mark on a function has no type of its own
    return resolve


def is_anonymous(resolve: ResolveSubject) -> bool:
    return getattr(resolve, "anonymous", False)


def visitor(request: web.Request) -> str:
    """The subject of an anonymous visitor: 128 random bits, kept in this browser's signed cookie."""
    return request[SESSION].id


async def caller_of(request: web.Request) -> Caller:
    """Who is asking; answers 401 where the deployment's `resolve_subject` knows nobody."""
    subject = await request.app[RESOLVE](request)
    if subject is not None and not isinstance(subject, str):
        raise TypeError(f"resolve_subject returned a {type(subject).__name__}; it returns a str or None.")
    if not subject or not subject.strip():
        raise ApiError(401, "not_signed_in", "Sign in first.")
    return Caller(subject, request[SESSION], request.app[KEYS])
