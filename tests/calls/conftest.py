"""What every test of a call has in its log."""

import logging

import pytest


@pytest.fixture(autouse=True)
def whole_log(caplog: pytest.LogCaptureFixture) -> None:
    """The memory's warnings, and its line about the call, which is none."""
    caplog.set_level(logging.INFO, "memory")
