"""Logs as one JSON object a line, fit to be kept: no addresses, identities, tags, tokens or words.

Messages are constants and values travel in `extra`, so nothing personal can slip into a sentence. An
exception is its type and where it happened: its text may quote a request.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            # Of foreign loggers too only the constant part: their arguments hold addresses and texts, and
            # asyncio appends the exception to its message.
            "event": str(record.msg).partition("\n")[0],
        }
        entry.update((key, value) for key, value in record.__dict__.items() if key not in _STANDARD)
        if record.exc_info and record.exc_info[0]:
            entry["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            entry["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-6:]]
        return json.dumps(entry, default=repr)


def configure() -> None:
    """Our own loggers from INFO; everybody else's from WARNING, since theirs name addresses at INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("token_server", "server"):
        logging.getLogger(name).setLevel(logging.INFO)
