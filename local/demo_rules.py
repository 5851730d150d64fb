"""What the demo model makes of one message: which words mean which tool, and what it answers from facts.

Facts come in the form of `to_you`, those told most recently first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from memory.embedded.statements import off_the_record, statements

from .demo_words import (
    about_caller,
    about_food,
    as_note,
    best_answer,
    content_words,
    facts_in,
    listed,
    name_of_caller,
    plain,
    sentences,
    split_notes,
    to_caller,
    to_you,
)

LINES_TO_TRY = ("I'm vegetarian and I live in Lisbon.", "What should I cook tonight?")
"""One for a first call and one for the next; the chat offers them."""

LONGEST_MESSAGE = 2000
_LONGEST_LIST = 8
_POLITE = (
    r"(?:(?:please|okay|ok|hey|hi|and|also|now|i want you to|(?:you )?can(?: you)?|(?:could|would|will) you)"
    r"\b,? *)*"
)
_REMEMBER = re.compile(
    rf"{_POLITE}(?:remember|don't forget|do not forget|make a note|note|keep in mind|save)"
    r"(?P<that> that\b|:)?:? (?P<text>.+)",
    re.IGNORECASE,
)
_REMEMBER_THAT = re.compile(
    rf"{_POLITE}(?:remember|save|note|keep) (?:that|this|it)(?: please)?", re.IGNORECASE
)
_FORGET = re.compile(
    rf"{_POLITE}(?:forget|stop remembering|delete|erase|remove)\b"
    r"(?: (?:what i (?:said|told you) about|everything about|the fact that|that|about))? *(?P<text>.*)",
    re.IGNORECASE,
)
_NOTHING_MEANT = re.compile(r"(?:it|that|about it|about that)?", re.IGNORECASE)
_ALL = re.compile(r"(?:everything|all|it all|me|all of it|my memory)\b.{0,30}", re.IGNORECASE)
_YES = re.compile(
    r"(?:yes|yeah|yep|yup|y|sure|ok|okay|do it|go ahead|right|correct|confirmed?|please do|"
    r"forget (?:it|them|that|this))\b",
    re.IGNORECASE,
)
_PLAIN_YES = re.compile(
    rf"{_YES.pattern}(?:[ ,.!]+(?:{_YES.pattern}|please|thanks|thank you|thing|both|all|of|(?:it|them|that)|"
    r"for good|i (?:am|do)|i'm sure)\b)*[ .!]*",
    re.IGNORECASE,
)
_NO = re.compile(r"(?:no|nope|n|don't|do not|stop|cancel|wait|never mind|keep)\b", re.IGNORECASE)
_ON_THE_RECORD = re.compile(
    rf"{_POLITE}(?:(?:remember|save)|start (?:remembering|saving)) (?:me |things )?again", re.IGNORECASE
)
_WRONG_PERSON = re.compile(
    r"\b(?:that's not me|that is not me|wrong person|somebody else|someone else)\b", re.IGNORECASE
)
_GOODBYE = re.compile(r"(?:bye|goodbye|good night|see you|that's all|i have to go)\b", re.IGNORECASE)
_WHAT_IS_KNOWN = re.compile(
    r"(?:what (?:do|did|have|can) (?:you|i) (?:\w+ )??(?:know|remember|learned|tell|told|say|said)|"
    r"(?:do you (?:know|remember)|remember) me|tell me about (?:me|myself))\b",
    re.IGNORECASE,
)
_WHO_AM_I = re.compile(
    r"(?:who am i|what(?:'s| is) my name|what am i called|do you know my name)\b", re.IGNORECASE
)
_DINNER = re.compile(
    r"\b(?:cook|dinner|lunch|breakfast|recipe|a meal|supper|what (?:should|can|could) i (?:eat|have|make))\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"(?:what|what's|where|where's|when|who|who's|which|how|why|do|does|did|am|is|are|was|can|could|should|would|"
    r"will|have|has|tell me|any|suggest|recommend)\b",
    re.IGNORECASE,
)
_SMALL_TALK = (
    (r"(?:thanks|thank you|cheers)\b", "You are welcome."),
    (r"how are you\b", "All my rules are in order, thank you. And you?"),
    (
        r"(?:who|what) are you\b|are you (?:an? )?(?:ai|bot|robot|human|real)\b",
        "I am the demo model: a few fixed rules in the place of a language model.",
    ),
)
ASK = "Ask the caller to confirm"
"""How the forget tool asks for the caller's word."""

_NO_RULE = (
    "I am only the demo model and have no rule for that. "
    'Tell me something about yourself, or ask "What do you know about me?"'
)


@dataclass(frozen=True)
class ToolCall:
    """A tool that the demo model wants run; what it says follows the tool's answer."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    """What is said together with the call, for a tool that has no answer."""


def on_message(
    message: str, facts: Sequence[str], tools: frozenset[str], *, paused: bool = False
) -> str | ToolCall:
    """What to do about one message; `paused` is whether it is known that nothing of it is stored."""
    if off_the_record(message) and not paused:
        if "do_not_remember" in tools:
            return ToolCall("do_not_remember")
        return "I cannot switch my memory off myself. You can pause it where you are talking to me."
    spoken = sentences(message)
    stated = [to_you(sentence) for sentence in spoken if about_caller(sentence)]
    facts = [*stated, *facts]
    for sentence in spoken:
        if _REMEMBER_THAT.fullmatch(sentence.rstrip(" .!")) and facts:
            # "That" is what was said before it, in this message or in the last ones.
            sentence = f"remember that {_in_the_callers_words(stated[-1] if stated else facts[0])}"
        if (move := _on_command(sentence, facts, tools)) is not None:
            return move
    for sentence in reversed(spoken):
        if (move := _on_question(sentence, facts, tools)) is not None:
            return move
    if paused and (stated or off_the_record(message)):
        return "All right, I keep nothing of that."
    if stated and not statements(message, datetime.now(UTC)):
        return "I see."
    if stated:
        return f"Noted: {listed(stated)}."
    if re.match(r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b", message, re.IGNORECASE):
        return _greeting(facts)
    return _NO_RULE


def _in_the_callers_words(fact: str) -> str:
    """ "you live in Rome" as the caller said it: "I live in Rome"."""
    own = re.sub(r"\byour\b", "my", re.sub(r"^you are\b", "I am", fact))
    return re.sub(r"^you\b", "I", own)


def _on_command(sentence: str, facts: Sequence[str], tools: frozenset[str]) -> str | ToolCall | None:
    name = name_of_caller(facts)
    if "remember_again" in tools and _ON_THE_RECORD.fullmatch(sentence.rstrip(" .!?")):
        return ToolCall("remember_again")
    if "not_me" in tools and (
        _WRONG_PERSON.search(sentence)
        or (name and re.search(rf"\b(?:not|isn't) {re.escape(name)}\b", sentence, re.IGNORECASE))
    ):
        return ToolCall("not_me")
    if "end_call" in tools and _GOODBYE.match(sentence):
        return ToolCall("end_call", says=_goodbye(name))
    remember = _REMEMBER.fullmatch(sentence.rstrip(" .!"))
    if remember:
        text = remember["text"].rstrip(" ?")
        is_order = (
            bool(remember["that"]) or re.match(r"i\b", text, re.IGNORECASE) or not sentence.endswith("?")
        )
        if is_order and not re.match(r"(?:me|when|what|where|who|how)\b", text, re.IGNORECASE):
            if "remember" not in tools:
                return "I have no tool to remember with here."
            return ToolCall("remember", {"text": as_note(text)})
    forget = _FORGET.fullmatch(sentence.rstrip(" .!?"))
    if forget:
        query = forget["text"]
        if _NOTHING_MEANT.fullmatch(query):
            return "All right."
        if _ALL.fullmatch(query):
            return "I forget one thing at a time. Name it, such as: forget where I live."
        if "forget" not in tools:
            return "I have no tool to forget with here."
        return ToolCall("forget", {"query": query, "confirmed": False})
    return None


def _on_question(sentence: str, facts: Sequence[str], tools: frozenset[str]) -> str | ToolCall | None:
    name = name_of_caller(facts)
    for pattern, reply in _SMALL_TALK:
        if re.match(pattern, sentence, re.IGNORECASE):
            return reply
    if _GOODBYE.match(sentence):
        return _goodbye(name)
    if _WHO_AM_I.match(sentence):
        return f"You are {name}." if name else "You have not told me your name yet."
    if _WHAT_IS_KNOWN.match(sentence) and not content_words(sentence):
        return _everything(facts)
    if not (sentence.rstrip().endswith("?") or _QUESTION.match(sentence)):
        return None
    if _DINNER.search(sentence):
        return _dinner(facts)
    if answer := best_answer(sentence, facts):
        return f"As far as I know, {answer}."
    if "search_memories" in tools and content_words(sentence):
        return ToolCall("search_memories", {"query": sentence.rstrip(" ?")})
    return _NO_RULE


def on_tool_output(tool: str, output: str, *, failed: bool, question: str) -> str:
    """Puts a tool's outcome to the caller, in its own words: nothing is claimed that it did not say."""
    text = plain(output)[:LONGEST_MESSAGE]
    headline, colon, notes = text.partition(": ")
    if tool == "search_memories" and not failed:
        found = [to_you(fact) for fact in facts_in(split_notes(notes))]
        if _DINNER.search(question):
            return _dinner(found)
        answer = best_answer(question, found)
        return f"I looked it up: {answer}." if answer else "I looked, and I remember nothing about that."
    if not colon:
        return to_caller(text) or "That did not work."
    notes, asks, _ = notes.partition(ASK)
    told = listed([to_you(fact) for fact in facts_in(split_notes(notes))] or ["something"])
    return f"{headline}: {told}." + (" Shall I?" if asks else "")


def on_order(order: str, facts: Sequence[str]) -> str:
    """Carries out what the application asks for between the caller's turns; by default a greeting."""
    if re.search(r"\bgoodbye\b", order, re.IGNORECASE):
        return _goodbye(None)
    if re.search(r"\bnot use any name\b", order, re.IGNORECASE):
        return "Hello! What can I do for you?"
    if re.search(r"\bstill (?:there|here|on the line)\b", order, re.IGNORECASE):
        return "Are you still there?"
    return _greeting(facts)


def _greeting(facts: Sequence[str]) -> str:
    if name := name_of_caller(facts):
        return f"Hello {name}, good to hear from you again."
    if facts:
        return "Hello again."
    return "Hello! I know nothing about you yet."


def _goodbye(name: str | None) -> str:
    return f"Goodbye, {name}." if name else "Goodbye."


def _everything(facts: Sequence[str]) -> str:
    if not facts:
        return "Nothing yet. Tell me something about yourself."
    shown = list(dict.fromkeys(facts))
    more = len(shown) - _LONGEST_LIST
    tail = f", and {more} more" if more > 0 else ""
    return f"This is what I know: {listed(shown[:_LONGEST_LIST])}{tail}."


def _dinner(facts: Sequence[str]) -> str:
    rules = about_food(facts)
    if not rules:
        return "How about roast chicken with potatoes? I know of nothing that you do not eat."
    if re.search(r"chickpea|tomato|rice|legume|pulses|nightshade", " ".join(rules), re.IGNORECASE):
        return f"I know that {listed(rules)}, and the demo model knows no dish that is safe for that."
    return f"How about chickpeas with tomatoes and rice? I know that {listed(rules)}."


def confirmation(message: str) -> Literal["yes", "no", "unsure", "other"]:
    """How a message answers a yes-or-no question; `other` is one that talks of something else."""
    message = plain(message)
    if off_the_record(message):
        return "other"
    if _NO.match(message):
        return "no"
    if _PLAIN_YES.fullmatch(message):
        return "yes"
    return "unsure" if _YES.match(message) and not message.endswith("?") else "other"


def on_confirmation(message: str, query: str) -> str | ToolCall | None:
    """How to go on when the caller was asked whether to forget; None when they talk of something else."""
    match confirmation(message):
        case "yes":
            return ToolCall("forget", {"query": query, "confirmed": True})
        case "no":
            return "All right, I forget nothing."
        case "unsure":
            return "I forget nothing yet. Say yes to all of it, or name exactly what to forget."
    return None
