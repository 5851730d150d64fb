"""The embedded memory as a transport of httpx: the SDK talks to it as it would to the service."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx

from .api import Service, name_of
from .checks import Request
from .database import Busy, Database, prepare
from .faults import Fault, Faults, Seen
from .ranking import Ranking

T = TypeVar("T")


class EmbeddedTransport(httpx.AsyncBaseTransport):
    """Answers requests from one SQLite file, which several processes may use at the same time.

    All SQL runs in one thread of this transport. The timeouts of a request hold as over a network:
    `ReadTimeout` when the answer takes too long, while what was asked may still happen. A request that is
    cancelled before its turn is not carried out.

    Raises `EmbeddedMemoryError` at construction when the place cannot hold a memory, and from a request
    when the file turns out to be damaged. After `aclose` a request raises `RuntimeError`, as with a closed
    httpx client. `vectors=False` searches by words even where an embedding model is installed.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, faults: Faults | None = None, vectors: bool = True
    ) -> None:
        self.path = Path(path).expanduser().absolute()
        prepare(self.path)
        self._faults = faults
        self._db = Database(self.path)
        self._ranking = Ranking(self._db, vectors=vectors)
        self._service = Service(self._db, self._ranking)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedded-memory")
        self._warm = False
        self._closing: Future[None] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._refuse_when_closed()
        content = await request.aread()
        try:
            asked = _asked(request, content)
        except ValueError:
            return _json(400, {"error": "Malformed JSON in request body"})
        faults: list[Fault] = []
        if self._faults is not None:
            headers = dict(request.headers)
            faults = self._faults.take(Seen(name_of(asked), asked.method, asked.path, asked.body, headers))
        limits = request.extensions.get("timeout", {})
        main = faults[-1] if faults and faults[-1].kind != "delay" else None
        if main and main.kind == "refuse":
            raise httpx.ConnectError("Connection refused", request=request)
        if main and main.kind == "black_hole":
            await _sleep(limits.get("connect"))
            raise httpx.ConnectTimeout("Timed out while connecting", request=request)
        try:
            # From the caller's side there is one wait: for the first byte of the answer.
            async with asyncio.timeout(limits.get("read")):
                for delay in (fault for fault in faults if fault.kind == "delay"):
                    await asyncio.sleep(delay.seconds)
                return await self._answered(request, asked, main, limits.get("read"))
        except TimeoutError:
            raise httpx.ReadTimeout("Timed out while waiting for the answer", request=request) from None

    async def aclose(self) -> None:
        """Finishes what was asked before and closes the file. Safe to call twice."""
        if self._closing is None:
            self._closing = self._thread.submit(self._db.close)
            self._thread.shutdown(wait=False)
        # Whoever stops waiting must not keep the file open.
        await asyncio.shield(asyncio.wrap_future(self._closing))

    async def _answered(
        self, request: httpx.Request, asked: Request, fault: Fault | None, read: float | None
    ) -> httpx.Response:
        kind = fault.kind if fault else ""
        if fault and kind == "answer":
            return httpx.Response(fault.status, headers=fault.headers, content=fault.content)
        if kind == "reset":
            raise httpx.ReadError("Connection reset by peer", request=request)
        if kind == "failed":
            asked = Request(asked.method, asked.path, asked.query, asked.body, fail=True)
        status, body = await self._in_thread(lambda: self._serve(asked))
        if kind == "drop":
            raise httpx.RemoteProtocolError(
                "Server disconnected without sending a response.", request=request
            )
        if fault and kind == "late":
            await asyncio.sleep(fault.seconds)
        if fault and kind == "trickle":
            stream = _Trickle(json.dumps(body).encode(), fault.seconds, read, request)
            return httpx.Response(status, headers={"content-type": "application/json"}, stream=stream)
        return _json(status, body)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        self._refuse_when_closed()
        return await asyncio.wrap_future(self._thread.submit(work))

    def _refuse_when_closed(self) -> None:
        if self._closing is not None:
            raise RuntimeError("The embedded memory is closed. Make a new client.")

    def _serve(self, asked: Request) -> tuple[int, Any]:
        try:
            with self._db.guarded():
                self._db.renew()
                answer = self._service.answer(asked)
        except Busy:
            return 503, {"error": "The memory file is busy", "details": "Another process is writing to it."}
        if self._service.changed is not None:
            self._later(self._keep, self._service.changed)
        if not self._warm:
            self._warm = True
            self._later(self._ranking.warm)
        return answer

    def _keep(self, namespace: int) -> None:
        """Between two requests; a vector that cannot be stored now is computed again some time."""
        if self._closing is not None:
            return
        try:
            with self._db.guarded():
                more = self._ranking.keep(namespace)
        except (Busy, RuntimeError):
            return
        if more:
            self._later(self._keep, namespace)

    def _later(self, work: Callable[..., None], *values: object) -> None:
        if self._closing is None:
            try:
                self._thread.submit(work, *values)
            except RuntimeError:  # closed in this very moment
                return


class _Trickle(httpx.AsyncByteStream):
    def __init__(self, content: bytes, seconds: float, read: float | None, request: httpx.Request) -> None:
        self._content = content
        self._seconds = seconds
        self._read = read
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for place in range(len(self._content)):
            if self._read is not None and self._seconds > self._read:
                await asyncio.sleep(self._read)
                raise httpx.ReadTimeout("Timed out while reading the answer", request=self._request)
            await asyncio.sleep(self._seconds)
            yield self._content[place : place + 1]


def _asked(request: httpx.Request, content: bytes) -> Request:
    path = request.url.raw_path.decode("ascii").partition("?")[0]
    query: dict[str, str] = {}
    for name, value in request.url.params.multi_items():
        # The SDK sends a list as a repeated parameter, the API documents commas: both mean the same.
        query[name] = f"{query[name]},{value}" if name in query else value
    return Request(request.method, path, query, json.loads(content) if content else None)


def _json(status: int, body: Any) -> httpx.Response:
    return httpx.Response(
        status, headers={"content-type": "application/json"}, content=json.dumps(body).encode()
    )


async def _sleep(seconds: float | None) -> None:
    if seconds is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(seconds)
