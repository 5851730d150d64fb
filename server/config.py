"""The token server's settings, read and checked once, before it listens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import settings
from settings import SettingsError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 3000
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LEAST_SECRET = 32
_HOST_NAME = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, kw_only=True)
class Config:
    livekit_url: str
    """`ws://` or `wss://`, without a trailing slash; what the page connects to."""
    api_key: str
    api_secret: str = field(repr=False)
    secret: str = field(repr=False)
    """Signs cookies and rooms and keys the container tags: another one is another set of visitors."""
    agent_name: str
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    public: bool = False
    """Whether anonymous visitors from other machines were asked for."""
    hosts: frozenset[str] = frozenset()
    """Names that the page is served under, besides the loopback ones."""
    trusted_proxies: tuple[Network, ...] = ()
    """Whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    frontend: Path = settings.ROOT / "frontend"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def address(self, port: int) -> str:
        """What a person on this machine opens; `port` is the one that is listened on."""
        everywhere = self.host in ("0.0.0.0", "::")
        host = "localhost" if self.loopback or everywhere else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def serves(self, host: str) -> bool:
        """Whether a request that names this host (lower case, without a port) is meant for this server.

        On loopback the names are known, so that a page which points its own name at 127.0.0.1 stays
        outside. A public server without TOKEN_SERVER_HOSTS cannot know its names and takes any.
        """
        return host in LOOPBACK_NAMES or host in self.hosts or (not self.loopback and not self.hosts)

    def trusts(self, address: str | None) -> bool:
        """Whether this peer is one of the configured proxies."""
        try:
            peer = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        return any(peer in network for network in self.trusted_proxies)


def load_config() -> Config:
    """The settings of the environment; raises `SettingsError` with the sentence to show."""
    names = ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET")
    settings.require(*names)
    url, api_key, api_secret = (settings.get(name) or "" for name in names)
    return Config(
        livekit_url=_websocket_url(url),
        api_key=api_key,
        api_secret=api_secret,
        secret=_session_secret(api_secret),
        agent_name=settings.agent_name(),
        host=settings.get("TOKEN_SERVER_HOST") or DEFAULT_HOST,
        port=_port(settings.get("TOKEN_SERVER_PORT")),
        public=settings.switch("TOKEN_SERVER_PUBLIC"),
        hosts=frozenset(_host(value) for value in _listed("TOKEN_SERVER_HOSTS")),
        trusted_proxies=tuple(_network(value) for value in _listed("TRUSTED_PROXY")),
    )


def _websocket_url(value: str) -> str:
    wrong = SettingsError(
        f"LIVEKIT_URL={value!r} is not an address like wss://project.livekit.cloud or ws://127.0.0.1:7880."
    )
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    scheme = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}.get(parts.scheme)
    host = f"[{host}]" if ":" in host else host
    # The address goes into a header of every page, where a stray `;` would end the policy.
    if scheme is None or not _HOST_NAME.fullmatch(host) or parts.username or parts.query:
        raise wrong
    return f"{scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _session_secret(api_secret: str) -> str:
    given = settings.get("SESSION_SECRET")
    if given is None:
        return hmac.new(api_secret.encode(), b"token server sessions", hashlib.sha256).hexdigest()
    if len(given) < _LEAST_SECRET:
        raise SettingsError(
            f"SESSION_SECRET has {len(given)} characters; it needs {_LEAST_SECRET}. "
            "Make one with: python3 -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return given


def _port(value: str | None) -> int:
    if value is None:
        return DEFAULT_PORT
    if not re.fullmatch(r"[0-9]{1,5}", value) or int(value) > 65535:
        raise SettingsError(f"TOKEN_SERVER_PORT={value!r} is not a port. Use a number from 1 to 65535.")
    return int(value)


def _listed(name: str) -> list[str]:
    return [part for part in (settings.get(name) or "").split(",") if part]


def _host(value: str) -> str:
    if not _HOST_NAME.fullmatch(value.lower()):
        raise SettingsError(
            f"TOKEN_SERVER_HOSTS names {value!r}. Give names only, such as voice.example.com,www.example.com."
        )
    return value.lower()


def _network(value: str) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        raise SettingsError(
            f"TRUSTED_PROXY names {value!r}, which is no address or network such as 10.0.0.1 or 10.0.0.0/8."
        ) from None
