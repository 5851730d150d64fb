"""How recall and capture behave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from .errors import MemoryConfigurationError

Mode = Literal["profile", "query", "full"]
Capture = Literal["always", "never"]


@dataclass(frozen=True, kw_only=True)
class InputParams:
    """Settings of one call's memory. Durations are seconds; each value is checked on construction.

    Raises `MemoryConfigurationError`, naming the setting and the value, for one out of its range.
    """

    mode: Mode = "full"
    """`profile`: what is known of the caller; `query`: what matches the turn; `full`: both."""
    search_limit: int = 10
    """Most hits of one search, 1 to 100."""
    search_threshold: float = 0.1
    """Least similarity of a hit, 0 to 1: higher is more exact, lower finds more."""
    recall_timeout: float = 1.5
    """Longest wait for memory of a typed turn and of the first reply, more than 0 and at most 30."""
    capture: Capture = "always"
    """`never` stores no transcript; what the caller asks to remember is remembered all the same."""
    reply_budget: float = 0.15
    """Longest wait for memory of a spoken turn after its last final transcript, 0 to 5."""
    capture_interval: float = 10.0
    """Time between two batches of a transcript, 0 to 300."""
    max_facts: int = 24
    """Most facts in the prompt, 1 to 200."""
    max_block_characters: int = 4000
    """Most characters of the memory block in the prompt, 200 to 50,000."""

    def __post_init__(self) -> None:
        self._one_of("mode", get_args(Mode))
        self._one_of("capture", get_args(Capture))
        self._within("search_limit", 1, 100, whole=True)
        self._within("search_threshold", 0, 1)
        self._within("recall_timeout", 0.001, 30)
        self._within("reply_budget", 0, 5)
        self._within("capture_interval", 0, 300)
        self._within("max_facts", 1, 200, whole=True)
        self._within("max_block_characters", 200, 50_000, whole=True)

    def _one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise MemoryConfigurationError(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}.")

    def _within(self, name: str, low: float, high: float, *, whole: bool = False) -> None:
        value = getattr(self, name)
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
            raise MemoryConfigurationError(f"{name}={value!r} is not a {'whole ' if whole else ''}number.")
        if not low <= value <= high:
            raise MemoryConfigurationError(f"{name}={value!r} is not between {low} and {high}.")
