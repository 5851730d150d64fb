"""The terminal chat: a person types, hangs up, starts again, and is remembered.

    python -m local.chat --caller anna
    printf 'What do you know about me?\n' | python -m local.chat

A real `AgentSession` with the memory, its tools and the first model that is there; no account, no key,
no audio. Each run is a call of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys

import settings

from .terminal import shown

DESCRIPTION = "Talk to the agent in this terminal. What you say is remembered for the next time."
EPILOG = "In the chat, /help lists the commands. Lines can also be piped in; the end of input hangs up."


def main() -> None:
    """Runs the chat; ends the process with status 1 and a sentence for what cannot work."""
    parser = argparse.ArgumentParser(prog="chat", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--caller", metavar="NAME", help="whose memory it is; by default the user of this computer"
    )
    caller: str | None = parser.parse_args().caller
    for stream in (sys.stdout, sys.stderr):
        # A console of another encoding shows a question mark instead of ending the chat.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a text stream, unless replaced
    try:
        settings.load()
        if caller is None:
            caller = _user_of_this_computer()
        _check(caller)
        if sys.stdout.isatty():
            print("Starting …", end="\r", flush=True)
        # Takes seconds, which `--help` and a broken setting need not wait for.
        from .conversation import converse

        asyncio.run(converse(caller))
    except settings.SettingsError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        # Pressed while nothing was said yet, or a second time while the call was being stored.
        sys.exit(130)
    except asyncio.CancelledError:
        # SIGTERM while the call was being stored.
        sys.exit(143)


def _check(caller: str) -> None:
    if not caller.strip():
        raise settings.SettingsError("The name of the caller is blank. Say who you are: --caller NAME")
    if "\n" in caller or shown(caller) != caller:
        raise settings.SettingsError(
            f"The name {caller!r} holds a line break or another control character. "
            "Use one of plain letters: --caller NAME"
        )


def _user_of_this_computer() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise settings.SettingsError(
            "The operating system does not say who you are. Say it yourself: --caller NAME"
        ) from None


if __name__ == "__main__":
    main()
