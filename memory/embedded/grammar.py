"""English, as far as turning "I have a dog" into "has a dog" needs it. Word lists and pure functions.

Only what is on these lists is rewritten. Whoever calls falls back to quoting for the rest.
"""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRESENT = word_set(
    """
    adore attend avoid bake belong breed build buy carry celebrate climb coach code collect come commute
    cook crave cycle dance design dislike do draw drink drive eat enjoy farm fast fear fish fly follow
    foster garden get go grow hate have hike hunt identify keep knit lead like live love make manage
    observe own paint play practice practise prefer program raise read rent ride run sail sell serve sew
    share sing ski sleep smoke snore speak spend study suffer support surf swim take teach train travel
    use volunteer vote wake walk watch wear weigh work worship write stutter stammer struggle
    """
)
"""Verbs whose present tense, in the first person, states something lasting."""

PAST = word_set(
    """
    adopted became began bought broke changed divorced finished founded gave got graduated
    grew inherited injured joined learned learnt left lived lost married met moved opened published
    quit relocated retired returned sold started stopped studied survived switched taught trained turned
    won worked went
    """
)
"""Past forms that state something lasting; third person and first are the same."""

ALONE = word_set(
    """
    bake climb cook cycle dance draw drink drive fish fly garden hike hunt knit paint read run sail sing
    ski smoke snore stutter stammer surf swim travel volunteer
    """
)
"""Verbs that say something without an object."""

ADVERBS = word_set(
    """
    always never usually often sometimes rarely hardly mostly mainly normally generally still only
    currently already recently now almost occasionally regularly barely ever both
    """
)
FILLERS = word_set(
    """
    just really actually also definitely certainly honestly simply basically literally truly kinda quite
    absolutely totally personally
    """
)
"""Adverbs that carry nothing worth keeping."""

_CONTRACTIONS = [
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        (r"\bcan't\b|\bcan not\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"\bain't\b", "am not"),
        (r"(?<=[a-z])n't\b", " not"),
        (r"\bI'm\b", "I am"),
        (r"\bI've\b", "I have"),
        (r"\bI'll\b", "I will"),
        (r"\bI'd\b", "I would"),
    )
]
_MISSING = [
    (re.compile(rf"\b{bare}\b", re.IGNORECASE), full)
    for bare, full in (
        ("im", "I'm"),
        ("ive", "I've"),
        ("dont", "don't"),
        ("doesnt", "doesn't"),
        ("didnt", "didn't"),
        ("isnt", "isn't"),
        ("wasnt", "wasn't"),
        ("havent", "haven't"),
        ("cant", "can't"),
    )
]
_I = re.compile(r"\bi\b(?!\.)")


def tidy(text: str) -> str:
    """`text` with straight apostrophes, single blanks, a capital I, and the apostrophes that a speech
    recogniser or a hurried typist left out."""
    text = text.replace("\u2019", "'").replace("\u2018", "'").replace("\u02bc", "'")
    text = " ".join(text.split())
    for pattern, full in _MISSING:
        text = pattern.sub(full, text)
    return _I.sub("I", text)


def spelled_out(text: str) -> str:
    """`text` without the contractions that stand between a subject and its verb."""
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return text


def third_person(verb: str) -> str:
    """The form of a present-tense verb after "the caller": live → lives, study → studies, have → has."""
    irregular = {"am": "is", "have": "has", "do": "does", "go": "goes"}
    if verb in irregular:
        return irregular[verb]
    if re.search(r"(?:s|x|z|ch|sh)$", verb):
        return verb + "es"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + "s"


_PRONOUNS = [
    (re.compile(pattern, re.IGNORECASE), other)
    for pattern, other in (
        (r"\bI am\b", "they are"),
        (r"\bI was\b", "they were"),
        (r"\bI'm\b", "they're"),
        (r"\bwe're\b", "they're"),
        (r"\bI've\b|\bwe've\b", "they've"),
        (r"\bI'd\b|\bwe'd\b", "they'd"),
        (r"\bI'll\b|\bwe'll\b", "they'll"),
        (r"\bmyself\b|\bourselves\b", "themselves"),
        (r"(?<=\bof )mine\b|(?<=\bof )ours\b", "theirs"),
        (r"\bmy\b|\bour\b", "their"),
        (r"\bme\b", "them"),
        (r"\bwe\b", "they"),
    )
]
_BARE_I = re.compile(r"(?<!War )\bI\b(?!\.)")
_US = re.compile(r"\bus\b")


def about_the_caller(text: str) -> str:
    """The rest of a first-person sentence with its pronouns turned: my → their, me → them, I → they."""
    for pattern, other in _PRONOUNS:
        text = pattern.sub(other, text)
    return _US.sub("them", _BARE_I.sub("they", text))


_SUFFIXES = ("ying", "ies", "ing", "ied", "ed", "es", "s", "e", "y")


def stem(word: str) -> str:
    """A crude common root, so that "smoke", "smokes" and "smoking" meet; only ever compared."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
