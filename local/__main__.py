"""Talk in the browser, everything on this machine: `python3 run.py web`, or `python -m local`.

It starts a LiveKit server, the agent, the token server and the page, prints the address to open, and
ends all of them on Ctrl-C. With LIVEKIT_URL and its keys set, the agent and the page use that server,
LiveKit Cloud for instance, and none is started here.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from typing import NoReturn

import settings

from . import stack
from .part import PartFailed


def main(arguments: list[str] | None = None) -> None:
    """Runs until Ctrl-C, SIGTERM or the end of the terminal, and exits with 0; with 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="run.py web", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--port", type=int, help="of the page (default: 3000, or a free one)")
    parser.add_argument(
        "--livekit-port", type=int, help="of the LiveKit server (default: 7880, or a free one)"
    )
    parser.add_argument(
        "--local", action="store_true", help="start a LiveKit server here even where LIVEKIT_URL is set"
    )
    options = parser.parse_args(arguments)
    if os.name == "nt":
        sys.exit("The stack runs on Linux and macOS; on Windows, run it in WSL.")
    settings.load()
    try:
        planned = stack.plan(port=options.port, livekit_port=options.livekit_port, own_server=options.local)
        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(_until_told_to_stop(planned))
    except (settings.SettingsError, PartFailed) as error:
        sys.exit(str(error))


async def _until_told_to_stop(planned: stack.Plan) -> NoReturn:
    """Ctrl-C cancels the task by itself; the signals of a supervisor and of a closing terminal do here."""
    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)
    await stack.run(planned, say)


def say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
