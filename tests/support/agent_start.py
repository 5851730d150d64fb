"""`python agent.py start` on a machine that is busy with tests; run as a process of its own by `worker.py`.

The agent is the repository's, told nothing but its environment. Only the worker round it differs: no load
keeps calls back, one process waits for the next call, and its health check takes a free port on loopback.
"""

from __future__ import annotations

import math
import os
import sys

import agent

START_TIMEOUT = 60.0
"""Seconds for a process to load the speech models; LiveKit's 10 are short on a busy machine."""


def no_load() -> float:
    """A busy machine must not make LiveKit keep a call back."""
    return 0.0


if __name__ == "__main__":
    agent.server.load_fnc = no_load
    agent.server.update_options(
        load_threshold=math.inf, num_idle_processes=1, initialize_process_timeout=START_TIMEOUT
    )
    agent.server._host, agent.server._port = "127.0.0.1", 0
    agent.server.on("worker_registered", lambda *_: os.write(1, b"registered\n"))
    sys.argv = ["agent.py", "start"]
    agent.main()
