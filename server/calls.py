"""Starting a call, and bringing an agent back into one."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import aiohttp
from aiohttp import web
from livekit import api

from server.callers import Caller, caller_of
from server.errors import ApiError
from server.guard import CONFIG, json_object
from server.limits import TokenBuckets

logger = logging.getLogger(__name__)

LIVEKIT_TIMEOUT = 5.0
DISPATCH_INTERVAL = 5.0  # seconds for an agent to come, before another may be asked for
MOST_NAME = 64  # characters; the token travels in an address

MakeToken = Callable[[Caller, str, str], str]
"""A token from the caller, the room and the name to show."""

LIVEKIT = web.AppKey("livekit", api.LiveKitAPI)
MAKE_TOKEN: web.AppKey[MakeToken] = web.AppKey("make_token")
DISPATCHES = web.AppKey("dispatches", TokenBuckets)

_SERVER_CHOOSES = frozenset(
    {"room_name", "participant_identity", "participant_metadata", "participant_attributes"}
)
_EMPTY: tuple[object, ...] = (None, "", {}, [])


async def token(request: web.Request) -> web.Response:
    """`POST /api/token`, the contract of LiveKit's `TokenSource.endpoint`: a new room for each call."""
    caller = await caller_of(request)
    config = request.app[CONFIG]
    name = requested_name(await json_object(request), config.agent_name)
    answer = {
        "server_url": config.livekit_url,
        "participant_token": request.app[MAKE_TOKEN](caller, caller.new_room(), name),
    }
    return web.json_response(answer, status=201)


def requested_name(body: dict[str, object], agent_name: str) -> str:
    """The display name that a token request asks for, or "".

    Everything else in it has to be empty: rooms, identities, metadata and attributes say whose memory a
    call is about, so a client that could choose them could choose somebody else's.
    """
    name = ""
    for key, value in body.items():
        field = _snake_case(key)
        if value in _EMPTY:
            continue
        if field == "participant_name":
            name = _checked_name(value)
        elif field == "room_config":
            _check_room_config(value, agent_name)
        elif field in _SERVER_CHOOSES:
            _refuse(field, f"{field} is chosen by this server. Leave it out.")
        else:
            _refuse(field[:40], "This request has a field that is not known here. Leave it out.")
    return name


async def dispatch(request: web.Request) -> web.Response:
    """`POST /api/dispatch` with `{"room"}`: sends an agent into the caller's own running call.

    LiveKit offers a job once and forgets it, so a page without an agent asks here. 202: an agent was asked
    for, which is no promise that one is free. 409: one is there. 404: the call is over, or the caller is
    not in it. `lost` is the identity of an agent that stopped answering: it is put out of the room first,
    which LiveKit itself would do 20 s after its process died.
    """
    caller = await caller_of(request)
    body = await json_object(request)
    room, lost = body.get("room"), body.get("lost") or ""
    if not isinstance(room, str) or not isinstance(lost, str):
        raise ApiError(400, "bad_field", 'Send {"room": "..."} and perhaps "lost", the identity of an agent.')
    if not caller.owns(room):
        raise ApiError(403, "not_your_room", "That is not a room of this browser's calls.")
    livekit = request.app[LIVEKIT]
    try:
        agents = await _agents_beside(caller, livekit, room)
        if agents - {lost}:
            raise ApiError(409, "agent_present", "An agent is in the call.")
        # Only now, so that of two requests that both saw no agent one goes on. Jobs would not tell: LiveKit
        # lists one when its agent has joined, and as running for ever when its process was killed.
        if wait := request.app[DISPATCHES].take(room):
            raise ApiError(429, "too_many_requests", "An agent was just asked for.", retry_after=wait)
        if lost in agents:
            await livekit.room.remove_participant(api.RoomParticipantIdentity(room=room, identity=lost))
        await livekit.agent_dispatch.create_dispatch(
            api.CreateAgentDispatchRequest(
                room=room,
                agent_name=request.app[CONFIG].agent_name,
                metadata=dispatch_metadata(caller, room),
                restart_policy=api.JRP_NEVER,
            )
        )
    except api.ServerError as error:
        if error.code == "not_found":
            raise _gone() from None
        logger.warning(
            "LiveKit refused a dispatch", extra={"code": error.code, "livekit_status": error.status}
        )
        raise ApiError(502, "livekit_refused", "LiveKit refused to send an agent.") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        logger.warning("LiveKit was not reached", extra={"exception": type(error).__name__})
        raise ApiError(502, "livekit_unreachable", "LiveKit did not answer. Try again in a moment.") from None
    return web.json_response({"dispatched": True}, status=202)


def dispatch_metadata(caller: Caller, room: str) -> str:
    """What the agent is told about its call. The room is new for each call, so it names the session too."""
    return json.dumps(
        {"container_tag": caller.container_tag, "participant_identity": caller.identity, "session_id": room}
    )


async def livekit_client(app: web.Application) -> AsyncIterator[None]:
    """Keeps one LiveKit client for the life of the server."""
    config = app[CONFIG]
    client = api.LiveKitAPI(
        config.livekit_url,
        config.api_key,
        config.api_secret,
        timeout=aiohttp.ClientTimeout(total=LIVEKIT_TIMEOUT),
    )
    async with client:
        app[LIVEKIT] = client
        yield


async def _agents_beside(caller: Caller, livekit: api.LiveKitAPI, room: str) -> set[str]:
    """The identities of the agents in the caller's call; answers 404 where the caller is not in it."""
    listed = await livekit.room.list_participants(api.ListParticipantsRequest(room=room))
    if all(person.identity != caller.identity for person in listed.participants):
        # A dispatch would open the room again, and its agent would wait for nobody.
        raise _gone()
    return {person.identity for person in listed.participants if person.kind == api.ParticipantInfo.AGENT}


def _gone() -> ApiError:
    return ApiError(404, "room_gone", "This call is over. Start a new one.")


def _check_room_config(value: object, agent_name: str) -> None:
    """Clients of LiveKit name the agent they want here; ours is the only one, and all else is refused."""
    config = (
        {_snake_case(k): v for k, v in value.items() if v not in _EMPTY} if isinstance(value, dict) else None
    )
    agents = config.pop("agents", []) if config is not None else None
    if config == {} and isinstance(agents, list) and len(agents) <= 1:
        for agent in agents:
            wanted = agent.items() if isinstance(agent, dict) else [("", agent)]
            if any((_snake_case(k), v) != ("agent_name", agent_name) for k, v in wanted if v not in _EMPTY):
                break
        else:
            return
    _refuse("room_config", "room_config may name this server's own agent and nothing else.")


def _checked_name(value: object) -> str:
    name = value.strip() if isinstance(value, str) else None
    if (
        name is None
        or len(name) > MOST_NAME
        or any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name)
    ):
        _refuse(
            "participant_name", f"participant_name is text of at most {MOST_NAME} characters on one line."
        )
    return name


def _refuse(field: str, message: str) -> NoReturn:
    raise ApiError(400, "field_not_allowed", message, details={"field": field})


def _snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f"_{match[1].lower()}", key)
