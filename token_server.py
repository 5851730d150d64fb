"""Who a caller is, and what their token lets them do: `uv run token_server.py`.

It serves the page in `frontend/`, hands out tokens for calls with the agent, and shows people what is
remembered of them. What it knows of a visitor is in their signed cookie, so any number of these may run
side by side under one SESSION_SECRET; each counts its own rate limits. It loads
`livekit.api` and a part of `memory/`, and none of livekit.agents.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

from aiohttp import web
from livekit import api
from supermemory import AsyncSupermemory

import settings
from memory.identity import TAG_ATTRIBUTE
from memory.store import MemoryStore
from server import calls, logs, memories
from server.callers import (
    KEYS,
    RESOLVE,
    SESSION,
    Caller,
    Keys,
    ResolveSubject,
    Session,
    anonymous,
    is_anonymous,
    visitor,
)
from server.config import Config, load_config
from server.guard import CONFIG, LIMITS, MIDDLEWARES, MOST_BODY, Limits, security_headers
from server.limits import TokenBuckets
from server.page import Page
from settings import SettingsError

logger = logging.getLogger("token_server")

TOKEN_LIFE = timedelta(minutes=5)  # to connect with; a call that has begun goes on
DEPARTURE_TIMEOUT = 3  # seconds; LiveKit's own 20 keep an agent waiting, and paid for, in an empty room
SHUTDOWN_TIMEOUT = 20.0  # seconds for running requests; forgetting everything can take a while


@anonymous
async def resolve_subject(request: web.Request) -> str | None:
    """Who is asking: something stable and unique to one person, or None for nobody.

    **The one function that a deployment replaces**, together with the mark above it. Here a visitor is
    their browser's signed cookie: remembered there, unknown anywhere else. Behind a proxy that signs
    people in, with its address in TRUSTED_PROXY and the header removed from what comes from outside:

        async def resolve_subject(request: web.Request) -> str | None:
            if not request.app[CONFIG].trusts(request.remote):
                return None
            return request.headers.get("X-Auth-Request-User")

    The container tag is a keyed hash of it, so it may be an e-mail address or a phone number.
    """
    return visitor(request)


def call_token(config: Config, caller: Caller, room: str, name: str) -> str:
    """A token for one call: this room, this identity, the microphone, and our agent.

    It cannot change its own attributes, so the container tag in them is as good as our signature. The
    agent is dispatched when the room is created. The page replaces an agent that is lost; LiveKit is told
    not to, or there would be two.
    """
    grants = api.VideoGrants(
        room_join=True,
        room=room,
        can_publish=True,
        can_publish_sources=["microphone"],
        can_subscribe=True,
        can_publish_data=True,
        can_update_own_metadata=False,
    )
    agent = api.RoomAgentDispatch(
        agent_name=config.agent_name,
        metadata=calls.dispatch_metadata(caller, room),
        restart_policy=api.JRP_NEVER,
    )
    # Agents do not count as participants.
    room_config = api.RoomConfiguration(
        agents=[agent], max_participants=1, departure_timeout=DEPARTURE_TIMEOUT
    )
    return (
        api.AccessToken(config.api_key, config.api_secret)
        .with_identity(caller.identity)
        .with_name(name)
        .with_ttl(TOKEN_LIFE)
        .with_attributes({TAG_ATTRIBUTE: caller.container_tag})
        .with_grants(grants)
        .with_room_config(room_config)
        .to_jwt()
    )


def content_security_policy(config: Config, page: Page) -> str:
    """What the page may load and reach: itself, LiveKit, and one library file where npm has not run."""
    secure = config.livekit_url.startswith("wss://")
    address = config.livekit_url.partition("://")[2].partition("/")[0]
    reach = f"wss://{address} https://{address}" if secure else f"ws://{address} http://{address}"
    if address.endswith(".livekit.cloud"):
        # LiveKit Cloud moves a client to the region that is nearest.
        reach += " wss://*.livekit.cloud https://*.livekit.cloud"
    return (
        f"default-src 'none'; script-src 'self'{page.script_source}; style-src 'self'; img-src 'self' data:; "
        f"media-src 'self'; connect-src 'self' {reach}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


async def reset_session(request: web.Request) -> web.Response:
    """`POST /api/session/reset`: this browser becomes a new visitor."""
    request[SESSION] = Session.new()
    if is_anonymous(request.app[RESOLVE]):
        message = (
            "This browser is a new visitor now. What was remembered before still exists, and nobody can "
            "reach it from here any more: to have it deleted, forget it before starting anew."
        )
    else:
        message = "This browser starts anew. Your memory belongs to your sign-in and stays as it is."
    return web.json_response({"message": message})


async def health(request: web.Request) -> web.Response:
    """`GET /healthz`: the server answers. It asks neither LiveKit nor the memory."""
    return web.json_response({"status": "ok"})


def create_app(
    config: Config,
    memory: AsyncSupermemory,
    store_name: str,
    resolve: ResolveSubject = resolve_subject,
) -> web.Application:
    """The server. `memory` stays the property of whoever made it; `store_name` is shown on the page."""
    page = Page(config.frontend)
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=MOST_BODY)
    app[CONFIG] = config
    app[KEYS] = Keys(config.secret)
    app[RESOLVE] = resolve
    app[LIMITS] = Limits()
    app[memories.STORE] = MemoryStore(memory)
    app[memories.STORE_NAME] = store_name
    app[calls.MAKE_TOKEN] = lambda caller, room, name: call_token(config, caller, room, name)
    app[calls.DISPATCHES] = TokenBuckets(burst=1, interval=calls.DISPATCH_INTERVAL)
    app.cleanup_ctx.append(calls.livekit_client)
    app.on_response_prepare.append(security_headers(content_security_policy(config, page)))
    app.add_routes(
        [
            web.get("/", page.index),
            web.get("/static/{name:.+}", page.static),
            web.post("/api/token", calls.token),
            web.post("/api/dispatch", calls.dispatch),
            web.get("/api/memories", memories.show),
            web.delete("/api/memories", memories.forget_all),
            web.get("/api/memories/export", memories.export),
            web.delete("/api/memories/{id}", memories.forget_one),
            web.post("/api/session/reset", reset_session),
            web.get("/healthz", health),
        ]
    )
    return app


async def _serving(config: Config, address: str) -> web.Application:
    """The server with the memory of the environment, made in the loop that will use it."""
    client, store_name = settings.memory_client()
    app = create_app(config, client, store_name)

    async def close_memory(app: web.Application) -> AsyncIterator[None]:
        yield
        await client.close()

    app.cleanup_ctx.append(close_memory)
    logger.info("starting", extra={"store": store_name, "agent_name": config.agent_name})
    if not Page(config.frontend).has_library:
        sys.stdout.write("livekit-client comes from a CDN; `npm ci --prefix frontend` puts it here.\n")
    sys.stdout.write(f"Open {address} in a browser.\n")
    sys.stdout.flush()
    return app


def check_exposure(config: Config, resolve: ResolveSubject = resolve_subject) -> None:
    """Raises where strangers could start paid calls without anybody having asked for that."""
    if not config.loopback and not config.public and is_anonymous(resolve):
        raise SettingsError(
            f"TOKEN_SERVER_HOST={config.host} lets other machines in, and resolve_subject in "
            "token_server.py knows nobody: anyone could start calls that you pay for. Replace it with your "
            "sign-in, or set TOKEN_SERVER_PUBLIC=1 when that is what you want."
        )


def main() -> None:
    """Serves until SIGTERM or Ctrl-C, lets running requests finish, and exits; 1 where nothing can work."""
    settings.load()
    logs.configure()
    try:
        config = load_config()
        check_exposure(config)
        listening = _listen(config)
        address = config.address(listening.getsockname()[1])
        # Its own access log names addresses; `server.guard` writes one that does not.
        web.run_app(
            _serving(config, address),
            sock=listening,
            print=None,
            access_log=None,
            shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
    except SettingsError as error:
        sys.exit(str(error))


def _listen(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=128)
    except OSError as error:
        raise SettingsError(
            f"Cannot listen on {config.host}:{config.port}: {error.strerror}. "
            "Choose another TOKEN_SERVER_HOST or TOKEN_SERVER_PORT."
        ) from None


if __name__ == "__main__":
    main()
