"""Everything a session announced, in order, and waiting for the next of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from livekit.agents import AgentSession, llm
from livekit.agents.voice.events import EventTypes

from .waiting import DEADLINE, Board

# Listening to this one logs a deprecation warning.
_NOT_RECORDED = {"metrics_collected"}


@dataclass(frozen=True)
class Happened:
    """One event of the session."""

    name: str
    event: Any

    def __str__(self) -> str:
        item = getattr(self.event, "item", None)
        if isinstance(item, llm.ChatMessage):
            return f"{self.name} {item.role}: {item.text_content!r}"
        for attribute in ("transcript", "new_state", "error", "reason"):
            if (value := getattr(self.event, attribute, None)) is not None:
                return f"{self.name} {getattr(value, 'error', value)!r}"
        return self.name


class EventLog:
    """The events of one session; make it before anything else listens and it comes first in all."""

    def __init__(self, session: AgentSession[Any], board: Board) -> None:
        self._board = board
        self.happened: list[Happened] = []
        for name in sorted(set(get_args(EventTypes)) - _NOT_RECORDED):
            session.on(name, self._recorder(name))

    def named(self, name: str) -> list[Any]:
        """The events of that name so far."""
        return [happened.event for happened in self.happened if happened.name == name]

    @property
    def messages(self) -> list[llm.ChatMessage]:
        """What was added to the conversation, in the order of being added."""
        items = [event.item for event in self.named("conversation_item_added")]
        return [item for item in items if item.type == "message"]

    async def wait_for(
        self,
        name: str,
        predicate: Callable[[Any], bool] | None = None,
        *,
        after: int = 0,
        deadline: float = DEADLINE,
    ) -> Any:
        """The first event of that name, past or coming, for which `predicate` holds.

        `after` skips that many events of the log (`len(log.happened)` is "from now on"). Raises
        `AssertionError` with the log when none came in `deadline` seconds.
        """

        def found() -> list[Any]:
            return [
                happened.event
                for happened in self.happened[after:]
                if happened.name == name and (predicate is None or predicate(happened.event))
            ][:1]

        try:
            return (await self._board.until(found, f"the event {name}", deadline=deadline))[0]
        except AssertionError as error:
            raise AssertionError(f"{error}; {self}") from None

    def __str__(self) -> str:
        return "the session said: " + ("; ".join(map(str, self.happened)) or "nothing")

    def _recorder(self, name: str) -> Callable[[Any], None]:
        def record(event: Any) -> None:
            self.happened.append(Happened(name, event))
            self._board.changed()

        return record
