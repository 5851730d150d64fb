"""The rules that turn what a caller says into facts: what they take, what they leave, what replaces what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory.embedded.statements import off_the_record, remembered, statements
from memory.embedded.topics import topic_of

WHEN = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)

FACTS = {
    "I'm vegetarian": ["The caller is vegetarian."],
    "I\u2019m vegetarian.": ["The caller is vegetarian."],
    "im vegetarian": ["The caller is vegetarian."],
    "Yeah, so, um, I'm actually vegetarian": ["The caller is vegetarian."],
    "I'm not vegetarian any more": ["The caller is not vegetarian any more."],
    "I'm no longer vegetarian": ["The caller is no longer vegetarian."],
    "I eat meat again": ["The caller eats meat again."],
    "I used to be vegetarian": ["The caller used to be vegetarian."],
    "I live in Boston": ["The caller lives in Boston."],
    "i live in Boston": ["The caller lives in Boston."],
    "No, I live in Denver, not Boston.": ["The caller lives in Denver, not Boston."],
    "I've lived in Chicago for ten years": ["The caller has lived in Chicago for ten years."],
    "I moved from Boston to Chicago": ["The caller moved from Boston to Chicago."],
    "I no longer live in Boston": ["The caller no longer lives in Boston."],
    "I work as a nurse at St. Mary's": ["The caller works as a nurse at St. Mary's."],
    "I got a job at Acme": ["The caller got a job at Acme."],
    "I lost my job": ["The caller lost their job."],
    "I'm retired": ["The caller is retired."],
    "I was a teacher for 30 years": ["The caller was a teacher for 30 years."],
    "My name is Emily": ["The caller's name is Emily."],
    "my name's bob": ["The caller's name is Bob."],
    "My name is May": ["The caller's name is May."],
    "You can call me Bob.": ["The caller's name is Bob."],
    "Hi, this is Anna speaking.": ["The caller's name is Anna."],
    "Hi, I'm Bob, nice to meet you.": ["The caller is Bob."],
    "How are you, my name is Bob": ["The caller's name is Bob."],
    "My last name is Smith": ["The caller's last name is Smith."],
    "I'm 34": ["The caller is 34."],
    "I'm 34, married, and live in Boston": ["The caller is 34, married.", "The caller lives in Boston."],
    "I'm allergic to peanuts.": ["The caller is allergic to peanuts."],
    "I'm allergic to peanuts, can you make it without?": ["The caller is allergic to peanuts."],
    "Can you book it? I'm vegan.": ["The caller is vegan."],
    "I have no allergies": ["The caller has no allergies."],
    "I don't have any allergies": ["The caller does not have any allergies."],
    "I have a dog named Rex": ["The caller has a dog named Rex."],
    "I do have a dog": ["The caller has a dog."],
    "I don't have a car": ["The caller does not have a car."],
    "I've never been to Japan": ["The caller has never been to Japan."],
    "I always have breakfast at six": ["The caller always has breakfast at six."],
    "I really love jazz": ["The caller loves jazz."],
    "I dont like onions": ["The caller does not like onions."],
    "I can't stand jazz": ["The caller cannot stand jazz."],
    "I hate it when it rains": ["The caller hates it when it rains."],
    "I hate mornings but I love coffee": ["The caller hates mornings.", "The caller loves coffee."],
    "I prefer window seats": ["The caller prefers window seats."],
    "I can't eat gluten because I have celiac disease": [
        "The caller cannot eat gluten because they have celiac disease."
    ],
    "I use a wheelchair": ["The caller uses a wheelchair."],
    "I take insulin twice a day": ["The caller takes insulin twice a day."],
    "I need to take insulin": ["The caller needs to take insulin."],
    "I'm on insulin": ["The caller is on insulin."],
    "I quit smoking": ["The caller quit smoking."],
    "I study law": ["The caller studies law."],
    "I teach chemistry": ["The caller teaches chemistry."],
    "I go to church on Sundays": ["The caller goes to church on Sundays."],
    "I do yoga": ["The caller does yoga."],
    "I'm afraid of flying": ["The caller is afraid of flying."],
    "I broke my leg skiing": ["The caller broke their leg skiing."],
    "I live with my wife and my kids": ["The caller lives with their wife and their kids."],
    "My wife and I live in Boston": ["The caller lives in Boston."],
    "My kids and I are vegetarian": ["The caller is vegetarian."],
    "I'm a nurse, and my husband is a teacher": ["The caller is a nurse."],
    "I work at a bank and have two kids": ["The caller works at a bank.", "The caller has two kids."],
    "My favourite colour is blue": ["The caller's favourite colour is blue."],
    "My dog is called Rex": ["The caller's dog's name is Rex."],
    "My daughter's name is Emily": ["The caller's daughter's name is Emily."],
    "My phone number is 555 0100": ["The caller's phone number is 555 0100."],
    "My back hurts": ["The caller's back hurts."],
    "I work in a coal mine": ["The caller works in a coal mine."],
    "I want to learn Spanish": ["The caller wants to learn Spanish."],
    "I'm vegetarian and my doctor says I should eat more iron": ["The caller is vegetarian."],
    "I have a cat, [the caller asked to forget something]": ["The caller has a cat."],
    "I'm 34. [the caller asked to forget something] I have a cat.": [
        "The caller is 34.",
        "The caller has a cat.",
    ],
    "I don't remember the code but I live in Boston": ["The caller lives in Boston."],
    "I really don't remember that. I smoke.": ["The caller smokes."],
    "I'm **vegetarian** and `deaf`": ["The caller is vegetarian and deaf."],
    "My doctor says I have asthma": ["The caller has asthma."],
    "I quit my job at Google": ["The caller quit their job at Google."],
    "I'm the youngest of five": ["The caller is the youngest of five."],
    "So yesterday was one of those days, " + "really long, " * 20 + "and I work as a paramedic.": [
        "The caller works as a paramedic."
    ],
    # corrections win
    "I'm 30. No, 31.": ["The caller is 31."],
    "I'm 30, no, 31": ["The caller is 31."],
    "I live in Boston. Sorry, I meant Austin.": ["The caller lives in Austin."],
    "I live in Boston. Sorry. I meant Austin.": ["The caller lives in Austin."],
    "I live in Boston, I mean Austin": ["The caller lives in Austin."],
    "I have a dog. I mean a cat.": ["The caller has a cat."],
    "My name is Bob. I mean Rob.": ["The caller's name is Rob."],
    # and only what looks like one is one
    "I live in Boston. No thanks.": ["The caller lives in Boston."],
    "I live in Boston. Sorry, gotta go.": ["The caller lives in Boston."],
    "I love jazz. I mean, I really love it.": ["The caller loves jazz."],
    "I don't eat fish. No, Austin.": ["The caller does not eat fish."],
}

QUOTED = {
    "We have two kids": ['The caller said: "We have two kids."'],
    "I yodel on weekends": ['The caller said: "I yodel on weekends."'],
    "I think I'm allergic to cats": ['The caller said: "I think I\'m allergic to cats."'],
    "My name is spelled E M I L Y": ['The caller said: "My name is spelled E M I L Y."'],
    "I'm vegetarian I don't eat meat": ["The caller said: \"I'm vegetarian I don't eat meat.\""],
    "I'm flying to Paris tomorrow": ['On 30 November 2026 the caller said: "I\'m flying to Paris tomorrow."'],
    "I moved to Chicago last month": [
        'On 30 November 2026 the caller said: "I moved to Chicago last month."'
    ],
}

NOTHING = [
    # questions
    "Do you know I'm vegetarian?",
    "I'm vegetarian, right?",
    "Am I vegetarian",
    "What's my name?",
    "where do I live",
    "Could you remind me that I'm on insulin?",
    # requests
    "I want you to book a table",
    "I need help",
    "I need to take a break",
    "I'd like to book a table for two",
    "I'm looking for a hotel in Boston",
    "call me back later",
    # what is not so, or not known to be
    "If I were rich, I'd buy a boat.",
    "Suppose I'm allergic to cats",
    "Let's say I live on Mars",
    "I wish I lived in Paris",
    "I might be pregnant",
    "Maybe I'm allergic",
    "I'm not sure I'm allergic",
    "I never said I live in Boston",
    # other people
    "My wife is allergic to nuts",
    "my sister lives in Denver",
    "My son Max is four",
    "She is vegetarian",
    "A friend of mine is vegetarian",
    "My wife said I'm lazy",
    "He told me I have cancer",
    "You said I'm vegetarian",
    # small talk, and what holds only now
    "I see",
    "I don't know",
    "I don't think so",
    "I'm fine, thanks",
    "I'm sorry",
    "I'm here",
    "Nothing here",
    "I'm just kidding",
    "I'm tired",
    "I'm on the phone",
    "I'm calling about my order",
    "I can't hear you",
    "I can't wait",
    "I have a question",
    "I don't have any questions",
    "I have to go",
    "I love it",
    "I read about it",
    "I paid my bill",
    "I didn't get my order",
    "Yes, I am.",
    "This is terrible",
    "It's Monday",
    "My question is simple",
    "Thanks, I appreciate it",
    # the dialogue about the memory itself
    "Remember that I'm vegetarian",
    "Don't forget that I'm vegetarian",
    "Please forget that I live in Boston",
    "I live in Boston. Forget that.",
    "I want you to forget I'm vegetarian",
    "[the caller asked to forget something]",
    "I have cancer but please don't save that",
    "Off the record, I'm gay",
    "Between us, I hate my boss",
    # taken back
    "I'm a spy. Just kidding.",
    "I live on Mars, that's a joke",
    # secrets
    "my pin is 1234",
    "My password is hunter2",
    "My card number is 4111 1111 1111 1111",
    "My social security number is 123-45-6789",
    # who they are not, whom they sing of, and how they feel
    "My name is not Robert",
    "My name isn't Robert",
    "I am the walrus",
    "I'm dead tired",
    "I'm pretty hungry",
    "I'm ready",
    "I have 5 minutes",
    "I have about two hours",
    # neither English nor words
    "Ich bin Vegetarier",
    "",
    "😀😀",
    "?!",
]


@pytest.mark.parametrize(("said", "facts"), [*FACTS.items(), *QUOTED.items()])
def test_first_person_statements_become_prose_about_the_caller(said: str, facts: list[str]) -> None:
    """What the caller says about themselves is stored in the third person, or quoted where unsure."""
    assert [statement.text for statement in statements(said, WHEN)] == facts


@pytest.mark.parametrize("said", NOTHING)
def test_everything_else_is_left_out(said: str) -> None:
    """Questions, requests, guesses, other people's facts and small talk teach nothing about the caller."""
    assert statements(said, WHEN) == []


@pytest.mark.parametrize(
    "said",
    [
        "I have cancer but please don't save that",
        "my pin is 1234, don't remember that",
        "Don\u2019t remember this: I cheated on my exam.",
        "Please do not record it",
        "I don't want you to remember this",
        "I'd rather you didn't store any of that",
        "I smoke. Keep that between us.",
        "That should not be saved",
        "Stop remembering.",
        "this is off the record",
    ],
)
def test_a_wish_not_to_be_remembered_is_heard_wherever_it_stands(said: str) -> None:
    """First, last or in the middle: a message that holds it teaches nothing at all."""
    assert off_the_record(said)
    assert statements(f"I'm vegan. {said}", WHEN) == []


@pytest.mark.parametrize(
    "said",
    [
        "I don't remember that",
        "We never keep it",
        "My dad didn't save it",
        "You don't remember that?",
        "Don't keep me waiting",
        "Don't forget that I smoke",
        "I can't save anything this month",
        "It's private property",
    ],
)
def test_what_only_sounds_like_that_wish_is_none(said: str) -> None:
    """Somebody's own remembering and saving is talk like any other."""
    assert not off_the_record(said)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Boston", "I moved to Chicago"),
        ("I live in Boston", "I moved to Chicago last month"),
        ("I live in Boston", "I don't live in Boston any more"),
        ("I live in Boston", "I used to live in Boston"),
        ("I'm vegetarian", "I eat meat again"),
        ("I'm vegetarian", "I'm not vegetarian any more"),
        ("I'm vegetarian", "I stopped being vegetarian"),
        ("I don't eat meat", "I'm vegan"),
        ("My name is Bob", "I'm Robert"),
        ("I'm Bob", "I'm not Bob"),
        ("I work at Acme", "I got a job at Initech"),
        ("I work at Acme", "I'm retired"),
        ("I'm a nurse", "I'm a teacher"),
        ("I'm 34", "I just turned 35"),
        ("I'm married", "I got divorced"),
        ("I love jazz", "I don't like jazz any more"),
        ("I hate olives", "I love olives"),
        ("I'm allergic to peanuts", "I'm not allergic to peanuts"),
        ("I have a peanut allergy", "I'm not allergic to peanuts"),
        ("I prefer window seats", "I prefer aisle seats"),
        ("I smoke", "I quit smoking"),
        ("I drink coffee", "I stopped drinking coffee"),
        ("I have a dog", "I don't have a dog any more"),
        ("I have two kids", "I have three kids"),
        ("My favorite color is blue", "My favourite color is green"),
    ],
)
def test_a_newer_statement_about_the_same_thing_replaces_the_older(older: str, newer: str) -> None:
    """Two statements meet in one topic, and the later one replaces the earlier."""
    (before,), (after,) = statements(older, WHEN), statements(newer, WHEN)
    assert after.topic.replaces(before.topic)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Boston", "I don't live in Chicago"),
        ("I live in Boston", "I grew up in Chicago"),
        ("I live in Boston", "I live with my sister"),
        ("I live in Boston", "I live on the third floor"),
        ("I live in Boston", "I live in an old house"),
        ("I live in Boston", "I lived in Chicago for a year"),
        ("I live in Boston", "My sister lives in Chicago"),
        ("I'm a nurse", "I work at St. Mary's hospital"),
        ("I'm a nurse", "I was a teacher"),
        ("I'm allergic to peanuts", "I'm allergic to cats"),
        ("I have a dog", "I have a cat"),
        ("I love jazz", "I love coffee"),
        ("My name is Bob", "My last name is Smith"),
        ("My name is Bob", "My dog's name is Rex"),
        ("I'm Bob", "I'm German"),
        ("I'm vegetarian", "I'm left-handed"),
    ],
)
def test_statements_about_different_things_stand_side_by_side(one: str, other: str) -> None:
    """A fact is never lost to one that only looks alike."""
    topics = [statement.topic for said in (one, other) for statement in statements(said, WHEN)]
    assert not any(topics[-1].replaces(topic) for topic in topics[:-1])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("The caller is vegetarian", "I eat meat again"),
        ("User lives in Boston.", "I moved to Chicago"),
        ("She lives in Boston", "I moved to Chicago"),
        ("I live in Boston", "I moved to Chicago"),
        ("Prefers window seats", "I prefer aisle seats"),
        ("The caller's name is Bob", "My name is Robert"),
        ("Their birthday is May 3", "My birthday is May 4"),
    ],
)
def test_what_was_asked_to_be_remembered_is_kept_verbatim_and_can_be_replaced(asked: str, said: str) -> None:
    """An explicit fact keeps its words, whatever person it is in, and shares its topic with what is said."""
    fact = remembered(f"  {asked}\n", WHEN)
    (newer,) = statements(said, WHEN)
    assert fact.text == asked
    assert newer.topic.replaces(fact.topic)


def test_what_fits_no_rule_is_a_topic_of_its_own() -> None:
    """Two facts that the rules know nothing about never replace each other."""
    assert not topic_of("Emily is allergic to soy").replaces(topic_of("Max is allergic to soy"))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "said",
    [
        "I am " + "a " * 50_000,
        "my " + "x " * 50_000,
        "and I " * 20_000,
        "he " * 110 + "said I'm",
        "well " * 400,
        "I have " + "quick other " * 18,
        "my a's " * 300,
        "I'm vegetarian. " * 6_000,
        "don't " * 400,
        "I mean " * 300,
        "a b c d, " * 250,
        "1 " * 1_000,
        "*_" * 1_000,
        "I have " + "only 5 " * 300,
    ],
)
def test_hostile_lengths_do_not_stall_the_rules(said: str) -> None:
    """No sentence makes a pattern run away (the timeout would tell), and none teaches without end."""
    assert len(statements(said, WHEN)) <= 8
