"""Which of the caller's words a message takes, and which are left to be told by nobody else."""

from __future__ import annotations

import pytest

from memory.heard import Heard


def heard(*finals: str) -> Heard:
    """After these finals; one that starts with `-` was settled, as words that no message took."""
    words = Heard()
    for final in finals:
        words.add(final.removeprefix("-"))
        if final.startswith("-"):
            words.settle()
    return words


@pytest.mark.parametrize(
    ("finals", "message", "missed", "own"),
    [
        (["I live", "in Boston"], "I live in Boston", "", "I live in Boston"),
        (["I live", "in Boston"], "I live, in Boston!", "", "I live, in Boston!"),
        (["I like jazz", "I live in Boston"], "I live in Boston", "I like jazz", "I live in Boston"),
        (["-I like jazz", "I live in Boston"], "I live in Boston", "", "I live in Boston"),
        (["-I like jazz", "I live in Boston"], "I like jazz I live in Boston", "", "I live in Boston"),
        (["-I like jazz", "-I'm Bob"], "I like jazz I'm Bob", "", ""),
        (["-I like jazz", "-I'm Bob"], "I like jazz I'm Bob and I", "", "and I"),
        (["-Yes", "Yes"], "Yes", "", "Yes"),
        (["-Yes", "Yes"], "Yes yes", "", "Yes"),
        (["I live in"], "I live in Bos", "", "I live in Bos"),
        (["What should I cook?"], "What should I cook? (in Lisbon)", "", "What should I cook? (in Lisbon)"),
        (["What should I cook?"], "[12:00] What should I cook?", "", "[12:00] What should I cook?"),
        (["我住在波士顿", "🙂"], "我住在波士顿 🙂", "", "我住在波士顿 🙂"),
        ([], "I live in Boston", "", "I live in Boston"),
    ],
)
def test_spoken_message_takes_the_words_it_is_made_of(
    finals: list[str], message: str, missed: str, own: str
) -> None:
    """Once each, and never what was settled before."""
    words = heard(*finals)
    before, taken = words.take(message, spoken=True)
    assert (before.text, taken.text) == (missed, own)
    assert words.last_at is None
    assert words.settle().text == ""


def test_typed_message_leaves_the_words_that_are_being_spoken() -> None:
    """The caller types and speaks at once."""
    words = heard("I live in Boston")
    before, taken = words.take("What should I cook?", spoken=False)
    assert (before.text, taken.text, taken.began) == ("", "What should I cook?", None)
    assert words.settle().text == "I live in Boston"


def test_settled_words_end_the_turn() -> None:
    """The next ones begin another."""
    words = heard("I live")
    assert words.last_at is not None
    first = words.settle()
    assert first.text == "I live"
    assert words.last_at is None
    words.add("in Boston")
    second = words.settle()
    assert second.text == "in Boston"
    assert first.began is not None
    assert second.began is not None
    assert first.began <= second.began


def test_message_that_comes_late_leaves_the_words_after_it() -> None:
    """A hook took its time, and the caller went on meanwhile."""
    heard = Heard()
    heard.add("I live in Boston")
    heard.add("I love opera")
    missed, own = heard.take("I live in Boston", spoken=True)
    assert (missed.text, own.text) == ("", "I live in Boston")
    assert heard.settle().text == "I love opera"
