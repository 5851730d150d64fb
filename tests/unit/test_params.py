"""Settings are checked where they are made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from memory import InputParams, MemoryConfigurationError


def test_defaults_of_the_quick_start() -> None:
    """Copies rely on these five."""
    params = InputParams()
    assert (params.mode, params.search_limit, params.search_threshold) == ("full", 10, 0.1)
    assert (params.recall_timeout, params.capture) == (1.5, "always")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "everything"),
        ("mode", None),
        ("capture", True),
        ("search_limit", 0),
        ("search_limit", 2.5),
        ("search_limit", True),
        ("search_threshold", 1.1),
        ("search_threshold", "0.1"),
        ("recall_timeout", 0),
        ("recall_timeout", float("nan")),
        ("reply_budget", -0.1),
        ("capture_interval", float("inf")),
        ("max_facts", 0),
        ("max_block_characters", 10),
    ],
)
def test_bad_setting_is_named_with_its_value(name: str, value: Any) -> None:
    """The message is enough to mend it."""
    with pytest.raises(MemoryConfigurationError, match=name) as error:
        InputParams(**{name: value})
    assert repr(value) in str(error.value)


def test_unknown_setting_is_refused() -> None:
    """A typing mistake must not pass as a default."""
    with pytest.raises(TypeError, match="search_limits"):
        InputParams(search_limits=3)  # type: ignore[call-arg]


def test_params_are_frozen() -> None:
    """They may be shared by calls."""
    with pytest.raises(FrozenInstanceError):
        InputParams().search_limit = 3  # type: ignore[misc]
