"""What the tests of the embedded memory write and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from supermemory import AsyncSupermemory

MakeClient = Callable[..., AsyncSupermemory]
"""The fixture `make_client`."""

CALL: dict[str, Any] = {"kind": "transcript", "session_id": "1"}
"""The metadata that the module gives to the document of a call."""


def transcript(*said: str, start: int = 1, day: int = 30) -> str:
    """Lines of a call as the module stores them: words of the caller's, or of the agent's after `Agent:`."""
    rows = []
    for number, words in enumerate(said, start):
        speaker = "Agent" if words.startswith("Agent:") else "Caller"
        text = words.removeprefix("Agent:").strip()
        rows.append(f"[{number}] 2026-11-{day:02}T18:{number:02}:00.000Z {speaker}: {text}\n")
    return "".join(rows)


async def known(sdk: AsyncSupermemory, namespace: str = "anna") -> set[str]:
    """What the profile says now."""
    profile = (await sdk.profile(namespace)).profile
    return {fact.memory for fact in [*profile.static, *profile.dynamic]}


def stored(folder: Path) -> bytes:
    """Every byte of every file in `folder`, in lower case."""
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir())).lower()
