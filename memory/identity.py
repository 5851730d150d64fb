"""Who the caller is: the one maker of container tags and document ids.

The SDK puts both into the URL path as they are, so `alice/../bob` would read what belongs to `bob`.
Everything here therefore ends in one alphabet, and what does not fit is hashed into it.

A caller without a trustworthy identity gets no tag at all, and so no memory: a shared bucket named
`default` would show one stranger what another one said.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Protocol

MAX_TAG_LENGTH = 100
TAG_ATTRIBUTE = "supermemory_container_tag"

_TAG = re.compile(rf"[a-zA-Z0-9_:-]{{1,{MAX_TAG_LENGTH}}}")
_DERIVED = "caller:"
_DOCUMENT = "lk-"
_DERIVED_DOCUMENT = "lk-call:"

_NOBODY = frozenset(
    {"none", "null", "nil", "undefined", "nan", "default", "unknown", "anonymous", "mock_user", "console"}
    | {"user", "guest", "participant", "caller", "identity", "agent"}
)
_NOBODY_PREFIX = re.compile(r"fake-agent|agent-AJ_")
_STOCK_STARTER = re.compile(r"voice_assistant_user_\d+")

_HIDDEN = frozenset(
    {"anonymous", "unknown", "restricted", "private", "unavailable", "withheld", "blocked", "hidden"}
    | {"none", "null", "undefined"}
)
# What carriers send where a number is withheld: the words spelled on a telephone keypad.
_HIDDEN_NUMBERS = frozenset({"+266696687", "+7378742833", "+2562533", "+8566696", "+86282452253"})
_SIP_SCHEME = re.compile(r"(?:tel:|sips?:|sip_)", re.IGNORECASE)
_NUMBER_FORM = re.compile(r"\+|00|tel:|sips?:|sip_\+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s().\-/\u2010-\u2015]")

_SIP, _AGENT, _EGRESS, _INGRESS = 3, 4, 2, 1


class ParticipantLike(Protocol):
    """What is read of a `livekit.rtc.Participant`."""

    @property
    def identity(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, str]: ...
    @property
    def kind(self) -> int: ...


def is_container_tag(value: object) -> bool:
    """Whether `value` can be a container tag as it stands: 1 to 100 of `a-z A-Z 0-9 _ : -`."""
    return isinstance(value, str) and _TAG.fullmatch(value) is not None


def container_tag_for(identity: str | None) -> str | None:
    """The container tag of a caller known by `identity`, or None when that names nobody.

    A valid identity is its own tag. Phone numbers in any common spelling come to one derived tag;
    so does everything else that does not fit the alphabet. Derived tags start with `caller:`, and an
    identity that starts so is derived too, so nobody can name somebody else's derived tag.
    """
    if not isinstance(identity, str) or is_sentinel(identity) or is_stock_identity(identity):
        return None
    unmarked = _unmarked(identity)
    is_number = _NUMBER_FORM.match(unmarked)
    if (is_number or _SIP_SCHEME.match(unmarked)) and is_hidden_number(identity):
        return None
    if is_number and (number := phone_number(identity)) is not None:
        return _derive(_DERIVED, number)
    if is_container_tag(identity) and not identity.startswith(_DERIVED):
        return identity
    return _derive(_DERIVED, identity)


def container_tag_from(value: str | None) -> str | None:
    """The tag meant by an explicit container tag: valid ones unchanged, others taken as an identity."""
    if isinstance(value, str) and is_container_tag(value) and not is_sentinel(value):
        return value
    return container_tag_for(value)


def container_tag_of(participant: ParticipantLike) -> str | None:
    """The tag of a participant: its signed attribute, else its phone number, else its identity.

    Agents, egress and ingress are never the caller. Values that are not strings (the console's mock
    participant answers every key) count as absent.
    """
    if participant.kind in (_AGENT, _EGRESS, _INGRESS):
        return None
    attributes = participant.attributes if isinstance(participant.attributes, Mapping) else {}
    tag = attributes.get(TAG_ATTRIBUTE)
    if isinstance(tag, str) and tag.strip():
        return container_tag_from(tag)
    if participant.kind == _SIP:
        number = attributes.get("sip.phoneNumber")
        if isinstance(number, str) and number.strip():
            return _tag_of_number(number)
        if is_hidden_number(participant.identity):
            return None
    return container_tag_for(participant.identity)


def document_id_for(session_id: str) -> str:
    """The id of the transcript of one call: `lk-<session_id>`, hashed where that would not fit."""
    plain = f"{_DOCUMENT}{session_id}"
    if is_container_tag(plain) and not plain.startswith(_DERIVED_DOCUMENT):
        return plain
    return _derive(_DERIVED_DOCUMENT, session_id)


def is_sentinel(value: str) -> bool:
    """Whether `value` is a placeholder that many calls would share, such as `default` or a blank."""
    bare = value.strip()
    return not bare or bare.casefold() in _NOBODY or _NOBODY_PREFIX.match(bare) is not None


def is_stock_identity(value: str) -> bool:
    """Whether `value` is what LiveKit's starter apps draw at random out of 10,000 for each visit."""
    return _STOCK_STARTER.fullmatch(value) is not None


def is_hidden_number(value: str) -> bool:
    """Whether a SIP identity or number stands for a caller who withheld theirs."""
    bare = _bare(value)
    return not bare or bare.lstrip("+").casefold() in _HIDDEN or phone_number(value) in _HIDDEN_NUMBERS


def phone_number(value: str) -> str | None:
    """`value` as `+digits`, or None when it is no number. No country is guessed.

    `tel:+1-415-555-0100`, `sip:+14155550100@host`, `0014155550100` and `+1 (415) 555 0100` are one.
    """
    digits = _SEPARATORS.sub("", _bare(value).replace("(0)", ""))
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    digits = digits.removeprefix("+")
    # E.164 numbers have at most 15 digits; the shortest international ones have 7.
    return f"+{digits}" if re.fullmatch(r"[0-9]{7,15}", digits) else None


def _tag_of_number(value: str) -> str | None:
    if is_hidden_number(value):
        return None
    # What is no number, such as an extension, is whatever the calling side wrote: it may name no identity.
    return _derive(_DERIVED, phone_number(value) or f"sip.phoneNumber\0{_bare(value)}")


def _bare(value: str) -> str:
    text = _unmarked(value)
    scheme = _SIP_SCHEME.match(text)
    if scheme:
        text = text[scheme.end() :]
    return re.split(r"[@;]", text, maxsplit=1)[0].strip()


def _unmarked(value: str) -> str:
    """Wide digits made plain, and without the direction marks that address books put round a number."""
    plain = unicodedata.normalize("NFKC", value)
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").strip()


def _derive(prefix: str, value: str) -> str:
    # 160 bits: no two callers meet by chance. `surrogatepass` keeps lone surrogates distinct, not fatal.
    return prefix + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:40]
