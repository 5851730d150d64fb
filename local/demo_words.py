"""The little English that the demo model knows: who "you" is, and which fact answers a question."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

_SWAPPED = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "am": "are",
    "i'm": "you are", "i've": "you have", "i'd": "you would", "i'll": "you will", "im": "you are",
    "we": "you", "us": "you", "our": "your", "ours": "yours", "we're": "you are", "we've": "you have",
    "you": "me", "your": "my",
}  # fmt: skip

_ABOUT_CALLER = re.compile(r"(?:the )?(?:caller|user)(?P<own>'s)?\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_STARTS_WITH_VERB = re.compile(
    r"(?:is|was|has|had|does|can|cannot|can't|lives?|moved|works?|likes?|loves?|hates?|prefers?|wants?|needs?|"
    r"enjoys?|owns?|plays?|speaks?|drives?|eats?|drinks?|studies|uses?|comes|grew|doesn't|isn't|hasn't)\b",
    re.IGNORECASE,
)
_PLURAL = {"is": "are", "has": "have", "does": "do", "was": "were", "goes": "go", "isn't": "are not",
           "doesn't": "do not", "hasn't": "have not", "wasn't": "were not"}  # fmt: skip
_SAME = frozenset({"can", "cannot", "can't", "moved", "had", "grew"})

_ADVERBS = re.compile(r"(?:(?:always|never|usually|often|also|really|just|still|only)\s+)*")
_YOURS = {"their": "your", "they": "you", "them": "you", "themselves": "yourself", "the caller": "you",
          "the caller's": "your"}  # fmt: skip
_THEIRS = {"i'm": "they are", "i am": "they are", "i've": "they have", "i": "they", "my": "their",
           "me": "them", "myself": "themselves", "you": "the agent", "your": "the agent's"}  # fmt: skip
_SHORT = {"m": "is", "ve": "has", "ll": "will", "d": "would"}
_SINGULAR = {"am": "is", "have": "has", "do": "does", "don't": "does not", "haven't": "has not"}
_UNCHANGED = frozenset(
    word
    for line in (
        "can can't cannot could will won't would should may might must was wasn't had did didn't went came",
        "got left saw met ate made gave took bought sold lost won grew knew told said found",
    )
    for word in line.split()
)

_PASSAGE = "The caller said: "
_NOTES = re.compile(r" \((?:[\w ]+ ago|yesterday|just now|inferred)(?:, inferred)?\)$")

# Words that name the same thing, and words that name a kind of it.
_SYNONYMS = {
    word: kept
    for kept, words in {
        "live": "lives living lived home based moved move reside resides address city town",
        "name": "called named names",
        "work": "works working worked job jobs profession occupation employed employer living-from",
        "allerg": "allergic allergy allergies",
        "birthday": "birthdate born",
        "favourite": "favorite favourites favorites",
        "like": "likes loves love liked loved enjoy enjoys",
        "age": "old aged",
        "eat": "eats eating food",
        "child": "children kids kid",
        "colour": "color colors",
    }.items()
    for word in words.split()
}
_KINDS = {
    word: kind
    for kind, words in {
        "pet": "cat dog rabbit hamster parrot horse fish bird",
        "family": "wife husband son daughter sister brother mother father mom mum dad child",
        "eat": "vegetarian vegan pescatarian allerg gluten lactose kosher halal coeliac celiac",
        "diet": "vegetarian vegan pescatarian allerg gluten lactose kosher halal coeliac celiac eat",
    }.items()
    for word in words.split()
}
_SKIPPED = frozenset(
    word
    for line in (
        "a an the what what's whats where where's when when's who who's which how why do does did am is",
        "are was were be been i i'm i've me my mine myself we our you your you're yours caller user it its",
        "it's that this these those there here of in on at to for from by with about as and or but if so",
        "than then too also any some much many can could should would will shall may might must have has",
        "had having get got know knows remember recall tell told say said think please just ever again still",
        "currently now right really very people person go going anything something not no don't doesn't",
        "didn't yes ok okay hey hi hello learn learned far yet already today all",
    )
    for word in line.split()
)
_LEAD_IN = re.compile(r"(?:(?:well|so|and|but|also|actually|oh|yes|no|hi|hello|hey)\b,? )+", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    rf"(?:{_LEAD_IN.pattern})?(?:i|i'm|im|i've|i'd|i'll|my|we|we're|our)\b",
    re.IGNORECASE,
)
_FOOD = re.compile(
    r"\b(?:vegetarian|vegan|pescatarian|allerg\w*|intoleran\w*|gluten|lactose|dairy|kosher|halal|coeliac|"
    r"celiac|diabetic|diet|(?:not|n't|never|cannot) (?:eat|like|drink)|no (?:meat|pork|fish|beef))\b|"
    r"\bhates?\b",
    re.IGNORECASE,
)
_NAME = r"(?P<name>[^\W\d_][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,2})"
# "I'm Jewish" looks like "I'm Anna": only what says that it is a name is taken for one.
_NAMED = re.compile(rf"(?i:\byour (?:first |full )?name is|\byou are called|\bname:) (?!not\b){_NAME}")
_ADDRESS = re.compile(r"\S*(?:://|@|www\.|\w\.\w|[a-z][A-Z])\S*")
_SENTENCE_END = re.compile(
    r"(?<!\bSt\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bJr\.)(?<!\bSr\.)(?<!\bProf\.)"
    r"(?<!\bAve\.)(?<!\bRd\.)(?<!\bvs\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\ba\.m\.)(?<!\bp\.m\.)(?<=[.!?])\s+",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """`text` on one line with straight apostrophes."""
    return " ".join(text.translate(_APOSTROPHES).split())


def to_you(text: str) -> str:
    """A fact in whatever person it was written, as one says it to the caller: "you live in Rome".

    One that is not about the caller comes back in quotation marks.
    """
    text = plain(text).rstrip(" .!")
    if lead_in := _LEAD_IN.match(text):
        text = text[lead_in.end() :]
    about = _ABOUT_CALLER.fullmatch(text)
    if about and about["own"]:
        return f"your {about['rest']}"
    if about or _STARTS_WITH_VERB.match(text):
        rest = about["rest"] if about else text
        adverb = _ADVERBS.match(rest)
        verb, _, rest = rest[adverb.end() if adverb else 0 :].partition(" ")
        return f"you {adverb[0] if adverb else ''}{_for_you(verb.lower())} {to_caller(rest)}".rstrip()
    if re.match(r"name is\b", text, re.IGNORECASE):
        return f"your {text[0].lower()}{text[1:]}"
    if re.match(r"(?:you|your|you're)\b", text, re.IGNORECASE):
        return text[0].lower() + text[1:]
    words: list[str] = []
    previous = ""
    for piece in re.split(rf"({_WORD.pattern})", text):
        lowered = piece.lower()
        swapped = piece if piece == "US" else _SWAPPED.get(lowered, piece)
        if lowered == "was" and previous == "i":
            swapped = "were"
        words.append(swapped)
        previous = lowered if piece.strip() else previous
    turned = "".join(words)
    # What is not about the caller is passed on as somebody's words, not as the model's own.
    return turned if turned.startswith("you") else f'"{text}"'


def to_caller(text: str) -> str:
    """Words about the caller, turned to the caller."""
    text = re.sub(
        r"\bthe caller (\w+s)\b", lambda found: f"you {_for_you(found[1])}", text, flags=re.IGNORECASE
    )
    return _replaced(text, _YOURS)


def as_note(text: str) -> str:
    """What the caller said of themselves as a note about them: "I hate mint" → "The caller hates mint."."""
    text = plain(text).rstrip(" .!")
    if own := re.match(r"my (?P<rest>.+)", text, re.IGNORECASE):
        return f"The caller's {_of_them(own['rest'])}."
    first = re.match(
        rf"i(?:'(?P<short>m|ve|ll|d))?\s+(?P<adverb>{_ADVERBS.pattern})(?P<verb>[\w']+)(?P<rest>.*)",
        text,
        re.IGNORECASE,
    )
    if not first:
        first_word, last_word = (text.split() or [""])[0], (text.split() or [""])[-1]
        # "https://…" and "iPhone" are written as they are.
        start = text[:1] if _ADDRESS.fullmatch(first_word) else text[:1].upper()
        return f"{start}{text[1:]}" + ("" if "://" in last_word else ".")
    verb = first["verb"].lower()
    if first["short"]:
        verb = f"{_SHORT[first['short'].lower()]} {first['adverb']}{verb}"
    else:
        verb = first["adverb"] + _of_one(verb)
    return f"The caller {verb}{_of_them(first['rest'])}."


def facts_in(notes: Iterable[str]) -> list[str]:
    """The facts in notes about the caller; of a passage from an earlier call, what it states."""
    facts: list[str] = []
    for note in notes:
        fact = html.unescape(_NOTES.sub("", note.rstrip(" .")))
        if fact.startswith(_PASSAGE):
            said = re.findall(r"“([^”]*)”", fact)
            facts += [sentence for words in said for sentence in sentences(words) if about_caller(sentence)]
        else:
            facts.append(fact)
    return facts


def sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip(" .!?")]


def split_notes(text: str) -> list[str]:
    """The notes in a tool's answer, which runs them together as sentences."""
    return [note for note in re.split(r"(?<=\.)\s+(?=The caller\b)", text.strip()) if note]


def about_caller(sentence: str) -> bool:
    """Whether a sentence states something in the first person, rather than asks or orders."""
    return not sentence.rstrip().endswith("?") and bool(_FIRST_PERSON.match(plain(sentence)))


def best_answer(question: str, facts: Iterable[str]) -> str | None:
    """The fact (in the form of `to_you`) that answers `question` best, or None when none is about it."""
    asked = content_words(question)
    best: tuple[int, int] | None = None
    answer = None
    for fact in facts:
        held = content_words(fact)
        held |= {_KINDS[word] for word in held if word in _KINDS}
        shared = len(asked & held)
        if not asked or shared < len(asked) * 2 / 3 or not _same_subject(fact, asked):
            continue
        rank = (shared, -len(held))
        if best is None or rank > best:
            best, answer = rank, fact
    return answer


def content_words(text: str) -> set[str]:
    """The words of `text` that say what it is about, each in one form."""
    text = plain(text).lower().replace("for a living", "living-from").replace("for living", "living-from")
    words = set()
    for word in re.findall(r"[^\W_]+(?:['-][^\W_]+)*", text):
        word = word.removesuffix("'s")
        if word in _SKIPPED:
            continue
        word = _SYNONYMS.get(word, word)
        if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
            word = _SYNONYMS.get(word[:-1], word[:-1])
        words.add(word)
    return words


def name_of_caller(facts: Iterable[str]) -> str | None:
    """The caller's own name, when a fact (in the form of `to_you`) says it."""
    for fact in facts:
        if found := _NAMED.search(fact):
            name = re.split(r"\b(?:and|but|from)\b", found["name"])[0].strip()
            return " ".join(part[:1].upper() + part[1:] for part in name.split()) or None
    return None


def about_food(facts: Iterable[str]) -> list[str]:
    """The facts that restrict what the caller eats."""
    return [fact for fact in facts if _FOOD.search(fact)]


def listed(parts: Sequence[str]) -> str:
    """`parts` as one clause: "a", "a and b", "a, b and c"; commas alone where a part has an "and"."""
    if any(" and " in part for part in parts):
        return ", ".join(parts)
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _for_you(verb: str) -> str:
    if verb in _PLURAL or verb in _SAME or not verb.endswith("s") or verb.endswith("ss"):
        return _PLURAL.get(verb, verb)
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if re.search(r"(?:sh|ch|ss|x|z)es$", verb) else verb[:-1]


def _of_one(verb: str) -> str:
    if verb in _SINGULAR:
        return _SINGULAR[verb]
    if verb in _UNCHANGED or verb.endswith("ed"):
        return verb
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def _of_them(text: str) -> str:
    return _replaced(text, _THEIRS)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    longest_first = "|".join(sorted(words, key=len, reverse=True))
    return re.sub(
        rf"\b(?:{longest_first})\b", lambda found: words[found[0].lower()], text, flags=re.IGNORECASE
    )


def _same_subject(fact: str, asked: set[str]) -> bool:
    """ "Your sister lives in Rome" does not answer where *you* live."""
    about = re.match(r"your ((?:favou?rite )?[^\W_]+)", fact)
    if not about:
        return True
    subject = content_words(about[1])
    return bool((subject | {_KINDS[word] for word in subject if word in _KINDS}) & asked)
