"""The switches that make the embedded memory fail, each seen through the real SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from supermemory import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncSupermemory,
    AuthenticationError,
    RateLimitError,
    UnprocessableEntityError,
)

from memory.embedded import Faults, client
from tests.embedded.conversation import CALL, MakeClient, known, transcript


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def failing(make_client: MakeClient, faults: Faults) -> AsyncSupermemory:
    return make_client(faults)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (401, AuthenticationError),
        (402, APIStatusError),
        (403, APIStatusError),
        (404, APIStatusError),
        (409, APIStatusError),
        (422, UnprocessableEntityError),
        (429, RateLimitError),
        (500, APIStatusError),
        (503, APIStatusError),
    ],
)
async def test_a_status_is_answered_and_nothing_done(
    code: int, error: type[APIStatusError], failing: AsyncSupermemory, faults: Faults
) -> None:
    """The SDK raises what it raises for the service's own answer, headers included."""
    faults.status(code, headers={"Retry-After": "30"}, on="add", times=1)
    with pytest.raises(error) as caught:
        await failing.add("anna", content="I have a dog")
    assert (caught.value.status_code, caught.value.body) == (code, {"error": f"provoked {code}"})
    assert {name.lower(): value for name, value in (caught.value.headers or {}).items()}[
        "retry-after"
    ] == "30"
    assert await known(failing) == set()
    await failing.add("anna", content="I have a dog")
    assert await known(failing) == {"The caller has a dog."}


async def test_a_fault_acts_where_and_as_often_as_it_says(failing: AsyncSupermemory, faults: Faults) -> None:
    """Other endpoints work, and the chosen one does again after so many requests or `clear`."""
    faults.status(503, on="search", times=2)
    for _ in range(2):
        with pytest.raises(APIStatusError):
            await failing.search("anna", query="dog")
        await failing.profile("anna")
    await failing.search("anna", query="dog")
    faults.status(500)
    with pytest.raises(APIStatusError):
        await failing.profile("anna")
    faults.clear()
    await failing.profile("anna")


@pytest.mark.parametrize("how", ["html", "truncated", "content_type", "empty", "no_content"])
async def test_what_is_no_json_is_a_status_error(how: Any, failing: AsyncSupermemory, faults: Faults) -> None:
    """HTML from a proxy, a cut answer, another content type, no content: the SDK calls all of them errors."""
    faults.malformed(how)
    with pytest.raises(APIStatusError):
        await failing.profile("anna")


async def test_json_of_another_shape_reaches_the_caller(failing: AsyncSupermemory, faults: Faults) -> None:
    """The SDK does not check its models: nulls, strings for facts and half a hit come through."""
    faults.malformed("null_lists")
    nothing: Any = await failing.profile("anna")
    assert nothing.profile is None
    assert (await failing.search("anna", query="dog")).results is None
    faults.clear()
    faults.malformed("strings", on="search")
    with pytest.raises(TypeError):
        await failing.search("anna", query="dog")
    faults.clear()
    faults.malformed("chunk_only", on="search")
    (hit,) = (await failing.search("anna", query="dog")).results
    assert (hit.memory, hit.chunk) == (None, "Caller: I moved to Boston")


async def test_an_answer_of_ones_own(failing: AsyncSupermemory, faults: Faults) -> None:
    """Any body can stand in for the real one."""
    faults.answer({"profile": {"static": [{"id": "aggregated_1", "memory": "A synthesis."}]}}, on="profile")
    profile = (await failing.profile("anna")).profile
    assert [(fact.id, fact.memory) for fact in profile.static] == [("aggregated_1", "A synthesis.")]


async def test_a_connection_can_be_refused_reset_or_never_made(
    make_client: MakeClient, faults: Faults
) -> None:
    """Nothing is stored; the client sees the error of a network."""
    failing = make_client(faults, timeout=0.05)
    for switch, error in (
        (faults.refuse, APIConnectionError),
        (faults.reset, APIConnectionError),
        (faults.black_hole, APITimeoutError),
    ):
        switch(on="add", times=1)
        with pytest.raises(error):
            await failing.add("anna", content="I have a dog")
    assert await known(make_client()) == set()


async def test_a_dropped_connection_loses_the_answer_and_not_the_write(
    failing: AsyncSupermemory, faults: Faults
) -> None:
    """What a client cannot know: it was stored, and nobody said so."""
    faults.drop(on="add", times=1)
    with pytest.raises(APIConnectionError):
        await failing.add("anna", content="I have a dog")
    assert await known(failing) == {"The caller has a dog."}


async def test_a_slow_service_runs_into_the_clients_timeout(make_client: MakeClient, faults: Faults) -> None:
    """Given up while it waited, nothing happened; given up after the work was done, it did."""
    failing = make_client(faults, timeout=0.3)
    patient = make_client()
    faults.delay(60.0, on="add", times=1)
    with pytest.raises(APITimeoutError):
        await failing.add("anna", content="I have a dog")
    assert await known(patient) == set()
    faults.late(60.0, on="add", times=1)
    with pytest.raises(APITimeoutError):
        await failing.add("anna", content="I have a dog")
    assert await known(patient) == {"The caller has a dog."}


async def test_a_delay_within_the_timeout_only_delays(failing: AsyncSupermemory, faults: Faults) -> None:
    """Two delays add up, and then the request is answered; another endpoint does not wait."""
    faults.delay(0.05, on="search", times=1)
    faults.delay(0.05, on="search", times=1)
    search = asyncio.ensure_future(failing.search("anna", query="dog"))
    await failing.profile("anna")
    assert not search.done()
    assert (await search).results == []


async def test_a_trickle_outlives_a_timeout_per_read(make_client: MakeClient, faults: Faults) -> None:
    """Each byte comes in time, the whole answer does not: only a deadline of one's own ends it."""
    failing = make_client(faults, timeout=0.5)
    faults.trickle(0.02, on="profile")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):
            await failing.profile("anna")
    faults.clear()
    faults.trickle(0.0, on="profile", times=1)
    assert (await failing.profile("anna")).profile.static == []
    faults.trickle(5.0, on="profile", times=1)
    with pytest.raises(APITimeoutError):
        await failing.profile("anna")


async def test_a_document_can_fail_with_http_200(failing: AsyncSupermemory, faults: Faults) -> None:
    """An update that fails to be processed leaves what was known before."""
    await failing.add("anna", id="lk-1", content=transcript("I have a dog"), metadata=CALL)
    faults.failed(on="update", times=1)
    updated = await failing.documents.update("anna", "lk-1", content=transcript("I have a cat"))
    assert updated.status == "failed"
    assert await known(failing) == {"The caller has a dog."}


async def test_the_sdks_own_retries_are_seen_by_the_faults(path: Any, faults: Faults) -> None:
    """The client that ships retries as the SDK does by default; a POST that was carried out is repeated."""
    shipped = client(path, faults=faults)
    faults.drop(on="add", times=1)
    await shipped.add("anna", id="lk-1", content=transcript("I have a dog"), metadata=CALL)
    assert len(faults.seen("add")) == 2
    assert (await shipped.documents.get("anna", "lk-1")).content == transcript("I have a dog") * 2
    assert await known(shipped) == {"The caller has a dog."}
    await shipped.close()


async def test_every_request_is_recorded(failing: AsyncSupermemory, faults: Faults) -> None:
    """Method, path, body and headers, by endpoint; failed requests too."""
    faults.refuse(on="search", times=1)
    with pytest.raises(APIConnectionError):
        await failing.search("anna", query="dog", limit=3)
    await failing.documents.delete("anna", ids=["x"])
    (search,) = faults.seen("search")
    assert (search.method, search.path, search.body) == (
        "POST",
        "/ns/anna/search",
        {"query": "dog", "limit": 3},
    )
    assert search.headers["authorization"] == "Bearer test"
    assert [seen.endpoint for seen in faults.requests] == ["search", "delete"]


def test_a_mistyped_switch_says_what_there_is(faults: Faults) -> None:
    """A fault that would never act is an error at once."""
    with pytest.raises(ValueError, match="Unknown endpoint 'serach': use one of add, "):
        faults.status(500, on="serach")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ValueError, match="Unknown kind of malformed answer 'xml': use one of html, "):
        faults.malformed("xml")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ValueError, match="times=0 must be at least 1"):
        faults.drop(times=0)
