"""What is said in a session, turn by turn: to recall as it is heard, to capture once it is settled.

Keeps out what the caller does not want stored. A turn and the agent's answer to it share that fate, since
the answer may repeat it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from livekit.agents.llm import ChatMessage

from . import transcript
from .binding import Binding
from .heard import Heard, Words


class Turns:
    """The turns of one session, whoever it is bound to at the moment; `binding` is None for nobody."""

    def __init__(self, *, store: bool) -> None:
        self.count = 0
        """How many messages of the caller there have been."""
        self.paused = False
        self.was_paused = False
        self._store = store
        self._seen: set[str] = set()
        self._heard = Heard()
        self._off_record = False
        """Whether the turn that is going on is kept out, with the answer to it."""
        self._kept_since = 0.0
        """Turns that began before are kept out."""

    def heard(self, text: str, binding: Binding | None, *, search: bool) -> None:
        """A final transcript arrived; with `search` recall begins to look for it."""
        self.count += self._heard.last_at is None
        self._heard.add(text)
        if binding is not None and search:
            binding.recall.hear(text)

    def message(self, item: ChatMessage, binding: Binding | None) -> None:
        """A message of the caller or the agent is in the conversation; the same one again changes nothing."""
        if item.id in self._seen:
            return
        self._seen.add(item.id)
        text = item.text_content or ""
        if item.role == "user" and text.strip():  # closing adds one without words after manual turns
            missed, own = self._heard.take(text, spoken=was_spoken(item))
            self.count += own.began is None  # the others were counted when they were heard
            if binding is not None:
                binding.recall.commit(item.id, text, spoken=was_spoken(item))
            self._keep_words(binding, missed)
            self._keep_words(binding, own, item.created_at)
        elif item.role == "assistant":
            said = transcript.spoken(text)
            self._keep(binding, "Agent", said, item.created_at, interrupted=item.interrupted)

    def agent_speaks(self, binding: Binding | None) -> None:
        """The agent is heard: what the caller says next is another turn."""
        if binding is not None:
            binding.recall.agent_spoke()
        self.end(binding)

    def caller_speaks(self, binding: Binding | None, max_delay: float) -> None:
        """The caller begins to speak: another turn, more than `max_delay` seconds after their last words."""
        last = self._heard.last_at
        if last is not None and time.time() - last > max_delay:
            self.end(binding)

    def end(self, binding: Binding | None) -> None:
        """Keeps the words of a turn that became no message so far, such as one that a hook dropped."""
        if binding is not None:
            binding.recall.drop_turn()
        self._keep_words(binding, self._heard.settle())

    def pause(self) -> None:
        """Keeps out what is said, the turn that is going on included."""
        self.paused = self.was_paused = self._off_record = True

    def resume(self) -> None:
        """Keeps what is said from the next turn on."""
        self.paused = False
        self.cut()

    def let_go(self) -> None:
        """Whoever is bound next had no part in what was said so far, nor in the answer to it."""
        self.paused = self.was_paused = False
        self.cut()

    def cut(self) -> None:
        """Keeps out what was said so far and is not captured yet."""
        self._off_record = True
        self._kept_since = time.time()

    def _keep_words(self, binding: Binding | None, words: Words, when: float | None = None) -> None:
        """Captures what the caller said, at the time of its message or else of its first words."""
        times = [moment for moment in (when, words.began) if moment is not None]
        if words.text and times:
            self._keep(binding, "Caller", transcript.plain(words.text), times[0], begun=min(times))

    def _keep(
        self,
        binding: Binding | None,
        speaker: transcript.Speaker,
        text: str,
        when: float,
        *,
        begun: float | None = None,
        interrupted: bool = False,
    ) -> None:
        """Captures one line; `begun` is when the caller's turn began, None for the agent's."""
        if binding is None or not self._store or not text:
            return
        if begun is not None:
            self._off_record = self.paused or begun < self._kept_since
        if not self.paused and not self._off_record:
            line = transcript.Line(datetime.fromtimestamp(when, UTC), speaker, text, interrupted)
            binding.capture.add(line)


def was_spoken(message: ChatMessage) -> bool:
    """Whether a message of the caller came from a recogniser; one that was typed has no confidence."""
    return message.transcript_confidence is not None
