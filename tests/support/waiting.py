"""Waiting for something that no event announces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], within: float = 10.0) -> None:
    """Returns when `condition` holds; `TimeoutError` when it does not within so many seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # that no event announces it is the point
            await asyncio.sleep(0.01)
