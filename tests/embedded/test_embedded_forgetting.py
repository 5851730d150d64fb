"""What is forgotten is gone: from every answer, for good, and from the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from supermemory import AsyncSupermemory, NotFoundError

from tests.embedded.conversation import CALL, known, stored, transcript


async def id_of(sdk: AsyncSupermemory, text: str) -> str:
    (found,) = [
        memory.id for memory in (await sdk.list("anna", "memories")).memories if memory.memory == text
    ]
    return found


async def test_exact_ids_are_forgotten_and_only_those(sdk: AsyncSupermemory) -> None:
    """The answer names what went and what could not; nothing else is touched."""
    await sdk.add("anna", id="lk-1", content=transcript("I'm vegetarian", "I have a dog"), metadata=CALL)
    memory = await id_of(sdk, "The caller has a dog.")
    done = await sdk.memories.forget("anna", ids=[memory, memory, "nope", "aggregated_1"])
    assert (done.count, [match.memory for match in done.matches]) == (1, ["The caller has a dog."])
    assert [(error.id, error.error) for error in done.errors] == [
        ("nope", "Memory not found"),
        ("aggregated_1", "Memory not found"),
    ]
    assert await known(sdk) == {"The caller is vegetarian."}
    with pytest.raises(NotFoundError):
        await sdk.memories.get("anna", memory)


async def test_nobody_forgets_for_somebody_else(sdk: AsyncSupermemory) -> None:
    """An id from another namespace is unknown here, and stays where it is."""
    await sdk.add("anna", content="I have a dog")
    memory = await id_of(sdk, "The caller has a dog.")
    done = await sdk.memories.forget("bob", ids=[memory])
    assert (done.count, len(done.errors)) == (0, 1)
    assert await known(sdk) == {"The caller has a dog."}


async def test_a_preview_changes_nothing_and_forgets_what_it_showed(sdk: AsyncSupermemory) -> None:
    """A dry run selects; the same words without it forget exactly that."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I'm allergic to peanuts", "I have a dog"), metadata=CALL
    )
    preview = await sdk.memories.forget_matching("anna", query="my peanut allergy", dry_run=True)
    assert (preview.count, [match.memory for match in preview.matches]) == (
        1,
        ["The caller is allergic to peanuts."],
    )
    assert len(await known(sdk)) == 2
    done = await sdk.memories.forget_matching("anna", query="my peanut allergy", dry_run=False)
    assert [match.id for match in done.matches] == [match.id for match in preview.matches]
    assert await known(sdk) == {"The caller has a dog."}


async def test_words_that_match_nothing_forget_nothing(sdk: AsyncSupermemory) -> None:
    """Neither a stranger's words nor an unknown person bring anything up."""
    await sdk.add("anna", content="I have a dog")
    for namespace, query in (("anna", "the lighthouse"), ("nobody", "my dog")):
        done = await sdk.memories.forget_matching(namespace, query=query, dry_run=False)
        assert (done.count, done.matches, done.errors) == (0, [], [])
    assert await known(sdk) == {"The caller has a dog."}


async def test_older_versions_go_with_the_memory_that_replaced_them(sdk: AsyncSupermemory) -> None:
    """Who asks to forget where they live does not mean: go back to where I lived before."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I live in Boston", "I moved to Chicago"), metadata=CALL
    )
    await sdk.memories.forget("anna", ids=[await id_of(sdk, "The caller moved to Chicago.")])
    assert (await sdk.list("anna", "memories")).memories == []
    assert (await sdk.search("anna", query="Boston or Chicago", threshold=0.0)).results == []


async def test_what_was_forgotten_is_not_learned_again_from_the_same_line(sdk: AsyncSupermemory) -> None:
    """Appending to the document, or rewriting another line of it, does not bring the memory back."""
    await sdk.add("anna", id="lk-1", content=transcript("I have a dog", "I'm 34"), metadata=CALL)
    await sdk.memories.forget("anna", ids=[await id_of(sdk, "The caller has a dog.")])
    await sdk.add("anna", id="lk-1", content=transcript("I like tea", start=3), metadata=CALL)
    await sdk.documents.update("anna", "lk-1", content=transcript("I have a dog", "I'm 35", "I like tea"))
    assert await known(sdk) == {"The caller is 35.", "The caller likes tea."}


async def test_what_is_said_again_later_is_known_again(sdk: AsyncSupermemory) -> None:
    """Forgetting is about what was said then; it does not gag the caller."""
    await sdk.add("anna", id="lk-1", content=transcript("I have a dog"), metadata=CALL)
    await sdk.memories.forget("anna", ids=[await id_of(sdk, "The caller has a dog.")])
    await sdk.add("anna", id="lk-2", content=transcript("I have a dog"), metadata=CALL)
    assert await known(sdk) == {"The caller has a dog."}


async def test_a_rewritten_transcript_leaves_no_trace_of_the_line(sdk: AsyncSupermemory) -> None:
    """Forgetting the memory and rewriting the line: no answer of any kind holds it afterwards."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I'm allergic to peanuts", "I have a dog"), metadata=CALL
    )
    await sdk.memories.forget("anna", ids=[await id_of(sdk, "The caller is allergic to peanuts.")])
    rest = transcript("[the caller asked to forget something]", "I have a dog")
    await sdk.documents.update("anna", "lk-1", content=rest)
    assert (await sdk.search("anna", query="peanuts allergic", threshold=0.0)).results == []
    assert (await sdk.documents.get("anna", "lk-1")).content == rest
    chunks = (await sdk.list("anna", "chunks")).chunks
    assert not [chunk for chunk in chunks if "peanut" in chunk.content]
    assert await known(sdk) == {"The caller has a dog."}


@pytest.mark.parametrize("how", ["memory", "document", "rewrite", "namespace"])
async def test_forgotten_words_are_not_in_the_file(how: str, sdk: AsyncSupermemory, path: Path) -> None:
    """Not in free pages, not in the search index, not in the write-ahead log."""
    if how == "memory":
        # The words that only the memory has; the document keeps its own.
        await sdk.add("anna", id="lk-1", content=transcript("I study ornithology"), metadata=CALL)
        secret = b"studies ornithology"
        await sdk.memories.forget("anna", ids=[await id_of(sdk, "The caller studies ornithology.")])
    else:
        await sdk.add(
            "anna", id="lk-1", content=transcript("My PIN is xyloquartz", "I have a dog"), metadata=CALL
        )
        secret = b"xyloquartz"
        assert secret in stored(path.parent)
        if how == "document":
            await sdk.documents.delete("anna", ids=["lk-1"])
        elif how == "rewrite":
            await sdk.documents.update("anna", "lk-1", content=transcript("Hm.", "I have a dog"))
        else:
            await sdk.namespaces.delete("anna")
    assert secret not in stored(path.parent)
