"""What must hold before a worker takes calls: here a person reads the error, in a call nobody would."""

from __future__ import annotations

import asyncio

import aiohttp
from livekit import api

import settings
from pipeline import turn_handling

KEY_CHECK_TIMEOUT = 5.0
"""Seconds that a worker's start waits for LiveKit to refuse its keys."""


def check_settings() -> None:
    """Raises `SettingsError` for what would fail in the first call, with nobody to see it."""
    settings.require("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET")
    client, _ = settings.memory_client()
    asyncio.run(client.close())
    settings.switch("LIVEKIT_SESSION_HOST")
    turn_handling(cloud=settings.livekit_cloud())
    if not settings.livekit_cloud():
        from local import models

        if problem := models.worker_problem():
            raise settings.SettingsError(problem)


async def check_keys() -> None:
    """Raises `SettingsError` when LiveKit refuses the keys, for which a worker would retry in vain.

    A server that is away, or fails in another way, is the worker's to wait for.
    """
    names = ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET")
    try:
        async with (
            asyncio.timeout(KEY_CHECK_TIMEOUT),
            api.LiveKitAPI(*(settings.get(name) for name in names)) as livekit,
        ):
            await livekit.room.list_rooms(api.ListRoomsRequest(names=["none"]))
    except api.TwirpError as error:
        if error.status == 401:
            raise settings.SettingsError(
                "LiveKit refuses the keys. LIVEKIT_API_KEY and LIVEKIT_API_SECRET must belong to LIVEKIT_URL."
            ) from None
    except (TimeoutError, aiohttp.ClientError):
        pass
