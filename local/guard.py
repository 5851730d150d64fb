"""Ends the parts of the stack when the stack itself is gone, however it went.

The stack holds the other end of this process's standard input and names each part's process group there:
`+123` when it starts, `-123` when it has ended. The end of the input means that the stack has ended, even by
SIGKILL: then what is left is asked to stop, and killed if it has not after the seconds of the one argument.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time


def watch(patience: float) -> None:
    # Whoever ends the stack must not end its guard with the same signal.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        sign, group = line[0], int(line[1:])
        (groups.add if sign == "+" else groups.discard)(group)
    for group in groups:
        send(group, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while any(send(group, 0) for group in groups) and time.monotonic() < deadline:
        time.sleep(0.05)
    for group in groups:
        send(group, signal.SIGKILL)


def send(group: int, signal_number: int) -> bool:
    """Whether any process of the group was there to be told."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal_number)
        return True
    return False


if __name__ == "__main__":
    watch(float(sys.argv[1]))
