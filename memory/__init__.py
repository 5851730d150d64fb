"""Memory across calls for LiveKit agents, kept by Supermemory. Copy this folder into any project.

```python
memory = SupermemoryLiveKit()                       # reads SUPERMEMORY_API_KEY
memory.bind(participant=await ctx.wait_for_participant())
session = AgentSession(stt=..., llm=..., tts=..., tools=memory.tools())
memory.attach(session)                              # recall before each reply, and capture
await session.start(room=ctx.room, agent=Agent(instructions="..."))
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import SupermemoryAgent
    from .errors import MemoryConfigurationError, MemoryStoreError
    from .facts import Fact
    from .identity import container_tag_for
    from .livekit import MemoryEvent, SupermemoryLiveKit
    from .params import InputParams
    from .store import MemoryStore

__version__ = "0.1.0"

__all__ = [
    "Fact",
    "InputParams",
    "MemoryConfigurationError",
    "MemoryEvent",
    "MemoryStore",
    "MemoryStoreError",
    "SupermemoryAgent",
    "SupermemoryLiveKit",
    "__version__",
    "container_tag_for",
]

# Loaded on first use: a token server wants `identity` and `store` without the 4 s of livekit.agents.
_HOMES = {
    "Fact": "facts",
    "InputParams": "params",
    "MemoryConfigurationError": "errors",
    "MemoryEvent": "livekit",
    "MemoryStore": "store",
    "MemoryStoreError": "errors",
    "SupermemoryAgent": "agent",
    "SupermemoryLiveKit": "livekit",
    "container_tag_for": "identity",
}


def __getattr__(name: str) -> Any:
    if name == "embedded":
        return import_module(".embedded", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
