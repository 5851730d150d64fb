"""The memory's log, as the terminal chat shows it."""

from __future__ import annotations

import logging

from .terminal import RED, Terminal


class MemoryLog(logging.Handler):
    """Shows the memory's warnings as a sentence each, and keeps what its summary says at the end."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.INFO)
        self._terminal = terminal
        self._said: set[str] = set()
        self.lines_stored = self.lines_lost = 0

    def listening(self) -> MemoryLog:
        """Takes the place of every other log for the rest of the process."""
        memory = logging.getLogger("memory")
        memory.addHandler(self)
        memory.setLevel(logging.INFO)
        memory.propagate = False
        # What LiveKit would report of a failed reply is said as a sentence by the chat itself.
        logging.getLogger("livekit").setLevel(logging.CRITICAL + 1)
        return self

    def emit(self, record: logging.LogRecord) -> None:
        self.lines_stored = getattr(record, "lines_stored", self.lines_stored)
        self.lines_lost = getattr(record, "lines_lost", self.lines_lost)
        text = record.getMessage()
        # The goodbye says it, with the count.
        if record.levelno >= logging.WARNING and not text.startswith("memory could not store a part"):
            sentence = f"{text[:1].upper()}{text[1:]}. {getattr(record, 'advice', '')}".strip()
            if sentence not in self._said:
                self._said.add(sentence)
                self._terminal.line(sentence, RED)
