"""The exceptions of this module.

- SupermemoryLiveKitError
  - MemoryConfigurationError: something to fix in the code or the settings
  - MemoryStoreError: the memory service did not do what was asked
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .facts import Fact

Cause = Literal[
    "unauthorized",
    "payment",
    "forbidden",
    "not_found",
    "conflict",
    "invalid",
    "rate_limited",
    "redirected",
    "server",
    "timeout",
    "network",
    "malformed",
    "client",
]


class SupermemoryLiveKitError(Exception):
    """Base of both."""


class MemoryConfigurationError(SupermemoryLiveKitError, ValueError):
    """A value that cannot work. The message names it and the way out."""


class MemoryStoreError(SupermemoryLiveKitError):
    """A request to the memory service failed. The message says why and what to do, never what was sent."""

    def __init__(
        self,
        message: str,
        *,
        cause: Cause,
        status: int | None = None,
        retry_after: float | None = None,
        forgotten: Sequence[Fact] = (),
    ) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        """What failed, as one word; each warns once per call."""
        self.status = status
        """The HTTP status, or None when no answer came."""
        self.retry_after = retry_after
        """Seconds that the service asked to wait, or None."""
        self.forgotten = tuple(forgotten)
        """What is gone in spite of the failure, where something was to be forgotten."""

    @property
    def ambiguous(self) -> bool:
        """Whether the request may have been carried out although no good answer came back."""
        return self.cause in ("timeout", "network", "malformed", "server")

    @property
    def retryable(self) -> bool:
        """Whether the same request can succeed later without anybody changing something."""
        return self.cause in ("timeout", "network", "malformed", "server", "rate_limited", "conflict")
