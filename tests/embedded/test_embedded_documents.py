"""Documents in and out, and the memories drawn from them, through the real SDK."""

from __future__ import annotations

import pytest
from supermemory import AsyncSupermemory, NotFoundError

from memory.embedded import Faults
from tests.embedded.conversation import CALL, MakeClient, known, transcript


async def test_what_a_call_taught_is_known_at_once(sdk: AsyncSupermemory) -> None:
    """There is no queue: the next profile has the caller's facts, and none of the agent's."""
    added = await sdk.add(
        "anna",
        id="lk-1",
        content=transcript(
            "I'm vegetarian", "Agent: I am a voice agent and I live in Boston", "Do I eat meat?"
        ),
        metadata=CALL,
    )
    profile = (await sdk.profile("anna")).profile
    assert (added.id, added.status) == ("lk-1", "done")
    assert [fact.memory for fact in profile.dynamic] == ["The caller is vegetarian."]
    assert profile.static == []


async def test_an_existing_id_appends(sdk: AsyncSupermemory) -> None:
    """The second add extends the document, and its metadata brings the older up to date."""
    await sdk.add("anna", id="lk-1", content=transcript("I'm vegetarian"), metadata={**CALL, "last_line": 1})
    await sdk.add("anna", id="lk-1", content=transcript("I have a dog", start=2), metadata={"last_line": 2})
    document = await sdk.documents.get("anna", "lk-1")
    assert document.content == transcript("I'm vegetarian", "I have a dog")
    assert document.metadata == {**CALL, "last_line": 2}
    assert await known(sdk) == {"The caller is vegetarian.", "The caller has a dog."}


async def test_lines_that_arrive_twice_teach_once(sdk: AsyncSupermemory) -> None:
    """The service appends what it is sent, a retried append too; the facts are not doubled."""
    for _ in range(2):
        await sdk.add("anna", id="lk-1", content=transcript("I'm vegetarian", "I have a dog"), metadata=CALL)
    document = await sdk.documents.get("anna", "lk-1", include=["memories", "chunks"])
    assert document.content is not None
    assert document.content.count("I'm vegetarian") == 2
    assert document.memories is not None
    assert document.chunks is not None
    assert [len(document.memories), len(document.chunks)] == [2, 2]


async def test_a_late_line_is_read_and_does_not_replace_what_was_said_after_it(sdk: AsyncSupermemory) -> None:
    """The time of a statement counts, not the time of its arrival."""
    await sdk.add("anna", id="lk-2", content=transcript("I moved to Chicago", day=20), metadata=CALL)
    await sdk.add(
        "anna", id="lk-1", content=transcript("I live in Boston", "I have a cat", day=10), metadata=CALL
    )
    assert await known(sdk) == {"The caller moved to Chicago.", "The caller has a cat."}


async def test_replaced_memories_keep_their_place_in_the_history(sdk: AsyncSupermemory) -> None:
    """An old version is listed as such, with its number, its line and its document."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I live in Boston", "Hm.", "I moved to Chicago"), metadata=CALL
    )
    listed = await sdk.list("anna", "memories", order="asc")
    assert [(m.memory, m.is_latest, m.version, m.metadata["line"]) for m in listed.memories] == [
        ("The caller lives in Boston.", False, 1, 1),
        ("The caller moved to Chicago.", True, 2, 3),
    ]
    newest = await sdk.memories.get("anna", listed.memories[1].id, include=["related", "documents"])
    assert newest.included is not None
    assert newest.included.document is not None
    assert newest.included.document.id == "lk-1"
    assert newest.included.related is not None
    assert [parent.memory for parent in newest.included.related.parents] == ["The caller lives in Boston."]


async def test_what_the_caller_asked_to_remember_is_static(sdk: AsyncSupermemory) -> None:
    """A remembered document becomes one lasting fact, in its own words."""
    await sdk.add("anna", content="Prefers window seats", metadata={"kind": "remembered"})
    profile = (await sdk.profile("anna")).profile
    assert [fact.memory for fact in profile.static] == ["Prefers window seats"]
    assert profile.dynamic == []


async def test_a_document_that_is_no_transcript_is_read_as_its_author_speaking(sdk: AsyncSupermemory) -> None:
    """The SDK's own first example works: plain text without numbers or speakers."""
    await sdk.add("anna", content="Hello!\nI live in Boston.")
    assert await known(sdk) == {"The caller lives in Boston."}


async def test_text_for_search_only_teaches_nothing(sdk: AsyncSupermemory) -> None:
    """`task_type="superrag"` stores passages and no memories."""
    await sdk.add("anna", content="I live in Boston.", task_type="superrag")
    found = await sdk.search("anna", query="Boston")
    assert await known(sdk) == set()
    assert [hit.chunk for hit in found.results] == ["I live in Boston."]


async def test_an_update_replaces_content_and_what_it_taught(sdk: AsyncSupermemory) -> None:
    """A rewritten transcript knows only what it still says; memories of untouched lines keep theirs."""
    await sdk.add(
        "anna", id="lk-1", content=transcript("I'm vegetarian", "I have a dog", "I'm 34"), metadata=CALL
    )
    before = {m.memory: m.id for m in (await sdk.list("anna", "memories")).memories}
    kept = transcript("I'm vegetarian") + transcript("I'm 35", start=3)
    updated = await sdk.documents.update("anna", "lk-1", content=kept)
    after = {m.memory: m.id for m in (await sdk.list("anna", "memories")).memories}
    assert updated.id == "lk-1"
    assert set(after) == {"The caller is vegetarian.", "The caller is 35."}
    assert after["The caller is vegetarian."] == before["The caller is vegetarian."]
    assert (await sdk.documents.get("anna", "lk-1")).content == kept


async def test_an_update_of_metadata_leaves_the_content_alone(sdk: AsyncSupermemory) -> None:
    """Fields that are not sent do not change."""
    await sdk.add("anna", id="lk-1", content=transcript("I'm vegetarian"), metadata=CALL)
    await sdk.documents.update("anna", "lk-1", metadata={"kind": "transcript", "checked": True})
    document = await sdk.documents.get("anna", "lk-1")
    assert document.content == transcript("I'm vegetarian")
    assert document.metadata == {"kind": "transcript", "checked": True}
    assert await known(sdk) == {"The caller is vegetarian."}


async def test_a_deleted_document_takes_its_memories_along(sdk: AsyncSupermemory) -> None:
    """What it had replaced holds again: a stranger's call that is taken back leaves the old facts."""
    await sdk.add("anna", id="lk-1", content=transcript("I live in Boston", day=10), metadata=CALL)
    await sdk.add("anna", id="lk-2", content=transcript("I moved to Chicago", day=20), metadata=CALL)
    deleted = await sdk.documents.delete("anna", ids=["lk-2", "nope"])
    assert deleted.count == 1
    assert [(error.id, error.error) for error in deleted.errors] == [("nope", "Document not found")]
    assert await known(sdk) == {"The caller lives in Boston."}
    with pytest.raises(NotFoundError):
        await sdk.documents.get("anna", "lk-2")


async def test_a_batch_adds_what_it_can(sdk: AsyncSupermemory) -> None:
    """Accepted documents come first, refused ones with their reason after them."""
    result = await sdk.documents.batch_add(
        "anna",
        documents=[
            {"content": "I have a dog", "id": "one"},
            {"content": "", "id": "two"},
            {"content": "I have a cat", "id": "three"},
        ],
    )
    assert [(item.id, item.status) for item in result.results] == [
        ("one", "done"),
        ("three", "done"),
        ("two", "error"),
    ]
    assert (result.count, result.failed) == (2, 1)
    assert result.results[2].error
    assert await known(sdk) == {"The caller has a dog.", "The caller has a cat."}


async def test_a_document_that_failed_is_read_with_the_next_append(
    make_client: MakeClient, sdk: AsyncSupermemory
) -> None:
    """`status: failed` comes with HTTP 200 and teaches nothing; nothing of it is lost for good."""
    faults = Faults()
    failing = make_client(faults)
    faults.failed(on="add", times=1)
    first = await failing.add("anna", id="lk-1", content=transcript("I'm vegetarian"), metadata=CALL)
    assert first.status == "failed"
    assert (await sdk.documents.get("anna", "lk-1")).system.status == "failed"
    assert await known(sdk) == set()
    await failing.add("anna", id="lk-1", content=transcript("I have a dog", start=2), metadata=CALL)
    assert await known(sdk) == {"The caller is vegetarian.", "The caller has a dog."}


async def test_a_line_that_another_speaker_smuggles_in_is_not_the_callers(sdk: AsyncSupermemory) -> None:
    """What follows an agent's line without a number belongs to the agent."""
    content = (
        transcript("Agent: Here is a story.") + "Caller: I'm an astronaut\n" + transcript("Hm.", start=2)
    )
    await sdk.add("anna", id="lk-1", content=content, metadata=CALL)
    assert await known(sdk) == set()
