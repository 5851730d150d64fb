"""What the parts of the stack write, and how it reads in one terminal.

All parts write one JSON object a line, and all of it goes to a file. The terminal shows what our own code
has to say, and of everybody else's the errors: their warnings are about the insides of a call that works.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

OURS = ("agent", "memory", "local")
SHOWN_FROM = dict.fromkeys(OURS, logging.INFO) | dict.fromkeys(("token_server", "server"), logging.WARNING)
"""By the first part of a logger's name; the others from ERROR on."""
PERSONAL = "lk.pii."
"""LiveKit's prefix for values about a person. They stay out of the file too."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "warning": logging.WARNING}
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_MESSAGE = ("message", "msg", "event")
# Which process, which call and where in the code: worth a place in the file, not in the terminal.
_QUIET = frozenset(
    {"time", "ts", "level", "logger", "caller", "pid", "job_id", "room", "room_id", "agent_name"}
    | {"exception", "at", "stack", *_MESSAGE}
)


class JsonFormatter(logging.Formatter):
    """One line a record, with the values of `extra` beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {
            key: value
            for key, value in record.__dict__.items()
            if key not in _STANDARD and not key.startswith(PERSONAL)
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:  # of a job process: it has come through a pipe as text
            entry["exception"] = record.exc_text
        return json.dumps(entry, default=repr)


def configure() -> None:
    """For the worker: LiveKit's and our own loggers from INFO, everybody else's from WARNING."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in (*OURS, "livekit.agents"):
        logging.getLogger(name).setLevel(logging.INFO)


@dataclass(frozen=True)
class Line:
    text: str
    """What a person reads."""
    shown: bool
    """Whether it belongs in the terminal."""


def read(line: str) -> Line:
    """One line of a part's output; what is not JSON, such as a traceback, is shown as it is."""
    try:
        entry = json.loads(line)
    except ValueError:
        return Line(line, shown=True)
    if not isinstance(entry, dict):
        return Line(line, shown=True)
    level = str(entry.get("level", "")).lower()
    message = next((str(entry[key]) for key in _MESSAGE if key in entry), "")
    details = [
        f"{key}={value}" for key, value in entry.items() if key not in _QUIET and value not in (None, "")
    ]
    words = [level.upper(), message, *details, *str(entry.get("exception") or "").splitlines()[-1:]]
    shown_from = SHOWN_FROM.get(str(entry.get("logger", "")).partition(".")[0], logging.ERROR)
    return Line(" ".join(words), shown=_LEVELS.get(level, logging.ERROR) >= shown_from)
