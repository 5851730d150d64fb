"""A LiveKit server of one's own, on loopback, for one run: where it is found and how it is set up."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from dataclasses import dataclass, field

from settings import SettingsError

from . import ports

BINARY = "livekit-server"
API_KEY = "local"
HOW_TO_GET_IT = f"""{BINARY} is not on PATH. Get it in one of these ways, then run this again:
  Homebrew          brew install livekit
  Linux             curl -sSL https://get.livekit.io | bash
  container image   docker create --name lk livekit/livekit-server
                    docker cp lk:/livekit-server ~/.local/bin/ && docker rm lk     (Linux)
  Go 1.25 or newer  go install github.com/livekit/livekit-server/cmd/server@v1.11.0
                    mv ~/go/bin/server ~/.local/bin/{BINARY}
Or use LiveKit Cloud: `lk app env -w -d .env.local` writes its keys, and no server is needed here."""


def find_binary() -> str:
    """The server's path; raises `SettingsError` with the ways to get it."""
    found = shutil.which(BINARY)
    if found is None:
        raise SettingsError(HOW_TO_GET_IT)
    return found


@dataclass(frozen=True)
class LiveKitServer:
    binary: str
    port: int
    tcp_port: int
    udp_port: int
    api_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """New for each run; nothing outside of the run knows it."""

    @classmethod
    def on_free_ports(cls, asked: int | None = None) -> LiveKitServer:
        """On LiveKit's usual ports where they are free. `asked` is the signalling port, and no other will do.

        Raises `SettingsError` where it is taken, and where there is no server to start.
        """
        binary = find_binary()
        port = ports.ask(asked, "--livekit-port") if asked is not None else ports.find(7880)
        return cls(binary, port, ports.find(7881), ports.find(7882, ports.UDP))

    @property
    def url(self) -> str:
        return f"ws://{ports.HOST}:{self.port}"

    @property
    def health_url(self) -> str:
        return f"http://{ports.HOST}:{self.port}/"

    @property
    def environment(self) -> dict[str, str]:
        """The server's whole environment: of ours it would read UDP_PORT, REDIS_HOST and others.

        The configuration travels in it because it holds the secret, which a file would leave behind and a
        command line would show.
        """
        return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {
            "LIVEKIT_CONFIG": json.dumps(self.config)
        }

    @property
    def config(self) -> dict[str, object]:
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        return {
            "port": self.port,
            "bind_addresses": [ports.HOST],
            "rtc": {
                "tcp_port": self.tcp_port,
                "udp_port": self.udp_port,
                "node_ip": ports.HOST,
                "enable_loopback_candidate": True,
                "interfaces": {"includes": [loopback]},
                # Left out, the server names public STUN servers to every client, and each looks them up.
                "stun_servers": [f"{ports.HOST}:{self.udp_port}"],
            },
            "keys": {API_KEY: self.api_secret},
            "logging": {"json": True, "level": "info"},
        }
