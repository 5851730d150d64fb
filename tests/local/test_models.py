"""Which models a chat and a worker get, from what is set and what this machine has."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from livekit.agents import NOT_GIVEN, inference
from livekit.plugins import openai

import settings
from local import models
from local.demo_llm import DemoLLM

CLOUD = {
    "LIVEKIT_URL": "wss://mine.livekit.cloud",
    "LIVEKIT_API_KEY": "key",
    "LIVEKIT_API_SECRET": "a-secret-of-more-than-thirty-two-characters",
}
OWN_INFERENCE = {
    "LIVEKIT_INFERENCE_API_KEY": "key",
    "LIVEKIT_INFERENCE_API_SECRET": "a-secret-of-more-than-thirty-two-characters",
}


class Ollama:
    """Loopback HTTP that answers as Ollama does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.models: dict[str, list[str]] = {}
        self.stalled = threading.Event()
        self.answers_anything: bytes | None = None
        self.hold = False

    def answer(self, path: str, body: bytes) -> bytes:
        if self.hold:
            self.stalled.wait()
        if self.answers_anything is not None:
            return self.answers_anything
        if path == "/api/tags":
            return json.dumps({"models": [{"name": name} for name in self.models]}).encode()
        return json.dumps({"capabilities": self.models[json.loads(body)["model"]]}).encode()


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without settings, without Ollama and without local speech."""
    for name in list(os.environ):
        if name.startswith(("LIVEKIT_", "OPENAI_", "AGENT_", "LOCAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(models, "OLLAMA", "http://127.0.0.1:9")
    monkeypatch.setattr(models, "find_spec", lambda name: None)


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ollama]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = fake.answer(self.path, self.rfile.read(int(self.headers.get("content-length", 0))))
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = Ollama(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(models, "OLLAMA", fake.url)
    yield fake
    fake.stalled.set()
    server.shutdown()
    thread.join()
    server.server_close()


def use(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


async def test_a_bare_machine_gets_the_demo_model() -> None:
    """No key, no server: the chat still answers, and says by what."""
    model, sentence = await models.for_chat()
    assert isinstance(model, DemoLLM)
    assert sentence == "The demo model answers: fixed rules, no language model."


async def test_livekit_keys_come_first(monkeypatch: pytest.MonkeyPatch, ollama: Ollama) -> None:
    """LiveKit Inference answers a chat whenever its keys are there, with AGENT_LLM or a default."""
    ollama.models = {"qwen3:8b": ["tools"]}
    use(monkeypatch, **CLOUD, OPENAI_API_KEY="sk-x")
    model, sentence = await models.for_chat()
    assert isinstance(model, inference.LLM)
    assert models.DEFAULT_LLM in sentence

    use(monkeypatch, AGENT_LLM="openai/gpt-5.4-mini")
    model, sentence = await models.for_chat()
    assert model.model == "openai/gpt-5.4-mini"
    assert "openai/gpt-5.4-mini" in sentence


@pytest.mark.parametrize(
    "changed",
    [
        {"LIVEKIT_URL": "ws://127.0.0.1:7880"},
        {"LIVEKIT_URL": "wss://livekit.cloud.example.com"},
        {"LIVEKIT_API_SECRET": ""},
    ],
)
async def test_keys_of_another_server_are_not_sent_to_livekit_cloud(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    """A self-hosted server's keys, or half a pair, are no LiveKit Inference."""
    use(monkeypatch, **{**CLOUD, **changed})
    model, _ = await models.for_chat()
    assert isinstance(model, DemoLLM)


async def test_an_openai_key_beats_ollama(monkeypatch: pytest.MonkeyPatch, ollama: Ollama) -> None:
    """What somebody set on purpose wins over what happens to run."""
    ollama.models = {"qwen3:8b": ["tools"]}
    use(monkeypatch, OPENAI_API_KEY=" sk-x\n")
    model, sentence = await models.for_chat()
    assert isinstance(model, openai.LLM)
    assert model.model == models.DEFAULT_OPENAI_MODEL
    assert sentence.startswith("OpenAI answers")


async def test_any_openai_compatible_server_works_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address and a model name are enough, and that address gets the requests."""
    use(monkeypatch, OPENAI_BASE_URL="http://127.0.0.1:1234/v1", OPENAI_MODEL="my-model")
    model, sentence = await models.for_chat()
    assert isinstance(model, openai.LLM)
    assert str(model._client.base_url) == "http://127.0.0.1:1234/v1/"
    assert sentence == "my-model answers, at http://127.0.0.1:1234/v1."


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1234/v1"}, "OPENAI_MODEL"),
        ({"OPENAI_BASE_URL": "127.0.0.1:1234", "OPENAI_MODEL": "m"}, "'127.0.0.1:1234'"),
        ({"OPENAI_API_KEY": '"sk-x"'}, "OPENAI_API_KEY"),
    ],
)
async def test_a_setting_that_cannot_work_is_named(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], named: str
) -> None:
    """The error names the setting, the value where it is no secret, and the way out."""
    use(monkeypatch, **values)
    with pytest.raises(settings.SettingsError, match=named):
        await models.for_chat()


async def test_ollama_s_first_model_that_can_use_tools_is_taken(ollama: Ollama) -> None:
    """A model that cannot call tools would never remember or forget on request."""
    ollama.models = {"gemma:2b": ["completion"], "qwen3:8b": ["completion", "tools"], "llama3.1": ["tools"]}
    model, sentence = await models.for_chat()
    assert model.model == "qwen3:8b"
    assert sentence == "Ollama answers on this machine, with qwen3:8b."


async def test_openai_model_chooses_among_ollama_s(monkeypatch: pytest.MonkeyPatch, ollama: Ollama) -> None:
    """A name without its tag means `latest`, as it does for Ollama itself."""
    ollama.models = {"qwen3:8b": ["tools"], "llama3.1:latest": ["tools"]}
    use(monkeypatch, OPENAI_MODEL="llama3.1")
    model, _ = await models.for_chat()
    assert model.model == "llama3.1:latest"

    use(monkeypatch, OPENAI_MODEL="missing")
    model, sentence = await models.for_chat()
    assert isinstance(model, DemoLLM)
    assert "ollama pull missing" in sentence


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"models": null}', b'{"models": [null]}', b""])
async def test_something_else_on_ollama_s_port_is_passed_over(ollama: Ollama, answer: bytes) -> None:
    """Whatever answers there, the chat starts."""
    ollama.answers_anything = answer
    model, _ = await models.for_chat()
    assert isinstance(model, DemoLLM)


async def test_a_silent_ollama_does_not_hold_up_the_start(ollama: Ollama) -> None:
    """The look at Ollama has one deadline in all; this server would answer only when the test is over."""
    ollama.hold = True
    async with asyncio.timeout(5):
        model, _ = await models.for_chat()
    assert isinstance(model, DemoLLM)


async def test_a_worker_elsewhere_can_use_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One key is enough to hear, think and speak on a self-hosted server."""
    use(monkeypatch, LIVEKIT_URL="ws://127.0.0.1:7880", OPENAI_API_KEY="sk-x")
    found = await models.for_worker()
    assert isinstance(found.stt, openai.STT)
    assert isinstance(found.llm, openai.LLM)
    assert isinstance(found.tts, openai.TTS)


async def test_agent_settings_elsewhere_need_inference_keys_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Off LiveKit Cloud a leftover AGENT_LLM is ignored; with LiveKit Inference's own keys it is used."""
    use(monkeypatch, OPENAI_API_KEY="sk-x", AGENT_LLM="openai/gpt-4.1", AGENT_STT="deepgram/nova-3")
    assert isinstance((await models.for_worker()).llm, openai.LLM)

    use(monkeypatch, **OWN_INFERENCE)
    found = await models.for_worker()
    assert (found.stt, found.llm) == ("deepgram/nova-3", "openai/gpt-4.1")
    assert isinstance(found.tts, openai.TTS)


@pytest.mark.parametrize(
    "values", [{}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m"}, {"AGENT_STT": "x/y"}]
)
async def test_a_worker_that_cannot_hear_or_speak_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str]
) -> None:
    """One sentence with the ways out; a language model alone makes no spoken call."""
    use(monkeypatch, **values)
    with pytest.raises(settings.SettingsError) as error:
        await models.for_worker()
    assert str(error.value) == models.worker_problem()
    for way_out in ("LIVEKIT_URL", "OPENAI_API_KEY", "locks/voice.txt"):
        assert way_out in str(error.value)


async def test_local_speech_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any account the worker hears and speaks with what this machine has."""
    from local import hibari_tts, whisper_stt

    monkeypatch.setattr(models, "find_spec", lambda name: object())
    monkeypatch.setattr(whisper_stt, "load", lambda: "whisper")
    monkeypatch.setattr(hibari_tts, "load", lambda: "hibari")
    found = await models.for_worker()
    assert (found.stt, found.tts) == ("whisper", "hibari")
    assert isinstance(found.llm, DemoLLM)
    assert found.description.startswith("Whisper on this machine hears, Hibari on this machine speaks.")


async def test_prewarm_loads_speech_only_where_it_will_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on LiveKit Cloud, or without the packages, starts without loading a model."""
    loaded = []
    monkeypatch.setattr(models, "_speech_to_text", lambda: loaded.append("stt"))
    monkeypatch.setattr(models, "_text_to_speech", lambda: loaded.append("tts"))
    models.prewarm()
    assert loaded == []
    monkeypatch.setattr(models, "find_spec", lambda name: object())
    use(monkeypatch, **CLOUD)
    models.prewarm()
    assert loaded == []
    use(monkeypatch, LIVEKIT_URL="ws://127.0.0.1:7880")
    models.prewarm()
    assert loaded == ["stt", "tts"]


async def test_a_text_job_gets_the_chat_s_model_and_no_speech() -> None:
    """A job without audio needs nothing that hears or speaks."""
    found = await models.for_text_job()
    assert found.stt is NOT_GIVEN
    assert found.tts is NOT_GIVEN
    assert isinstance(found.llm, DemoLLM)
