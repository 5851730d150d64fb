"""What a call's memory did, in numbers: one line at its end, one warning per kind of failure.

No words, facts, tags or keys: a log is read by more people than a memory is.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field

from .errors import MemoryStoreError

logger = logging.getLogger("memory")


@dataclass
class Summary:
    """Counters of one call. Durations are seconds of a reply's time that recall took."""

    store: str = "supermemory"
    profiles: int = 0
    searches: int = 0
    recalls: int = 0
    facts_shown: int = 0
    waited_total: float = 0.0
    waited_most: float = 0.0
    lines_stored: int = 0
    lines_lost: int = 0
    remembered: int = 0
    forgotten: int = 0
    failures: int = 0
    _warned: set[str] = field(default_factory=set, repr=False)

    def waited(self, seconds: float) -> None:
        self.recalls += 1
        self.waited_total += seconds
        self.waited_most = max(self.waited_most, seconds)

    def failed(self, what: str, error: MemoryStoreError) -> None:
        """Counts a failure and warns with its advice, once per call for each cause and kind of work."""
        self.failures += 1
        key = f"{what} {error.cause}"
        if key not in self._warned:
            self._warned.add(key)
            logger.warning(
                "memory request failed; the call goes on",
                extra={"work": what, "cause": error.cause, "status": error.status, "advice": str(error)},
            )

    def warn_once(self, message: str) -> None:
        """Warns with a constant text, once per call."""
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message)

    def log(self) -> None:
        counters = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        logger.info(
            "memory of this call",
            extra={k: round(v, 3) if isinstance(v, float) else v for k, v in counters.items()},
        )
