"""The embedded memory behind a base URL, as a Supermemory server of one's own would be."""

from __future__ import annotations

from pathlib import Path

import pytest
from supermemory import APIConnectionError, APITimeoutError, AsyncSupermemory, NotFoundError

from memory.embedded import EmbeddedTransport, Faults
from tests.embedded.conversation import CALL, known, transcript
from tests.support.loopback import loopback


async def test_the_sdk_talks_to_it_over_http(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's base URL gets every request, with the key, and answers as the service does."""
    transport = EmbeddedTransport(path, vectors=False)
    async with loopback(transport, prefix="/memory") as served:
        monkeypatch.setenv("SUPERMEMORY_BASE_URL", served.url + "/")
        async with AsyncSupermemory(api_key="sm_test", max_retries=0) as sdk:
            await sdk.add("anna", id="lk-1", content=transcript("I have a dog"), metadata=CALL)
            assert await known(sdk) == {"The caller has a dog."}
            document = await sdk.documents.get("anna", "lk-1", include=["memories", "chunks"])
            assert (document.memories, document.chunks) != ([], [])
            with pytest.raises(NotFoundError):
                await sdk.documents.get("anna", "lk-2")
        assert len(served.headers) == 4
        assert {headers["authorization"] for headers in served.headers} == {"Bearer sm_test"}
        assert {headers["host"] for headers in served.headers} == {served.url.split("/")[2]}
    await transport.aclose()


async def test_faults_of_the_connection_are_real_there(path: Path) -> None:
    """A dropped connection is dropped by the server, and a delay runs into the timeout of a real socket."""
    faults = Faults()
    transport = EmbeddedTransport(path, faults=faults, vectors=False)
    async with loopback(transport) as served:
        sdk = AsyncSupermemory(api_key="x", base_url=served.url, max_retries=0, timeout=0.5)
        faults.drop(on="add", times=1)
        with pytest.raises(APIConnectionError):
            await sdk.add("anna", content="I have a dog")
        faults.delay(30.0, on="profile", times=1)
        with pytest.raises(APITimeoutError):
            await sdk.profile("anna")
        faults.trickle(0.0, on="profile", times=1)
        assert await known(sdk) == {"The caller has a dog."}
        await sdk.close()
    await transport.aclose()
