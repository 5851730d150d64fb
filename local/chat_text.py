"""What the terminal chat says of its own: pure functions from what happened to a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from livekit.agents import APIConnectionError, APIStatusError

import settings
from memory import Fact
from memory.prompt import ago

_LONGEST_SHOWN = 80


def which_memory(store_name: str) -> str:
    if store_name == "embedded":
        path = settings.memory_dir() / "memory.sqlite3"
        if path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        return f"The embedded store on this machine, {path}. Set SUPERMEMORY_API_KEY to use Supermemory."
    return "Supermemory."


def memory_is_off(caller: str) -> str:
    return (
        f"Memory is off: {caller!r} is a name that many people share. "
        "Start again with a name of your own: --caller NAME"
    )


def lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def lost_lines(stored: int, lost: int) -> str:
    return f"Hung up. {lines(lost)} of this call could not be stored; {lines(stored)} could."


def in_full(fact: Fact) -> str:
    when = f" ({ago(fact.when, datetime.now(UTC))})" if fact.when else ""
    return f"- {fact.text}{when}"


def in_short(facts: Sequence[Fact], most: int = 3) -> str:
    texts = [fact.text.rstrip(".") for fact in facts[:most]]
    cut = [text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…" for text in texts]
    more = len(facts) - len(cut)
    return "; ".join(cut) + (f"; and {more} more" if more > 0 else "")


def what_failed(error: BaseException) -> str:
    """Why no reply came, without the service's own words: they can hold the prompt or a key."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, APIStatusError):
        cause = cause.__cause__
    if cause is None:
        if isinstance(error, APIConnectionError):
            return "The model could not be reached. Is it running, and is there a network?"
        return f"The model failed ({type(error).__name__})."
    advice = {
        401: "Check its key.",
        403: "Check what its key may do.",
        404: "Check the name of the model, and the address.",
        429: "It is over its limit or out of credit.",
    }.get(cause.status_code, "Try again in a moment.")
    return f"The model answered with an error ({cause.status_code}). {advice}"
