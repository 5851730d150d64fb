"""What can go wrong with a memory service, to be provoked in tests.

    faults = Faults()
    client = memory.embedded.client(path, faults=faults)
    faults.status(503, on="search", times=2)
    faults.delay(5.0, on="add")
    ...
    assert len(faults.seen("add")) == 1

Each switch acts on one endpoint (`ENDPOINTS`), or on all without `on`, for the next `times` requests, or
until `clear()`. Delays add up; of several other faults the one switched on first acts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Endpoint = Literal[
    "add",
    "batch",
    "get",
    "update",
    "delete",
    "search",
    "profile",
    "list",
    "memory",
    "forget",
    "forget_matching",
    "namespaces",
    "namespace",
    "update_namespace",
    "delete_namespace",
]
ENDPOINTS: tuple[str, ...] = Endpoint.__args__  # type: ignore[attr-defined]  # typing has no public way

Malformed = Literal[
    "html", "truncated", "content_type", "empty", "no_content", "null", "null_lists", "strings", "chunk_only"
]

_LISTS = ("results", "documents", "chunks", "memories", "matches", "errors", "namespaces")
_JSON = "application/json"
_MALFORMED: dict[str, tuple[int, str, Any]] = {
    "html": (502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "truncated": (200, _JSON, b'{"results": [{"id": "x", "memory": "The cal'),
    "content_type": (200, "text/plain", b"Service is starting"),
    "empty": (200, _JSON, b""),
    "no_content": (204, _JSON, b""),
    "null": (200, _JSON, None),
    "null_lists": (200, _JSON, {"profile": None, **dict.fromkeys(_LISTS)}),
    "strings": (
        200,
        _JSON,
        {"profile": {"static": ["a"], "dynamic": ["b"]}, **dict.fromkeys(_LISTS, ["a"])},
    ),
    "chunk_only": (200, _JSON, {"results": [{"id": "x", "chunk": "Caller: I moved to Boston"}]}),
}


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    endpoint: str
    """Its name in `ENDPOINTS`, or an empty string for a path that the service does not know."""
    method: str
    path: str
    body: Any
    """The parsed JSON, or None."""
    headers: Mapping[str, str]


@dataclass
class Fault:
    kind: Literal["answer", "refuse", "black_hole", "reset", "drop", "late", "trickle", "failed", "delay"]
    on: str | None
    times: int | None
    seconds: float = 0.0
    status: int = 200
    content: bytes = b""
    headers: Mapping[str, str] | None = None


class Faults:
    """The switches, and a record of every request that came in while they were there."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._active: list[Fault] = []

    def seen(self, endpoint: Endpoint) -> list[Seen]:
        """The requests to one endpoint so far, those that failed included."""
        return [request for request in self.requests if request.endpoint == endpoint]

    def clear(self) -> None:
        """Everything works again. The record stays."""
        self._active.clear()

    def status(
        self,
        code: int,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        on: Endpoint | None = None,
        times: int | None = None,
    ) -> None:
        """Answers with an error and does nothing; `headers` such as `{"Retry-After": "30"}`."""
        self.answer(
            {"error": f"provoked {code}"} if body is None else body, code, headers, on=on, times=times
        )

    def answer(
        self,
        body: Any,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        on: Endpoint | None = None,
        times: int | None = None,
    ) -> None:
        """Answers with `body` instead of doing anything: bytes as they are, anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        merged = {"content-type": _JSON, **{name.lower(): value for name, value in (headers or {}).items()}}
        self._switch(Fault("answer", on, times, status=status, content=content, headers=merged))

    def malformed(self, how: Malformed, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Answers with something that is not what the API promises."""
        if how not in _MALFORMED:
            raise ValueError(f"Unknown kind of malformed answer {how!r}: use one of {', '.join(_MALFORMED)}.")
        status, content_type, body = _MALFORMED[how]
        self.answer(body, status, {"content-type": content_type}, on=on, times=times)

    def delay(self, seconds: float, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Waits before doing anything; a client that gives up meanwhile leaves no trace."""
        self._switch(Fault("delay", on, times, seconds))

    def late(self, seconds: float, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Does what is asked at once and answers late: for the client it may have happened or not."""
        self._switch(Fault("late", on, times, seconds))

    def drop(self, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Does what is asked, then closes the connection without an answer."""
        self._switch(Fault("drop", on, times))

    def refuse(self, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Refuses the connection."""
        self._switch(Fault("refuse", on, times))

    def black_hole(self, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Never connects: the client's connect timeout decides."""
        self._switch(Fault("black_hole", on, times))

    def reset(self, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Resets the connection before doing anything."""
        self._switch(Fault("reset", on, times))

    def trickle(self, seconds: float, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Answers byte by byte with `seconds` between, which a timeout per read never notices."""
        self._switch(Fault("trickle", on, times, seconds))

    def failed(self, *, on: Endpoint | None = None, times: int | None = None) -> None:
        """Takes a document with HTTP 200, fails to process it and says `status: failed`."""
        self._switch(Fault("failed", on, times))

    def take(self, seen: Seen) -> list[Fault]:
        """Records a request and returns what is to happen to it: delays, then at most one other fault."""
        self.requests.append(seen)
        fitting = [fault for fault in self._active if fault.on in (None, seen.endpoint)]
        delays = [fault for fault in fitting if fault.kind == "delay"]
        chosen = delays + [fault for fault in fitting if fault.kind != "delay"][:1]
        for fault in chosen:
            if fault.times is not None:
                fault.times -= 1
                if fault.times == 0:
                    self._active.remove(fault)
        return chosen

    def _switch(self, fault: Fault) -> None:
        if fault.on is not None and fault.on not in ENDPOINTS:
            raise ValueError(f"Unknown endpoint {fault.on!r}: use one of {', '.join(ENDPOINTS)}.")
        if fault.times is not None and fault.times < 1:
            raise ValueError(f"times={fault.times!r} must be at least 1; leave it out for all requests.")
        self._active.append(fault)
