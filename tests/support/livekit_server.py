"""A real livekit-server on loopback for one test, or for one module of them.

    @pytest.fixture(scope="module")
    def livekit(tmp_path_factory):
        with livekit_server(tmp_path_factory.mktemp("livekit")) as server:
            yield server

The binary is looked up as `livekit-server` on PATH; the test is skipped with that reason where it is absent.
"""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

API_KEY = "devkey"
API_SECRET = "a-secret-of-the-tests-at-least-32-characters-long"
START_TIMEOUT = 20.0


def find_livekit_server() -> str:
    """The path of the server's binary; skips the calling test where there is none."""
    found = shutil.which("livekit-server")
    if found is None:
        pytest.skip("livekit-server is not on PATH (https://docs.livekit.io/home/self-hosting/local/)")
    return found


@dataclass
class LiveKitServer:
    """One server process that can be killed and brought back on the same ports."""

    binary: str
    directory: Path
    port: int
    tcp_port: int
    udp_port: int
    api_key: str = API_KEY
    api_secret: str = API_SECRET
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """What belongs into `LIVEKIT_URL`."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The three variables that an agent and a token server read."""
        return {
            "LIVEKIT_URL": self.url,
            "LIVEKIT_API_KEY": self.api_key,
            "LIVEKIT_API_SECRET": self.api_secret,
        }

    @property
    def log(self) -> str:
        """What all processes of this server have written so far."""
        return (self.directory / "livekit.log").read_text(errors="replace")

    def start(self) -> None:
        """Returns when the server answers; raises with its log when it has not after 20 s."""
        if self.process is not None:
            raise RuntimeError("this livekit-server is already running")
        config = self.directory / "livekit.yaml"
        config.write_text(json.dumps(self._config()))  # JSON is YAML, so no YAML library is needed
        with (self.directory / "livekit.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "--config", str(config)], stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_TIMEOUT
        while not self._healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"livekit-server did not start:\n{self.log}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, as a crash would; safe when it is not running."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.http_url, timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _config(self) -> dict[str, object]:
        return {
            "port": self.port,
            "bind_addresses": ["127.0.0.1"],
            "rtc": {
                "udp_port": self.udp_port,
                "tcp_port": self.tcp_port,
                "node_ip": "127.0.0.1",
                "enable_loopback_candidate": True,
                "interfaces": {"includes": ["lo"]},
                # Without this the server hands public STUN names to every client, which look them up.
                "stun_servers": [f"127.0.0.1:{self.udp_port}"],
            },
            "keys": {self.api_key: self.api_secret},
            "logging": {"level": "info", "json": True},
        }


@contextmanager
def livekit_server(directory: Path) -> Iterator[LiveKitServer]:
    """A running server with its configuration and its log in `directory`, killed at the end."""
    binary = find_livekit_server()
    port, tcp_port, udp_port = _free_ports(socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
    server = LiveKitServer(binary, directory, port, tcp_port, udp_port)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_ports(*kinds: socket.SocketKind) -> list[int]:
    """Different ports that nobody listened on a moment ago: all are held open until the last is found."""
    with ExitStack() as held:
        ports = []
        for kind in kinds:
            probe = held.enter_context(closing(socket.socket(socket.AF_INET, kind)))
            probe.bind(("127.0.0.1", 0))
            ports.append(int(probe.getsockname()[1]))
        return ports
