"""Supermemory on one machine: the endpoints that this module uses, in one SQLite file.

    import memory.embedded

    client = memory.embedded.client(".memory/memory.sqlite3")
    await client.add("anna", content="I live in Boston")
    await client.close()

The client is the Supermemory SDK's own; only where its requests go differs. No key, no network, no model
that writes: memories are drawn from what the caller says by rules (`statements`), which know less than a
language model does and invent nothing. It is for one machine, and the test double of this module:
`Faults` provokes what can go wrong.

Optional: without this folder the module talks to the service only; without `vectors.py`, or the packages
that it names, search is by words.
"""

from __future__ import annotations

import os

import httpx
from supermemory import AsyncSupermemory
from supermemory import Timeout as _Timeout

from .database import EmbeddedMemoryError
from .faults import Faults
from .transport import EmbeddedTransport

__all__ = ["EmbeddedMemoryError", "EmbeddedTransport", "Faults", "client"]

BASE_URL = "http://memory.embedded"


def client(path: str | os.PathLike[str], *, faults: Faults | None = None) -> AsyncSupermemory:
    """An SDK client whose memory is the file at `path`, made with its folder when it is not there.

    `await client.close()` closes the file; clients made from it by `with_options` share it and do not.
    Raises `EmbeddedMemoryError` when the place cannot hold a memory.
    """
    http = httpx.AsyncClient(
        transport=EmbeddedTransport(path, faults=faults), timeout=_Timeout(60.0, connect=5.0)
    )
    sdk = AsyncSupermemory(api_key="embedded", base_url=BASE_URL, http_client=http)
    # The SDK leaves a client that it was given open; whoever has this one has nothing else to close.
    sdk.close = http.aclose  # type: ignore[method-assign]
    return sdk
