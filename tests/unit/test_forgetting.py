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
        ("Forget my peanut allergy, please", "The caller is allergic to peanuts.", f"please {REPLACEMENT}"),
        ("I moved to Boston last year", "The caller lives in Boston.", REPLACEMENT),
        ("My name is Emily. I like tea.", "The caller's name is Emily.", f"I like tea. {REPLACEMENT}"),
        ("I like tea", "The caller's name is Emily.", "I like tea"),
        ("What is the weather like?", "The caller likes jazz.", "What is the weather like?"),
    ],
)
def test_clauses_that_tell_a_forgotten_fact_go_and_the_rest_stays(said: str, fact: str, left: str) -> None:
    """Rather a clause too many than one that tells it after all."""
    assert without(said, [fact]) == left
