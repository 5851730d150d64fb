"""What a fact is about, so that a newer statement about the same thing can replace an older one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .grammar import ADVERBS, FILLERS, stem, word_set
from .phrases import any_of

_SKIPPED = ADVERBS | FILLERS
_EMPTY = word_set(
    """
    a an the their his her its my our any more anymore again too very much lot lots of some at all now so to
    well as old new big huge longer even one two three four five six seven eight nine ten
    """
)
_CUT = re.compile(
    r",| (?:because|when|while|since|which|who|that|but|called|named|unless|until|if|over|rather|instead|with"
    r"|from|for) "
)
_SUBJECT = re.compile(
    r"(?:the )?(?:caller|user|customer|client|person|speaker)\b(?: |(?='s))|(?:he|she|they) "
)
_HIS = re.compile(r"(?:his|her|their) (?=\w)")

_ROLES = any_of(
    """
    accountant | actor | actress | architect | artist | baker | barber | builder | butcher | carpenter | chef
    cleaner | cook | dentist | designer | developer | doctor | driver | electrician | engineer | farmer
    firefighter | gardener | journalist | lawyer | librarian | manager | mechanic | musician | nurse | officer
    painter | paramedic | pharmacist | photographer | physician | pilot | plumber | professor | programmer
    psychologist | researcher | salesman | scientist | secretary | singer | soldier | student | surgeon
    teacher | technician | therapist | trader | translator | vet | waiter | waitress | writer
    """
)
_ROLE = re.compile(rf"(?:is|are|became|works as|is working as) an? (?:[\w-]+ )*?{_ROLES}\b")
# "I'm Emily" is a name, "I'm German" and "I'm Catholic" are not.
_CALLED = re.compile(r"The caller is (not )?([A-Z][a-z]+(?: [A-Z][a-z]+)?)\.?")
_PEOPLES = re.compile(
    r"(?:an|ish|ese|ic|ist|im|er|i)\b|\b(?:dutch|french|greek|swiss|czech|thai|welsh|sikh|hindu|libra"
    r"|gemini|leo|aries|taurus|cancer|virgo|scorpio|capricorn|aquarius|pisces|dane|swede|pole|turk|finn|scot|white|black"
    r"|deaf|blind)\b"
)
_DIET = re.compile(r"\b(vegan|vegetarian|pescatarian|omnivore)s?\b|\beat(?:s|ing)? (meat|everything)\b")
_DENIALS = [
    (re.compile(pattern), positive)
    for pattern, positive in (
        (r"(?:is|are) (?:not|no longer) ", "is "),
        (r"(?:does|do|did) not (\w+)", r"\1"),
        (r"no longer (\w+)", r"\1"),
        (r"(?:has )?(?:stopped|quit|gave up|given up) (\w+ing)", r"\1"),
        (r"used to (\w+)", r"\1"),
        (r"(?:has|have) no ", "has "),
        (r"sold ", "has "),
    )
]


@dataclass(frozen=True)
class Topic:
    about: str
    """Facts with the same one replace each other."""
    value: str = ""
    """Where only one thing can hold at a time (a home, a job), which; else it is a part of `about`."""
    denied: bool = False
    """It says that something does not hold; then it replaces only what claimed the same."""

    def replaces(self, older: Topic) -> bool:
        """Whether a statement on this topic, made later, makes `older` a thing of the past."""
        if self.about != older.about:
            return False
        return not self.denied or not self.value or bool(set(self.value.split()) & set(older.value.split()))


def topic_of(text: str) -> Topic:
    """The topic of a sentence about the caller. One that fits no rule is a topic of its own."""
    called = _CALLED.fullmatch(text)
    if called and not _PEOPLES.search(called[2].lower()):
        return Topic("name", _gist(called[2].lower()), bool(called[1]))
    plain = " ".join(text.lower().rstrip(" .!").split())
    subject = _SUBJECT.match(plain)
    body = plain[subject.end() :] if subject else plain
    if _HIS.match(body):
        body = "'s " + _HIS.sub("", body, count=1)
    if body.startswith("said: ") or body.startswith("on "):
        return Topic(f"text:{_gist(body, 40)}")
    body = " ".join(word for word in body.split(" ") if word not in _SKIPPED)
    if body.startswith("'s "):
        return _possession(body.removeprefix("'s "))
    denied = False
    for pattern, positive in _DENIALS:
        body, changed = pattern.subn(positive, body, count=1) if pattern.match(body) else (body, 0)
        denied = denied or bool(changed)
    return _single(body, denied) or _several(body, denied) or Topic(f"text:{_gist(plain, 40)}")


def _possession(body: str) -> Topic:
    match = re.match(r"(.+?) (?:is|are|was|were)(?: now)? (not )?(.*)", body)
    if not match:
        return Topic(f"text:{_gist(body, 40)}")
    thing = re.sub(r"\bfavorite\b", "favourite", match[1])
    denied = bool(match[2])
    if re.fullmatch(r"(?:first |full |real )?name", thing):
        return Topic("name", _gist(match[3]), denied)
    if re.search(r"\baddress$|^home$", thing) and "mail" not in thing:
        return Topic("home", _gist(match[3]), denied)
    if thing in ("job", "occupation", "profession"):
        return Topic("role", _gist(match[3]), denied)
    return Topic(f"of:{_gist(thing)}", _gist(match[3]), denied)


_SINGLE: list[tuple[str, re.Pattern[str]]] = [
    (about, re.compile(pattern))
    for about, pattern in (
        ("name", r"(?:is called|is named|goes by|wants to be called) (.+)"),
        (
            "home",
            r"(?:lives?|living|is living|has lived|is based) (?:in|at)"
            r" (?!an?\b|the (?:basement|attic|countryside|country|suburbs|city|middle)\b)(.+)",
        ),
        ("home", r"(?:has )?(?:moved|relocated) (?:back )?(?:from .+? )?to (.+)"),
        ("household", r"liv(?:e|es|ing) ((?:alone|with).*)"),
        ("role", r"(?:is working|works?|working) as (.+)"),
        (
            "employer",
            r"(?:(?:is |started )?(?:works?|worked|working)|is employed|started|joined"
            r"|(?:got|has) an? (?:new )?job) (?:at|for|by|with|in) (.+)",
        ),
        ("employer", r"(?:lost|quit|left) (?:their|his|her) job(?: at| with)?(.*)"),
        ("employer", r"(?:is |has )?(?:retired|unemployed|self-employed|between jobs)(.*)"),
        ("age", r"(?:is|turned) (\d{1,3})(?: years old)?(?:,|$)"),
        ("marital", r"(?:is|got) (?:happily |newly )?(married|single|divorced|engaged|widowed|separated)\b"),
        ("birthday", r"was born (?:on|in) (.*\d.*)"),
        ("born", r"was born in (.+)"),
        ("grew up", r"grew up in (.+)"),
        ("from", r"(?:is|comes?) from (.+)"),
    )
]


def _single(body: str, denied: bool) -> Topic | None:
    if _ROLE.match(body):
        return Topic("role", _gist(re.sub(r"^.*? an? ", "", body)), denied)
    diet = _DIET.search(body)
    if diet and re.match(
        r"(?:is|be|being|became|went|turned|has been|has become|eats?|eating|started)\b", body
    ):
        return Topic("diet", diet[1] or diet[2], denied)
    for about, pattern in _SINGLE:
        match = pattern.match(body)
        if match:
            return Topic(about, _gist(match[1]), denied)
    return None


_SEVERAL: list[tuple[str, re.Pattern[str]]] = [
    (about, re.compile(pattern))
    for about, pattern in (
        ("allergy", r"(?:is )?(?:\w+ )?allergic to (.+)"),
        ("allergy", r"(?:has|have) an? allergy to (.+)"),
        ("allergy", r"(?:has|have) an? (.+?) allergy\b"),
        ("prefer", r"prefers? (.+)"),
        (
            "like",
            r"(?:likes?|loves?|enjoys?|adores?|hates?|dislikes?|cannot stand"
            r"|is (?:into|fond of|keen on|crazy about|(?:an? )?(?:\w+ )?fan of)) (.+)",
        ),
        ("speak", r"(?:can )?speaks? (.+)"),
        ("have", r"(?:has|have|owns?|got|bought|adopted) (?:got )?(.+)"),
        ("be", r"(?:is|are|be|being) (.+)"),
    )
]


def _several(body: str, denied: bool) -> Topic | None:
    for about, pattern in _SEVERAL:
        match = pattern.match(body)
        if match:
            gist = _gist(match[1])
            # "window seats" and "aisle seats" are two answers to one question: where to sit.
            return Topic(f"{about}:{gist.split()[-1] if about == 'prefer' and gist else gist}", denied=denied)
    verb, _, rest = re.sub(r"^(?:has|started|began|took up) (?=\w+ing\b)", "", body).partition(" ")
    return Topic(f"{stem(verb)}:{_gist(rest)}", denied=denied) if verb.isalpha() else None


def _gist(text: str, words: int = 4) -> str:
    """The words that tell one value from another, without articles, endings and what follows them."""
    head = _CUT.split(f" {text} ", maxsplit=1)[0] if words <= 4 else text
    kept = [stem(word) for word in re.findall(r"[\w'&+-]+", head) if word not in _EMPTY]
    return " ".join(kept[:words])
