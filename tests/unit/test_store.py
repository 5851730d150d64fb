"""The memory service's answers, good and bad, through the real SDK over a scripted transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from supermemory import AsyncSupermemory

from memory.errors import MemoryConfigurationError, MemoryStoreError
from memory.store import MemoryStore, make_client

Handler = Callable[[httpx.Request], httpx.Response]


def store(handler: Handler) -> MemoryStore:
    http = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    return MemoryStore(AsyncSupermemory(api_key="sm_test", base_url="http://memory.test", http_client=http))


def answers(body: Any, status: int = 200, **headers: str) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        if isinstance(body, str):
            return httpx.Response(status, text=body, headers=headers)
        return httpx.Response(status, json=body, headers=headers)

    return handler


async def search(memory: MemoryStore) -> list[Any]:
    return await memory.search("alice", "where do I live", limit=10, threshold=0.1)


@pytest.mark.parametrize(
    "body",
    [
        {"profile": None},
        {},
        {"profile": {"static": None, "dynamic": None}},
        {"profile": {"static": [], "dynamic": [], "buckets": {}}},
        {"profile": {"static": [{"id": "a", "memory": None}], "dynamic": [{"id": "b", "memory": ""}]}},
    ],
)
async def test_profile_without_facts_is_an_empty_one(body: Any) -> None:
    """A brand-new caller, in every spelling that a service may choose."""
    assert await store(answers(body)).profile("alice") == []


@pytest.mark.parametrize("body", [{"results": None}, {"results": []}, {}])
async def test_search_without_results_is_empty(body: Any) -> None:
    """No hit is no failure."""
    assert await search(store(answers(body))) == []


async def test_hits_are_normalised() -> None:
    """Old versions go, inferences are marked, passages are told from memories, syntheses have no id."""
    results = [
        {
            "id": "1",
            "memory": "The caller lives in Boston",
            "similarity": 0.8,
            "isLatest": True,
            "isInference": True,
        },
        {"id": "2", "memory": "The caller lives in Rome", "similarity": 0.9, "isLatest": False},
        {"id": "3", "memory": None, "chunk": "passage", "similarity": 0.7},
        {"id": "aggregated_4", "memory": "A synthesis", "similarity": 0.6},
        {"id": "5", "memory": None, "chunk": None, "similarity": 0.5},
    ]
    hits = await search(store(answers({"results": results})))
    assert [(hit.fact.id, hit.fact.text, hit.fact.inferred, hit.chunk) for hit in hits] == [
        ("1", "The caller lives in Boston", True, False),
        ("", "passage", False, True),
        ("", "A synthesis", False, False),
    ]


@pytest.mark.parametrize(
    ("handler", "cause", "advice"),
    [
        (answers({"error": "x"}, 400), "invalid", "refused the request as invalid. (HTTP 400)"),
        (answers({"error": "x"}, 401), "unauthorized", "Check SUPERMEMORY_API_KEY"),
        (answers({"error": "x"}, 402), "payment", "Top it up"),
        (answers({"error": "x"}, 403), "forbidden", "Check what the key is scoped to"),
        (answers({"error": "x"}, 404), "not_found", "Upgrade a self-hosted server"),
        (answers({"error": "x"}, 409), "conflict", "busy with the same memory"),
        (answers({"error": "x"}, 422), "invalid", "refused the request as invalid. (HTTP 422)"),
        (answers({"error": "x"}, 429, **{"Retry-After": "30"}), "rate_limited", "Slow down"),
        (answers({"error": "x"}, 500), "server", "a problem of its own. (HTTP 500)"),
        (answers("<html>Bad gateway</html>", 502), "server", "a problem of its own. (HTTP 502)"),
        (answers("<html>Welcome</html>", 200), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers('{"profile": {"sta', 200), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers("", 204), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers([], 200), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers({"profile": {"static": ["a", "b"]}}), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers({"profile": {"static": [None]}}), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (answers("", 302, Location="https://elsewhere.test/"), "redirected", "Set SUPERMEMORY_BASE_URL"),
    ],
)
async def test_every_bad_answer_is_a_cause_with_advice(handler: Handler, cause: str, advice: str) -> None:
    """Each says what to do, and none holds what was sent or received."""
    with pytest.raises(MemoryStoreError) as error:
        await store(handler).profile("alice")
    assert error.value.cause == cause
    assert error.value.__cause__ is None
    assert "<html>" not in str(error.value)
    assert advice in str(error.value)
    if cause == "rate_limited":
        assert error.value.retry_after == 30


@pytest.mark.parametrize(
    ("fault", "cause", "advice"),
    [
        (httpx.ConnectError("refused"), "network", "Check the network and SUPERMEMORY_BASE_URL"),
        (httpx.ConnectTimeout("slow"), "timeout", "did not answer in time"),
        (httpx.ReadTimeout("slow"), "timeout", "did not answer in time"),
        (httpx.ReadError("reset"), "network", "Check the network and SUPERMEMORY_BASE_URL"),
        (httpx.RemoteProtocolError("closed"), "network", "Check the network and SUPERMEMORY_BASE_URL"),
        (OSError("no route"), "network", "Check the network and SUPERMEMORY_BASE_URL"),
        (RuntimeError("Event loop is closed"), "client", "belongs to another event loop"),
        (httpx.DecodingError("not gzip"), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (ExceptionGroup("connect", [OverflowError("port")]), "malformed", "Check SUPERMEMORY_BASE_URL"),
        (UnicodeEncodeError("ascii", "é", 0, 1, "no"), "client", "The Supermemory client is"),
    ],
)
async def test_every_transport_fault_is_a_cause_with_advice(
    fault: Exception, cause: str, advice: str
) -> None:
    """DNS, refusal, reset, black hole, a client of another loop."""

    def handler(request: httpx.Request) -> httpx.Response:
        raise fault

    with pytest.raises(MemoryStoreError) as error:
        await store(handler).profile("alice")
    assert error.value.cause == cause
    assert advice in str(error.value)


async def test_answer_that_never_comes_ends_at_the_deadline() -> None:
    """httpx's own timeout is per read and would be outlived by a trickle."""

    class BlackHole(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await asyncio.Event().wait()
            raise AssertionError

    client = AsyncSupermemory(
        api_key="k", base_url="http://memory.test", http_client=httpx.AsyncClient(transport=BlackHole())
    )
    with pytest.raises(MemoryStoreError) as error:
        await MemoryStore(client).profile("alice", within=0.01)
    assert error.value.cause == "timeout"


async def test_nothing_is_retried_by_the_sdk() -> None:
    """An append that was accepted and timed out would be stored twice; and a reply would wait."""
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(503, headers={"Retry-After": "30"})

    memory = store(handler)
    for work in (memory.profile("alice"), memory.append("alice", "lk-room", "x", {})):
        with pytest.raises(MemoryStoreError):
            await work
    assert len(asked) == 2


@pytest.mark.parametrize("tag", ["alice/../bob", "..", "", "a?b=c", "a" * 101, "alice\n", "名前"])
async def test_a_tag_that_could_reach_another_person_is_never_sent(tag: str) -> None:
    """The SDK puts the tag into the URL as it is."""

    def handler(request: httpx.Request) -> httpx.Response:
        raise AssertionError("a request was sent")

    memory = store(handler)
    calls: list[Callable[[], Any]] = [
        lambda: memory.profile(tag),
        lambda: memory.facts(tag),
        lambda: memory.export(tag),
        lambda: memory.erase(tag),
        lambda: memory.append(tag, "lk-room", "x", {}),
        lambda: memory.matching(tag, "x"),
        lambda: memory.forget(tag, ["m1"]),
        lambda: memory.remember(tag, "x", {}),
    ]
    for call in calls:
        with pytest.raises(MemoryConfigurationError):
            await call()


@pytest.mark.parametrize("document_id", ["../x", "a/b", "a?b", "", "x#y"])
async def test_a_document_id_that_could_leave_its_path_is_never_sent(document_id: str) -> None:
    """Ids come from pages too."""
    with pytest.raises(MemoryConfigurationError):
        await store(answers({})).document("alice", document_id)


async def test_status_failed_with_http_200_is_a_failure() -> None:
    """The service took the text and lost it."""
    with pytest.raises(MemoryStoreError):
        await store(answers({"id": "x", "status": "failed"})).append("alice", "lk-room", "x", {})


async def test_listing_ends_on_a_server_that_ignores_the_page() -> None:
    """An endless list would hang a page for ever."""
    item = {"id": "m", "memory": "x", "isLatest": True, "system": {}}
    page = {"memories": [{**item, "id": f"m{n}"} for n in range(100)], "documents": [], "chunks": []}
    facts = await store(answers(page)).facts("alice")
    assert len(facts) == 100


async def test_every_request_goes_to_the_configured_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A self-hosted memory must not leak to the cloud, not even by a redirect."""
    hosts: list[str] = []

    class Watching(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            hosts.append(str(request.url))
            return httpx.Response(307, headers={"Location": "https://api.supermemory.ai/"})

    for address in ("http://127.0.0.1:6767", "http://127.0.0.1:6767/"):
        client = make_client("sm_test", address)
        monkeypatch.setattr(client._owned, "_transport", Watching())
        with pytest.raises(MemoryStoreError, match="redirects"):
            await MemoryStore(client).profile("alice")
        await client.close()
    assert hosts == ["http://127.0.0.1:6767/ns/alice/profile"] * 2


@pytest.mark.parametrize("key", ["", "  \n", None])
def test_missing_key_says_what_to_set(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key and client nothing can work."""
    monkeypatch.delenv("SUPERMEMORY_API_KEY", raising=False)
    with pytest.raises(MemoryConfigurationError, match="SUPERMEMORY_API_KEY"):
        make_client(key)


@pytest.mark.parametrize("key", ['"sm_x"', "sm x", "sm_é", "sm_x\x00", "'sm_x"])
def test_key_that_no_header_can_carry_is_refused(key: str) -> None:
    """It would fail deep inside a request, in the middle of a call."""
    with pytest.raises(MemoryConfigurationError, match="SUPERMEMORY_API_KEY") as error:
        make_client(key)
    assert "sm" not in str(error.value).replace("Supermemory", "")


@pytest.mark.parametrize(
    "address",
    ["localhost:6767", "ftp://x", "https://", "not an address"] + ["http://[::1", "http://127.0.0.1:99999"],
)
def test_address_that_is_none_is_refused(address: str) -> None:
    """The message shows the form that works."""
    with pytest.raises(MemoryConfigurationError, match="SUPERMEMORY_BASE_URL"):
        make_client("sm_x", address)


async def test_white_space_round_settings_is_stripped() -> None:
    """A key copied with its line end works."""
    client = make_client(" sm_x\n", " http://127.0.0.1:6767 \n")
    assert client.api_key == "sm_x"
    await client.close()


async def test_supporting_context_fits_the_services_limit() -> None:
    """The service refuses more than 1500 characters."""
    sent: list[dict[str, Any]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"id": "x", "status": "queued"})

    await store(handler).append("alice", "lk-room", "x", {})
    assert 0 < len(sent[0]["supportingContext"]) <= 1500


@pytest.mark.parametrize(("status", "listed"), [("queued", True), ("done", False)])
async def test_remembered_document_counts_until_the_service_has_read_it(status: str, listed: bool) -> None:
    """What was promised to the caller is shown at once; later the memories say what still holds."""
    document = {"id": "lk-fact-1", "content": "The caller likes jazz", "metadata": {"kind": "remembered"}}
    page = {"memories": [], "chunks": [], "documents": [{**document, "system": {"status": status}}]}
    facts = await store(answers(page)).facts("alice")
    assert [fact.text for fact in facts] == (["The caller likes jazz"] if listed else [])
