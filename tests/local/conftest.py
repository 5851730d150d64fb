"""What the tests of the stack share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local import stack


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without settings, with a program called livekit-server and memory in a new folder."""
    for name in (
        *stack.LIVEKIT_VARIABLES,
        *("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "SESSION_SECRET", "TOKEN_SERVER_PORT"),
        *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "LIVEKIT_AGENT_NAME"),
    ):
        # Blank and not unset: an env file of whoever runs this does not come in.
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MEMORY_DIR", str(tmp_path / "memory"))
    binary = tmp_path / "bin" / "livekit-server"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path
