"""Which words of a transcript go when a fact is forgotten."""

from __future__ import annotations

import pytest

from memory.forgetting import REPLACEMENT, without


@pytest.mark.parametrize(
    ("said", "fact", "left"),
    [
        ("I'm allergic to peanuts", "The caller is allergic to peanuts.", REPLACEMENT),
        (
            "I'm allergic to peanuts and I live in Boston",
            "The caller is allergic to peanuts.",
            f"and I live in Boston {REPLACEMENT}",
        ),
        ("Forget my peanut allergy, okay", "The caller is allergic to peanuts.", f"okay {REPLACEMENT}"),
        ("I moved to Boston last year", "The caller lives in Boston.", REPLACEMENT),
        ("I live in LA.", "The caller lives in LA.", REPLACEMENT),
        ("My name is Bo.", "The caller's name is Bo.", REPLACEMENT),
        ("My name is Emily. I like tea.", "The caller's name is Emily.", f"I like tea. {REPLACEMENT}"),
        ("I like tea", "The caller's name is Emily.", "I like tea"),
        ("What is the weather like?", "The caller likes jazz.", "What is the weather like?"),
    ],
)
def test_clauses_that_tell_a_forgotten_fact_go_and_the_rest_stays(said: str, fact: str, left: str) -> None:
    """Rather a clause too many than one that tells it after all."""
    assert without(said, [fact]) == left


@pytest.mark.parametrize(
    ("said", "fact", "keep", "left"),
    [
        ("I'm allergic to nuts.", "The caller is allergic to cats.", "The caller is allergic to nuts.", None),
        ("My dog's name is Rex.", "The caller has a dog.", "The caller's dog's name is Rex.", None),
        (
            "my sister Maria lives in Boston",
            "The caller lives in Boston.",
            "The caller's sister's name is Maria.",
            f"my sister Maria lives in … {REPLACEMENT}",
        ),
        (
            "I'm allergic to nuts, cats",
            "The caller is allergic to cats.",
            "The caller is allergic to nuts.",
            f"I'm allergic to nuts, {REPLACEMENT}",
        ),
        (
            "I'm allergic to nuts/cats",
            "The caller is allergic to cats.",
            "The caller is allergic to nuts.",
            f"I'm allergic to nuts/… {REPLACEMENT}",
        ),
        ("I love Boston.", "The caller lives in Boston.", "The caller loves Boston.", None),
        ("I hate Google Maps.", "The caller hates Google Maps.", "The caller works at Google.", REPLACEMENT),
    ],
)
def test_a_fact_that_was_not_read_back_stays(said: str, fact: str, keep: str, left: str | None) -> None:
    """Forgetting one allergy is not forgetting another."""
    assert without(said, [fact], [keep]) == (said if left is None else left)
