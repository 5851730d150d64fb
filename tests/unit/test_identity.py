"""Whose memory it is. A mistake here shows one person what another one said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from memory.identity import (
    MAX_TAG_LENGTH,
    container_tag_for,
    container_tag_from,
    container_tag_of,
    document_id_for,
    is_container_tag,
)

STANDARD, EGRESS, SIP, AGENT = 0, 2, 3, 4

HOSTILE = [
    "sip_+14155550100",
    "alice@example.com",
    "名前😀",
    "שלום",
    "a/b",
    "alice/../bob",
    "..",
    "a?b=c",
    "a#b",
    "x" * 300,
    "a b",
    "alice\n",
    " alice",
    "\ud800",
    "a%2Fb",
]


@dataclass
class Participant:
    """A participant as far as identity looks at it."""

    identity: str
    kind: int = STANDARD
    attributes: Any = field(default_factory=dict)


@pytest.mark.parametrize("identity", HOSTILE)
def test_hostile_identities_become_valid_tags_of_their_own(identity: str) -> None:
    """Nothing that could leave its URL segment, or be too long for it, is used as it is."""
    tag = container_tag_for(identity)
    assert is_container_tag(tag)
    assert tag is not None
    assert tag.startswith("caller:")
    assert tag == container_tag_for(identity)


def test_different_identities_never_share_a_tag() -> None:
    """Neighbours that a careless clean-up would merge stay apart."""
    names = [*HOSTILE, "alice", "bob", "a_b", "a-b", "User_1", "user_1", "a:b", "alice\r", "x" * 299]
    tags = {container_tag_for(name) for name in names}
    assert len(tags) == len(names)


@pytest.mark.parametrize(
    "identity", ["alice", "User_1", "a:b-c_d", "x" * MAX_TAG_LENGTH, "14155550100", "007"]
)
def test_valid_identity_is_its_own_tag(identity: str) -> None:
    """A project's own user ids stay readable in its account."""
    assert container_tag_for(identity) == identity


def test_derived_tag_cannot_be_claimed_as_an_identity() -> None:
    """Somebody who names themselves like another one's derived tag does not get it."""
    tag = container_tag_for("+14155550100")
    assert container_tag_for(tag) != tag
    assert container_tag_from(tag) == tag


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "\n",
        None,
        "None",
        "undefined",
        "null",
        "NULL",
        "default",
        "unknown",
        "anonymous",
        "mock_user",
    ]
    + ["console", "fake-agent-12", "agent-AJ_abc", "guest", "nan", " default "],
)
def test_placeholders_mean_no_memory(value: str | None) -> None:
    """A value that many calls share is nobody's tag, given either way."""
    assert container_tag_for(value) is None
    assert container_tag_from(value) is None


def test_stock_starter_identity_has_no_memory() -> None:
    """One of 10,000 random names is soon somebody else's."""
    assert container_tag_for("voice_assistant_user_1234") is None


@pytest.mark.parametrize(
    "spelling",
    [
        "+14155550100",
        "+1 (415) 555-0100",
        "+1-415-555-0100",
        "+1.415.555.0100",
        "0014155550100",
        "tel:+14155550100",
    ]
    + [
        "sip:+14155550100@host;user=phone",
        "sip_+14155550100",
        "+1 415 555 0100",
        "＋１４１５５５５０１００",
        "\u202a+14155550100\u202c",
    ],
)
def test_spellings_of_a_phone_number_are_one_person(spelling: str) -> None:
    """Carriers and trunks write one number in many ways."""
    assert container_tag_for(spelling) == container_tag_for("+14155550100")


def test_trunk_zero_is_not_part_of_the_number() -> None:
    """`(0)` is dialled inside a country only."""
    assert container_tag_for("+44 (0)20 7946 0958") == container_tag_for("+442079460958")


def test_bare_digits_are_an_identity_and_no_country_is_guessed() -> None:
    """4155550100 may be a customer number."""
    assert container_tag_for("4155550100") == "4155550100"


@pytest.mark.parametrize(
    "number",
    ["anonymous", "Restricted", "sip:anonymous@anonymous.invalid", "+266696687", "unavailable", "unknown"],
)
def test_hidden_number_has_no_memory(number: str) -> None:
    """All who hide their number would share one memory."""
    assert container_tag_of(Participant("sip_x", SIP, {"sip.phoneNumber": number})) is None


@pytest.mark.parametrize("identity", ["sip_anonymous", "sip_", "sip:anonymous@anonymous.invalid"])
def test_hidden_number_in_the_identity_has_no_memory(identity: str) -> None:
    """A trunk that sends no number attribute still names the participant after it."""
    assert container_tag_of(Participant(identity, SIP)) is None


def test_phone_caller_is_known_by_number_on_any_trunk() -> None:
    """The number counts, not the participant name that a trunk gave."""
    one = container_tag_of(Participant("sip_abc", SIP, {"sip.phoneNumber": "+14155550100"}))
    two = container_tag_of(Participant("other", SIP, {"sip.phoneNumber": "14155550100"}))
    assert one == two == container_tag_for("+14155550100")


def test_signed_attribute_beats_number_and_identity() -> None:
    """The token server's word is the most trustworthy."""
    attributes = {"supermemory_container_tag": "tag-1", "sip.phoneNumber": "+14155550100"}
    assert container_tag_of(Participant("alice", SIP, attributes)) == "tag-1"


@pytest.mark.parametrize("kind", [AGENT, EGRESS])
def test_agents_and_egress_are_never_the_caller(kind: int) -> None:
    """A recorder in the room has nothing to remember."""
    assert container_tag_of(Participant("recorder", kind)) is None


def test_mock_attributes_count_as_absent() -> None:
    """The console's participant answers every attribute with an object."""
    from unittest.mock import MagicMock

    assert container_tag_of(Participant("mock_user", STANDARD, MagicMock())) is None


def test_invalid_explicit_tag_is_taken_as_an_identity() -> None:
    """It is derived, once, and to the same tag as that identity."""
    assert container_tag_from("alice@example.com") == container_tag_for("alice@example.com")


@pytest.mark.parametrize("room", ["..", "a?x=1", "a#b", "a/b", "r" * 200, "lk-call:abc", "call:1", "a\n"])
def test_document_ids_are_safe_and_distinct(room: str) -> None:
    """A room name goes into the URL of its transcript."""
    document = document_id_for(room)
    assert is_container_tag(document)
    assert document.startswith("lk-")
    assert document != document_id_for(room + "x")


def test_document_id_of_a_plain_session_is_readable() -> None:
    """The contract: `lk-` and the session id."""
    assert document_id_for("room-1") == "lk-room-1"
    assert document_id_for("call:" + "0" * 40) != "lk-call:" + "0" * 40
