"""The terminal that the chat talks through: lines in, lines and streamed replies out."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import CancelledError
from typing import TextIO

BOLD, DIM, GREEN, CYAN, RED = "1", "2", "32", "36", "31"
_MARGIN = 7


class Terminal:
    """Writes a conversation. What others said is shown without its control characters."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._on_screen = out.isatty()
        self._coloured = (
            self._on_screen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        self._streaming = False
        self._prompted = False

    def line(self, text: str = "", style: str = "") -> None:
        """One line of the program's own, below a reply in progress and above a waiting prompt."""
        waiting = self._prompted
        self._break()
        self._write(self._paint(shown(text), style) + "\n")
        if waiting:
            self.prompt()

    def labelled(self, label: str, text: str, style: str = "") -> None:
        """A line with a label in the margin, as `you` and `agent` have it."""
        self._break()
        self._write(f"{self._label(label, style)}{shown(text)}\n")

    def note(self, text: str) -> None:
        """A line about the memory, set back from the conversation."""
        self.line(" " * _MARGIN + "· " + text, DIM)

    def stream(self, text: str) -> None:
        """The next piece of the agent's reply, shown at once."""
        if not self._streaming:
            self._break()
            self._write(self._label("agent", CYAN))
            self._streaming = True
        self._write(shown(text))

    def end_reply(self) -> None:
        if self._streaming:
            self._streaming = False
            self._write("\n")

    def prompt(self) -> None:
        """Shows that it is the caller's turn; only on a screen, where somebody is looking."""
        if self._on_screen:
            self._break()
            self._write(self._label("you", GREEN))
            self._prompted = True

    def unprompt(self) -> None:
        """Nobody is going to answer the prompt: what follows stands below it."""
        if self._prompted:
            self._prompted = False
            self._write("\n")

    def entered(self, text: str, *, echo: bool) -> None:
        """A line was read; `echo` writes it, for input that nobody typed on this screen."""
        if self._prompted and not echo:
            self._prompted = False  # the terminal has shown it, its line end included
        else:
            self.labelled("you", text, GREEN)

    def _break(self) -> None:
        if self._prompted:
            self._write("\r\x1b[K")
            self._prompted = False
        self.end_reply()

    def _label(self, label: str, style: str) -> str:
        return self._paint(label, style, BOLD) + " " * (_MARGIN - len(label))

    def _paint(self, text: str, *styles: str) -> str:
        codes = ";".join(style for style in styles if style)
        return f"\x1b[{codes}m{text}\x1b[0m" if self._coloured and codes and text else text

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            # Nobody reads any more (`| head`, a closed window). The call is still ended and stored properly.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())


def shown(text: str) -> str:
    """`text` without what could move the cursor, change colours or show as something else."""
    return "".join(
        c if c == "\n" or c in "\u200c\u200d" or c.isprintable() else " " if c.isspace() else "" for c in text
    )


class Lines:
    """Lines of standard input, read in a thread so that Ctrl-C and the conversation go on meanwhile."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)
        self._loop = asyncio.get_running_loop()
        self.typed = sys.stdin is not None and sys.stdin.isatty()
        """Whether a person types them, and so has seen them already."""
        threading.Thread(target=self._read, name="terminal input", daemon=True).start()

    async def next(self) -> str | None:
        """The next line without its end, or None at the end of input, then and every time after."""
        line = await self._queue.get()
        if line is None:
            self._queue.put_nowait(None)
        return line

    def _read(self) -> None:
        # A reader of its own: Python would wait for the lock of sys.stdin when it exits, and abort.
        if sys.stdin is not None:
            with open(
                sys.stdin.fileno(), encoding=sys.stdin.encoding, errors="replace", closefd=False
            ) as stream:
                for line in stream:
                    if not self._put(line.rstrip("\r\n")):
                        return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        try:
            # One line at a time: a script's later lines wait for the replies to the earlier ones.
            asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
        except (RuntimeError, CancelledError):
            return False  # the chat is over
        return True
