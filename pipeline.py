"""What hears, thinks and speaks in a call, and when the caller has finished. Swap it for your own."""

from __future__ import annotations

from typing import Any

from livekit.agents import JobContext, TurnHandlingOptions, inference

import settings


async def pick_models(ctx: JobContext) -> tuple[dict[str, Any], str]:
    """The session's models: LiveKit Inference, else what `local/` finds on this machine."""
    if settings.livekit_cloud():
        names = {
            "stt": settings.get("AGENT_STT") or "deepgram/nova-3:en",
            "llm": settings.get("AGENT_LLM") or "openai/gpt-4.1-mini",
            "tts": settings.get("AGENT_TTS") or "cartesia/sonic-3",
        }
        spoken = {"vad": ctx.proc.userdata["vad"], "turn_handling": turn_handling(cloud=True)}
        return {**names, **spoken}, "LiveKit Inference"
    from local import models

    if ctx.is_fake_job():
        text = await models.for_text_job()
        typed = TurnHandlingOptions(turn_detection=None)
        return {
            "llm": text.llm,
            "vad": None,
            "turn_handling": typed,
            "user_away_timeout": None,
        }, text.description
    found = await models.for_worker()
    heard = {"stt": found.stt, "llm": found.llm, "tts": found.tts}
    spoken = {"vad": ctx.proc.userdata["vad"], "turn_handling": turn_handling(cloud=False)}
    return {**heard, **spoken}, found.description


def turn_handling(*, cloud: bool) -> TurnHandlingOptions:
    """When the caller has finished: TURN_DETECTION=audio listens to the voice, text reads the words."""
    choice = settings.get("TURN_DETECTION") or ("audio" if cloud else "vad")
    if choice == "audio":
        # Elsewhere the default would ask LiveKit Cloud.
        detector: Any = inference.TurnDetector() if cloud else inference.TurnDetector(version="v1-mini")
    elif choice == "text":
        from livekit.plugins.turn_detector.multilingual import MultilingualModel

        detector = MultilingualModel()
    elif choice == "vad":
        detector = "vad"
    else:
        raise settings.SettingsError(f"TURN_DETECTION={choice!r} is not one of audio, text and vad.")
    options = TurnHandlingOptions(turn_detection=detector)
    if not cloud:
        options["interruption"] = {"mode": "vad"}
    return options
