"""Text to speech on this machine: the Hibari voice behind LiveKit's `TTS`.

    proc.userdata["tts"] = hibari_tts.load()       # in setup_fnc: loaded and run once before the first call
    AgentSession(tts=proc.userdata["tts"])

The session hands over one sentence at a time, so the first sentence is heard while the next ones are still
being written. One US English voice; needs the dependency group `voice`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions, tts, utils

import settings

if TYPE_CHECKING:
    from hibari import Hibari

logger = logging.getLogger(__name__)

SAMPLE_RATE = 24_000
LONGEST_PHRASE = 160
"""Characters synthesised in one go. It bounds the time to the first audio and to the end of a cancelled
sentence: about a tenth of a second on a small machine."""
PAUSE = bytes(2 * SAMPLE_RATE // 10)
"""A tenth of a second of silence, spoken for a text without anything to say: LiveKit takes a sentence
without audio for a failure, and asks again."""

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LINE_MARK = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+]\s+)", re.MULTILINE)
_STRUCK = re.compile(r"~~(?=\S).*?(?<=\S)~~", re.DOTALL)
_EMPHASIS = re.compile(r"(\*{1,3}|`{1,3}|(?<!\w)_{1,3})(?=\S)(.+?)(?<=\S)\1", re.DOTALL)
_LONG_NUMBER = re.compile(r"\d{10,}")
_CLAUSE_END = re.compile(r"(?<=[,;:—])\s+|\s+(?=\()")


# One for the process, as the voice is: its dictionaries are not made for two threads.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hibari")


class HibariTTS(tts.TTS[Any]):
    """Sentences to 24 kHz speech, in a thread of their own, phrase by phrase.

    The voice is loaded here, in about a second, unless this process has it already; `SettingsError` where
    the dependency group `voice` is not installed.

    Markdown, tags and anything else that is not spoken is left out. Interrupting drops what has not been
    synthesised yet; the phrase at work is finished unheard. A text without anything that the voice can say
    gives a short silence, and so does a phrase that it fails on: that one is logged, without its words.
    """

    def __init__(self) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False), sample_rate=SAMPLE_RATE, num_channels=1
        )
        self._voice = _voice()

    @property
    def model(self) -> str:
        return str(self._voice.voice)

    @property
    def provider(self) -> str:
        return "hibari"

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return _Speech(self, text, conn_options)

    def warm_up(self) -> None:
        """Speaks once, unheard; the first run reads the dictionaries. Blocks, so call it in `setup_fnc`."""
        self.speak("Hello, it is 9:30.")

    def speak(self, phrase: str) -> bytes:
        """One phrase as 16-bit mono samples; blocks. Empty when the voice has no sound for any of it."""
        try:
            wave = self._voice(phrase)
        except Exception as error:
            # Its name only: a message could quote the phrase.
            logger.warning("a phrase could not be spoken", extra={"error": type(error).__name__})
            return PAUSE
        samples: bytes = (np.clip(wave, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()
        return samples


class _Speech(tts.ChunkedStream):
    def __init__(self, hibari: HibariTTS, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=hibari, input_text=text, conn_options=conn_options)
        self._hibari = hibari

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid("hibari_"),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
        )
        loop = asyncio.get_running_loop()
        silent = True
        for phrase in phrases(spoken_text(self._input_text)):
            # One phrase per job: cancelling here leaves the rest of the sentence unsynthesised.
            if audio := await loop.run_in_executor(_thread, self._hibari.speak, phrase):
                output_emitter.push(audio)
                silent = False
        if silent:
            output_emitter.push(PAUSE)


def spoken_text(text: str) -> str:
    """What of a text is meant for the ear: no tags, no markdown, and long numbers digit by digit.

    The voice reads `4155550100` as four billion, and fails on numbers beyond its largest word.
    """
    text = _LINK.sub(r"\1", _TAG.sub(" ", text))
    text = _STRUCK.sub("", _LINE_MARK.sub("", text))
    while (plain := _EMPHASIS.sub(r"\2", text)) != text:
        text = plain
    return _LONG_NUMBER.sub(lambda number: " ".join(number.group()), text).strip()


def phrases(text: str) -> Iterator[str]:
    """The sentences of a text; long ones in parts that end at a clause, or failing that at a word."""
    from hibari import Hibari

    for sentence in Hibari.split_sentences(text):
        phrase = ""
        for part in _parts(sentence):
            if phrase and len(phrase) + len(part) >= LONGEST_PHRASE:
                yield phrase
                phrase = part
            else:
                phrase = f"{phrase} {part}".strip()
        if phrase:
            yield phrase


def _parts(sentence: str) -> Iterator[str]:
    for clause in _CLAUSE_END.split(sentence):
        if len(clause) <= LONGEST_PHRASE:
            yield clause
            continue
        for word in clause.split():
            yield from (word[at : at + LONGEST_PHRASE] for at in range(0, len(word), LONGEST_PHRASE))


@cache
def load() -> HibariTTS:
    """The one warm instance of this process, loaded and run once; blocks for about a second."""
    speech = HibariTTS()
    speech.warm_up()
    return speech


@cache
def _voice() -> Hibari:
    try:
        from hibari import Hibari
    except ImportError:
        raise settings.SettingsError(
            "Speech on this machine needs the dependency group voice: uv pip sync locks/voice.txt"
        ) from None
    return Hibari()
