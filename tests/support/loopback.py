"""The embedded memory behind real HTTP on loopback, for what only a base URL can reach."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
from aiohttp import web

from memory.embedded import EmbeddedTransport


@dataclass
class Loopback:
    url: str
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, names in lower case; `host` says which address the client believed to talk to."""


@contextlib.asynccontextmanager
async def loopback(transport: EmbeddedTransport, prefix: str = "") -> AsyncIterator[Loopback]:
    """Serves `transport` until the block is left; closing the transport stays with the caller.

    A fault that breaks the connection breaks it here too. `prefix` is a path in front of every endpoint.
    """
    served = Loopback("")

    async def handle(request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        served.headers.append(headers)
        url = f"http://{request.host}{request.raw_path.removeprefix(prefix)}"
        try:
            answer = await transport.handle_async_request(
                httpx.Request(request.method, url, headers=headers, content=await request.read())
            )
        except httpx.TransportError:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        response = web.StreamResponse(status=answer.status_code, headers=dict(answer.headers))
        await response.prepare(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        async for part in answer.stream:
            await response.write(part)
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    # A client that gave up must not keep the server busy with its request.
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        served.url = f"http://{host}:{port}{prefix}"
        yield served
    finally:
        await runner.cleanup()
