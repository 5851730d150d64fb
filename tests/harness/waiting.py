"""Waiting for something to become true, under a deadline, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

DEADLINE = 10.0
"""Seconds any wait of the harness may take. Only a failing test ever waits this long, so it is
generous: a busy machine must not turn a right answer into a failure."""

_ROUNDS = 12

T = TypeVar("T")


class Board:
    """Where every scripted piece of one call says that it changed, and where a test waits for it."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def changed(self) -> None:
        """Wake everyone who waits, so that they look at their condition again."""
        self._next.set()
        self._next = asyncio.Event()

    async def until(self, condition: Callable[[], T | None], what: str, *, deadline: float = DEADLINE) -> T:
        """The first truthy value of `condition`, which is looked at again at each change.

        Raises `AssertionError` naming `what` when `deadline` seconds passed without one.
        """
        try:
            async with asyncio.timeout(deadline):
                while not (value := condition()):
                    await self._next.wait()
                return value
        except TimeoutError:
            raise AssertionError(f"waited {deadline:g} s in vain for {what}") from None


async def settle() -> None:
    """Let every callback that is ready run, and what those make ready, a dozen times over.

    For effects that the framework announces by no event. It counts rounds of the event loop and not
    seconds, so it does the same on a slow machine.
    """
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
