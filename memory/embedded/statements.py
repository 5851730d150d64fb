"""What the caller said about themselves, as facts. Rules, not understanding, and careful ones.

A statement in the first person becomes prose about the caller ("I'm vegetarian" → "The caller is
vegetarian."). What the rules cannot turn with certainty is quoted. Questions, requests, guesses, small
talk, passing states and what is said about other people are no facts about the caller and are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from . import phrases
from .grammar import (
    ADVERBS,
    ALONE,
    FILLERS,
    PAST,
    PRESENT,
    about_the_caller,
    lower_first,
    spelled_out,
    third_person,
    tidy,
)
from .topics import Topic, topic_of

_READ = 2000
_LONGEST = 240
_MOST = 8
_QUOTE = "quote"
_AUXILIARIES = ("am", "have", "do", "did", "was", "can", "cannot", "had")
_SENTENCE_END = re.compile(
    r"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!\bvs\.)(?<=[.!?\u2026])[\"')]*\s+"
    r"|\s+[-\u2013\u2014]+\s+|;\s+"
)
_BRACKETED = re.compile(r"\[[^\]]*\]?")
_FIRST_PERSON = re.compile(r"(?:I\b|my )", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    text: str
    topic: Topic


def statements(said: str, when: datetime) -> list[Statement]:
    """The facts in one line of the caller's, in the order they were said, at most 8.

    `when` dates what was said with words like "tomorrow". Only the first 2,000 characters are read, and
    a clause longer than 240 is left alone: it stays searchable as it was said.
    """
    # What stands in brackets was put there by a machine: "[the caller asked to forget something]".
    text = _BRACKETED.sub(". ", tidy(phrases.MARKS.sub("", said[:_READ])))
    if phrases.FORGETTING.search(text) or phrases.RETRACTED.search(text) or off_the_record(text):
        return []
    found: dict[str, Statement] = {}
    before = ""
    for whole in _SENTENCE_END.split(text):
        parts = [whole] if _correction(whole) else phrases.CORRECTION_WITHIN.split(whole, maxsplit=1)
        for sentence in parts:
            clauses = _clauses(sentence)
            corrected = _corrected(before, sentence)
            if corrected is not None:
                if wrong := _statement(before, when):
                    found.pop(wrong.text, None)
                clauses = [corrected]
            for clause in clauses:
                before = clause if " " in clause else before
                statement = _statement(clause, when)
                if statement and len(found) < _MOST:
                    found[statement.text] = statement
    return list(found.values())


def off_the_record(said: str) -> bool:
    """Whether the caller says that something of it is not to be kept, wherever in their words that stands."""
    for wish in phrases.OFF_THE_RECORD.finditer(tidy(said[:_READ])):
        if not wish["order"] or not phrases.OWN_MEMORY.search(wish["before"]):
            return True
    return False


def _correction(sentence: str) -> re.Match[str] | None:
    text = sentence.strip().rstrip(" .!,")
    match = phrases.MEANT.fullmatch(text) or phrases.CORRECTED.fullmatch(text)
    return None if match and phrases.NO_VALUE.match(match["value"]) else match


def _corrected(before: str, sentence: str) -> str | None:
    """`before` with the value that `sentence` puts in its place; None when it corrects nothing.

    Empty when something is corrected and the rules cannot tell what: then neither holds.
    """
    match = _correction(sentence)
    if not before or not match or re.search(r"\bnot\b|n't", before):
        return None
    place = phrases.VALUE_BEFORE.fullmatch(before)
    if place is None:
        return ""
    article = "" if re.match(r"(?:an?|the) ", match["value"]) else place["article"] or ""
    return f"{place['kept']}{article} {match['value']}"


def remembered(text: str, when: datetime) -> Statement:
    """What the caller asked to remember, word for word; only its topic is worked out."""
    whole = " ".join(text.split())
    own = _statement(tidy(whole[:_LONGEST]), when) if _FIRST_PERSON.match(whole) else None
    return Statement(whole, own.topic if own else topic_of(whole))


def _clauses(sentence: str) -> list[str]:
    """A sentence as clauses with one subject each; none when nothing in it is stated."""
    sentence = _lead(sentence.strip())
    if sentence.endswith("?"):
        stated = phrases.TRAILING_QUESTION.sub("", sentence)
        if stated == sentence or "?" in stated:
            return []
        sentence = stated
    sentence = sentence.rstrip(" .!,\u2026")
    sentence = phrases.DOCTOR.sub("", sentence)
    if not sentence or _not_stated(sentence):
        return []
    reported = phrases.REPORTED.search(sentence)
    if reported:
        # "My wife said I'm lazy": from here on the words are somebody else's.
        sentence = sentence[: reported.start()]
    clauses: list[str] = []
    for part in phrases.JOINT.split(sentence):
        clause = phrases.DANGLING.sub("", _lead(part.strip(" ,")), count=1)
        if _not_stated(clause):
            break
        if len(clause) > _LONGEST:
            continue
        if re.match(r"I\b", clause):
            first, *rest = phrases.SAME_SUBJECT.split(clause)
            clauses += [first, *(f"I {more}" for more in rest)]
        else:
            clauses.append(clause)
    return clauses


def _not_stated(clause: str) -> bool:
    return bool(phrases.QUESTION.match(clause) or phrases.HYPOTHETICAL.match(clause))


def _lead(clause: str) -> str:
    """`clause` without "well", "yes", "by the way" and the like in front."""
    for _ in range(6):
        shorter = phrases.LEAD.sub("", clause, count=1) if phrases.LEAD.match(clause) else clause
        if shorter in ("", clause):
            break
        clause = shorter
    return clause


def _statement(clause: str, when: datetime) -> Statement | None:
    """One clause as a fact about the caller, or None when it is none."""
    clause = phrases.TAIL.sub("", clause).strip(" ,.!")
    if phrases.SECRET.search(clause):
        return None
    prose = _name(clause)
    if prose is None and not phrases.YOU.search(clause):
        if re.match(r"I\b", clause):
            prose = _own(clause)
        elif re.match(r"my\b", clause, re.IGNORECASE):
            prose = _possession(clause)
        elif phrases.OURS.match(clause):
            prose = _QUOTE
    if prose is None:
        return None
    quoted = clause.replace('"', "'")
    text = f'The caller said: "{quoted}."' if prose == _QUOTE else f"{prose.rstrip('.')}."
    topic = topic_of(text)
    if phrases.SOON.search(clause):
        text = f'On {when.day} {when:%B %Y} the caller said: "{quoted}."'
    return Statement(text, topic)


def _name(clause: str) -> str | None:
    match = phrases.NAME.fullmatch(clause)
    if match is None:
        return None
    name = match["name"] or match["here"]
    if phrases.NOT_A_NAME.match(name) or (match["here"] and phrases.CALENDAR.match(name)):
        return None
    return f"The caller's name is {name.title() if name == name.lower() else name}"


def _own(clause: str) -> str | None:
    """What "I ..." says as "The caller ...", `_QUOTE`, or None for what is no fact."""
    hedge = phrases.HEDGED.match(clause)
    if hedge:
        guess = clause[hedge.end() :]
        return _QUOTE if guess.startswith("my ") or _own(guess) else None
    words = spelled_out(clause).split(" ")[1:]
    if words[:1] == ["are"]:  # what is left of "my wife and I are ..."
        words[0] = "am"
    if words[:1] == ["do"] and words[1:] and words[1] in PRESENT:
        words.pop(0)
    auxiliary = words.pop(0) if words[1:] and words[0] in _AUXILIARIES else ""
    kept: list[str] = []
    while words and words[0].lower() in ADVERBS | FILLERS:
        if words[0].lower() in ADVERBS:
            kept.append(words[0].lower())
        words.pop(0)
    if words[:2] == ["no", "longer"]:
        kept, words = [*kept, "no longer"], words[2:]
    rest = " ".join([auxiliary, *words] if auxiliary else words)
    if not words or phrases.POINTING.fullmatch(rest):
        return None
    adverbs = "".join(f"{word} " for word in kept)
    if auxiliary:
        told = _with_auxiliary(auxiliary, " ".join(words), adverbs)
    else:
        told = _with_verb(words[0].lower(), " ".join(words[1:]), adverbs)
    if told and phrases.RUN_ON.search(rest):
        return _QUOTE
    return told if told in (None, _QUOTE) else f"The caller {told}"


def _with_auxiliary(verb: str, after: str, adverbs: str) -> str | None:
    denied = "not " if after.startswith("not ") else ""
    claim = re.sub(r"^(?:really|actually|even|ever|usually|normally|also) ", "", after.removeprefix("not "))
    said = f"{denied}{adverbs}{about_the_caller(claim)}"
    if verb == "am":
        mood = phrases.DEGREE.sub("", claim, count=1) if phrases.DEGREE.match(claim) else claim
        passing = phrases.PASSING.match(mood) and not phrases.LASTING.match(claim)
        return None if passing else f"is {said}"
    if verb == "have":
        duty = claim.startswith("to ") and phrases.DUTY.match(claim.removeprefix("to "))
        return f"has {said.replace('got ', '', 1)}" if duty or not phrases.IDLE.match(claim) else None
    if verb == "do" and not denied:
        return _with_verb(verb, after, adverbs)
    if verb in ("do", "did"):
        idle = verb == "did" or phrases.UNSAID.match(claim) or phrases.POINTING.fullmatch(claim)
        return None if idle else f"does {said}"
    if verb in ("can", "cannot"):
        able = phrases.ABLE.match(claim) and not phrases.POINTING.fullmatch(claim)
        return f"{'cannot' if denied else verb} {said.removeprefix('not ')}" if able else None
    lasting = phrases.WAS.match(claim) if verb == "was" else phrases.HAD.match(claim)
    return f"{verb} {said}" if lasting else None


def _with_verb(verb: str, after: str, adverbs: str) -> str | None:
    turned = about_the_caller(after)
    rest = f"{verb} {after}".strip()
    if verb == "used" and after.startswith("to "):
        return f"used {turned}"
    if phrases.GOAL.match(rest):
        return f"{adverbs}{third_person(verb)} {turned}"
    if verb == "must" and re.match(r"(?:not|never|avoid|take|wear|use)\b", after):
        return f"must {turned}"
    if phrases.MODAL.match(rest) or (verb == "have" and phrases.IDLE.match(after)):
        return None
    lasting = phrases.EVERYDAY.get(verb)
    if verb in PAST | PRESENT and lasting and not lasting.match(after):
        return None
    if verb in PAST:
        return f"{adverbs}{verb} {turned}" if after and not phrases.TALK.match(rest) else None
    if verb in PRESENT:
        return f"{adverbs}{third_person(verb)} {turned}".rstrip() if after or verb in ALONE else None
    if (
        phrases.TALK.match(rest)
        or not verb.isalpha()
        or verb.endswith(("ed", "ing"))
        or len(rest.split()) < 3
    ):
        return None
    return _QUOTE


def _possession(clause: str) -> str | None:
    """What "my ..." says, of things, pets and the body; of people only the name."""
    named = phrases.KIN_NAME.fullmatch(lower_first(clause))
    if named:
        return f"The caller's {named['who']}'s name is {named['name']}"
    match = phrases.BELONGS.fullmatch(clause)
    if not match or phrases.NOTHING.match(match["thing"]):
        return None
    if re.fullmatch(r"(?:\w+ )?name", match["thing"], re.IGNORECASE) and (
        match["not"] or "n't" in match["verb"] or match["rest"].startswith("not ")
    ):
        return None  # it says who they are not
    if phrases.PEOPLE.search(match["thing"]) and not re.match(r"favou?rite\b", match["thing"], re.IGNORECASE):
        return None
    if match["aches"]:
        return f"The caller's {match['thing']} {match['aches']}"
    if re.match(r"(?:spell|spelled|spelt|pronounced)\b", match["rest"]):
        return _QUOTE
    if phrases.PASSING_THING.match(match["rest"]):
        return None
    verb = match["verb"].strip().lower()
    denied = "not " if match["not"] or verb in ("isn't", "aren't") else ""
    verb = {"'s": "is", "isn't": "is", "aren't": "are"}.get(verb, verb)
    return f"The caller's {match['thing']} {verb} {denied}{about_the_caller(match['rest'])}"
