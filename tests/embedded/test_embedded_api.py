"""The shape of answers and errors: what the SDK makes of them is what it makes of the real service's."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from supermemory import AsyncSupermemory, BadRequestError, NotFoundError

from memory.embedded import EmbeddedTransport
from tests.embedded.conversation import CALL, transcript


async def raw(sdk: AsyncSupermemory, method: str, path: str, **kwargs: Any) -> httpx.Response:
    return await sdk._http_client.request(method, f"http://memory.embedded{path}", **kwargs)


async def test_a_person_nobody_knows_has_an_empty_memory(sdk: AsyncSupermemory) -> None:
    """Reading is no error and makes nothing; settings of an unknown namespace are not found."""
    profile = (await sdk.profile("anna", buckets=["work"])).profile
    assert (profile.static, profile.dynamic, profile.buckets) == ([], [], {"work": []})
    assert (await sdk.search("anna", query="dog")).results == []
    listed = await sdk.list("anna", "memories")
    assert (listed.memories, listed.pagination.total_items, listed.pagination.total_pages) == ([], 0, 0)
    for request in (
        sdk.namespaces.get("anna"),
        sdk.namespaces.delete("anna"),
        sdk.documents.get("anna", "lk-1"),
    ):
        with pytest.raises(NotFoundError):
            await request
    assert (await sdk.namespaces.list()).namespaces == []


@pytest.mark.parametrize("name", ["a b", "anna\n", "a/b", "a?b", "名前", "a" * 101, "a.b", "%2e%2e"])
async def test_a_namespace_of_other_characters_is_refused(name: str, sdk: AsyncSupermemory) -> None:
    """Whole names are checked, as the service documents them; none of them reaches anybody's memory."""
    await sdk.add("a", content="I have a dog")
    quoted = quote(name, safe="%")
    answer = await raw(sdk, "POST", f"/ns/{quoted}/profile", json={})
    assert answer.status_code == 400
    assert answer.json()["error"][0]["path"] == ["namespace"]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda sdk: sdk.add("anna", content=""), "content"),
        (lambda sdk: sdk.add("anna", content="x", id=""), "id"),
        (lambda sdk: sdk.add("anna", content="x", id="i" * 256), "id"),
        (lambda sdk: sdk.add("anna", content="x", supporting_context="c" * 1501), "supportingContext"),
        (lambda sdk: sdk.add("anna", content="x", metadata={"a": {"b": 1}}), "metadata"),
        (lambda sdk: sdk.add("anna", content="x", date="yesterday"), "date"),
        (lambda sdk: sdk.add("anna", content="x", dreaming="later"), "dreaming"),
        (lambda sdk: sdk.search("anna", query=""), "query"),
        (lambda sdk: sdk.search("anna", query="x", limit=0), "limit"),
        (lambda sdk: sdk.search("anna", query="x", limit=101), "limit"),
        (lambda sdk: sdk.search("anna", query="x", threshold=1.5), "threshold"),
        (lambda sdk: sdk.search("anna", query="x", search_mode="documents"), "searchMode"),
        (lambda sdk: sdk.list("anna", "facts"), "type"),
        (lambda sdk: sdk.list("anna", "memories", page=0), "page"),
        (lambda sdk: sdk.list("anna", "memories", limit=101), "limit"),
        (lambda sdk: sdk.list("anna", "memories", sort="position"), "sort"),
        (lambda sdk: sdk.documents.delete("anna", ids=[]), "ids"),
        (lambda sdk: sdk.memories.forget("anna", ids=["x"] * 501), "ids"),
        (lambda sdk: sdk.documents.batch_add("anna", documents=[]), "documents"),
    ],
)
async def test_what_the_service_refuses_is_refused(call: Any, field: str, sdk: AsyncSupermemory) -> None:
    """A bad value is a 400 that names its field, in the service's shape for validation errors."""
    with pytest.raises(BadRequestError) as caught:
        await call(sdk)
    body: Any = caught.value.body
    assert body["success"] is False
    assert body["error"][0]["path"][0] == field


async def test_what_would_change_the_result_is_refused_and_the_rest_is_taken(sdk: AsyncSupermemory) -> None:
    """An ignored filter would show what it should hide; an ignored reranker only ranks differently."""
    with pytest.raises(BadRequestError, match="does not support filter"):
        await sdk.search("anna", query="x", filter={"field": "kind", "operator": "eq", "value": "call"})
    with pytest.raises(BadRequestError, match="does not support group"):
        await sdk.add("anna", content="x", group={"team": "one"})
    await sdk.add("anna", content="I have a dog", dreaming="instant", supporting_context="A call.")
    assert (await sdk.search("anna", query="dog", rerank="order", rewrite_query=True)).results


async def test_broken_requests_are_answered(sdk: AsyncSupermemory) -> None:
    """No body and no path makes the transport raise."""
    assert (await raw(sdk, "POST", "/ns/anna/search", content=b'{"query": ')).status_code == 400
    assert (await raw(sdk, "POST", "/ns/anna/search", content=b"[]")).status_code == 400
    assert (await raw(sdk, "POST", "/ns/anna/search", content=b"\xff\xfe")).status_code == 400
    surrogate = b'{"content": "I have a dog \\ud800", "id": "x"}'
    assert (await raw(sdk, "POST", "/ns/anna/document", content=surrogate)).status_code == 200
    for path in ("/", "/ns", "/ns//profile", "/v3/documents", "/ns/anna/document/file", "/ns/anna/search/x"):
        assert (await raw(sdk, "POST", path, json={})).status_code in (400, 404), path


async def test_lists_come_in_pages(sdk: AsyncSupermemory) -> None:
    """Pages are numbered from 1, do not overlap and say how many there are; the other lists are empty."""
    for number in range(5):
        await sdk.add("anna", id=f"doc-{number}", content=f"Note {number}")
    seen = []
    for page in (1, 2, 3, 4):
        listed = await sdk.list(
            "anna", "documents", page=page, limit=2, order="asc", include={"content": True}
        )
        seen += [(document.id, document.content) for document in listed.documents]
        assert (listed.pagination.total_items, listed.pagination.total_pages) == (5, 3)
        assert (listed.chunks, listed.memories) == ([], [])
    assert seen == [(f"doc-{number}", f"Note {number}") for number in range(5)]
    assert [d.id for d in (await sdk.list("anna", "documents", limit=2)).documents] == ["doc-4", "doc-3"]
    bare = (await sdk.list("anna", "documents", include={"memory_count": True})).documents[0]
    assert (bare.content, bare.system.memory_count) == (None, 0)


async def test_chunks_are_listed_in_the_order_of_their_document(sdk: AsyncSupermemory) -> None:
    """A chunk names the document that it belongs to."""
    await sdk.add("anna", id="lk-1", content=transcript("One.", "Two.", "Three."), metadata=CALL)
    chunks = (await sdk.list("anna", "chunks", sort="position", order="asc")).chunks
    assert [chunk.content[-5:].strip(" :") for chunk in chunks] == ["One.", "Two.", "hree."]
    assert {chunk.document_id for chunk in chunks} == {"lk-1"}


async def test_a_namespace_can_be_read_set_listed_and_deleted(sdk: AsyncSupermemory) -> None:
    """Deleting says how much went, and leaves other namespaces alone."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I live in Boston", "I moved to Chicago"), metadata=CALL
    )
    await sdk.add("bob", content="I have a dog")
    assert (await sdk.namespaces.get("anna")).supporting_context is None
    changed = await sdk.namespaces.update("anna", supporting_context="Calls to a hotel.")
    assert changed.supporting_context == "Calls to a hotel."
    assert (await sdk.namespaces.update("anna", supporting_context=None)).supporting_context is None
    (found,) = (await sdk.namespaces.list(q="ANN")).namespaces
    assert (found.namespace, found.document_count, found.memory_count) == ("anna", 1, 1)
    deleted: Any = await sdk.namespaces.delete("anna")
    assert (deleted.status, deleted.deleted_documents_count, deleted.deleted_memories_count) == (
        "deleted",
        1,
        2,
    )
    assert [namespace.namespace for namespace in (await sdk.namespaces.list()).namespaces] == ["bob"]


async def test_a_deleted_namespace_can_be_used_again(sdk: AsyncSupermemory) -> None:
    """Whoever was erased and calls again starts from nothing."""
    await sdk.add("anna", id="lk-1", content="I have a dog")
    await sdk.namespaces.delete("anna")
    await sdk.add("anna", id="lk-1", content="I have a cat")
    assert [m.memory for m in (await sdk.list("anna", "memories")).memories] == ["The caller has a cat."]


async def test_the_transport_takes_a_plain_httpx_client(path: Any) -> None:
    """Nothing depends on the SDK: any client of httpx can ask."""
    async with httpx.AsyncClient(transport=EmbeddedTransport(path, vectors=False)) as http:
        answer = await http.post("http://anything/ns/anna/profile", json={})
    assert answer.json() == {"profile": {"static": [], "dynamic": [], "buckets": {}}}
