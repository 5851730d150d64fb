"""`python agent.py start` with settings that cannot work: one sentence and status 1, no worker that waits."""

from __future__ import annotations

import asyncio
import os
import sys

from settings import ROOT

CASES = [
    ("LIVEKIT_API_KEY", "", "LIVEKIT_API_KEY not set. Put it into .env.local"),
    ("LIVEKIT_API_SECRET", '"secret"', "LIVEKIT_API_SECRET starts or ends with a quote."),
    ("LIVEKIT_API_SECRET", "another-secret-of-enough-letters-for-a-key", "LiveKit refuses the keys."),
    (
        "LIVEKIT_URL",
        "project.livekit.cloud",
        "LIVEKIT_URL='project.livekit.cloud' is not an address like wss:",
    ),
]


async def test_a_worker_that_could_never_take_a_call_says_why_and_ends(environment: dict[str, str]) -> None:
    """Missing, quoted, refused, no address: the sentence names the setting, and nothing else is shown."""

    async def start(name: str, value: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "agent.py", "start"),
            cwd=ROOT,
            env={**os.environ, **environment, name: value},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(60):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, output.decode().strip()

    answers = await asyncio.gather(*(start(name, value) for name, value, _ in CASES))
    for (status, output), (_, _, sentence) in zip(answers, CASES, strict=True):
        assert output.startswith(sentence), output
        assert status == 1
        assert "\n" not in output
