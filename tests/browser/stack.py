"""The agent, the token server and the page, as `python3 run.py web` starts them, on a LiveKit server of the
tests' own: one that they can kill, and whose keys they have."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from settings import ROOT
from tests.support.livekit_server import LiveKitServer

START_TIMEOUT = 120.0
STOP_TIMEOUT = 30.0
WARM_TIMEOUT = 60.0

BLANK = (
    *("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "SESSION_SECRET", "LIVEKIT_AGENT_NAME"),
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "AGENT_STT", "AGENT_LLM", "AGENT_TTS", "TURN_DETECTION"),
    *("LIVEKIT_INFERENCE_API_KEY", "LIVEKIT_INFERENCE_API_SECRET", "LOCAL_WHISPER_MODEL"),
    *("TOKEN_SERVER_HOST", "TOKEN_SERVER_PORT", "TOKEN_SERVER_HOSTS", "TOKEN_SERVER_PUBLIC"),
    *("TRUSTED_PROXY", "LIVEKIT_SESSION_HOST"),
)
"""Blank and not unset: an env file of whoever runs this does not come in."""
# An Ollama on this machine has no such model, so the demo model answers here as everywhere.
SETTINGS = dict.fromkeys(BLANK, "") | {"OPENAI_MODEL": "the-demo-model"}


@dataclass
class Stack:
    livekit: LiveKitServer
    memory_dir: Path
    url: str
    """Of the page."""

    @property
    def environment(self) -> dict[str, str]:
        """For a further process beside this stack."""
        return os.environ | SETTINGS | self.livekit.environment | {"MEMORY_DIR": str(self.memory_dir)}

    def log(self, name: str = "agent") -> list[dict[str, Any]]:
        """What a part has written so far, as far as it is JSON."""
        lines = (self.memory_dir / "logs" / f"{name}.log").read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def calls(self) -> list[int]:
        """The process ids of the calls so far, the latest last."""
        return [entry["pid"] for entry in self.log() if entry["message"] == "call"]

    async def gets_warm(self) -> None:
        """Waits for a process with loaded models to wait for the next call."""
        async with asyncio.timeout(WARM_TIMEOUT):
            while True:
                said = [entry["message"] for entry in self.log()]
                if said.count("process initialized") > said.count("received job request"):
                    return
                await asyncio.sleep(0.2)


@contextmanager
def running_stack(livekit: LiveKitServer, directory: Path) -> Iterator[Stack]:
    """A stack that is ready for calls, and is ended with all its processes."""
    memory_dir = directory / "memory"
    output = directory / "stack.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "local"],
            cwd=ROOT,
            env=os.environ | SETTINGS | livekit.environment | {"MEMORY_DIR": str(memory_dir)},
            stdout=log,
            stderr=log,
        )
    try:
        yield Stack(livekit, memory_dir, _address(process, output))
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            # Its guard ends what it started.
            process.send_signal(signal.SIGKILL)
            process.wait()


def _address(process: subprocess.Popen[bytes], output: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT
    while not (found := re.search(r"Open (http://\S+)", output.read_text(errors="replace"))):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the stack did not start:\n{output.read_text(errors='replace')}")
        time.sleep(0.1)
    return found[1]
