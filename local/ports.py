"""Ports on loopback: the usual one where it is free, another where it is not."""

from __future__ import annotations

import socket
from contextlib import closing

from settings import SettingsError

HOST = "127.0.0.1"
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM


def find(usual: int = 0, kind: socket.SocketKind = TCP) -> int:
    """The usual port, or one that the system picks when somebody else listens there."""
    try:
        return _bound(usual, kind)
    except OSError:
        return _bound(0, kind)


def ask(port: int | str, named: str) -> int:
    """This port and no other; raises `SettingsError` with the name of what asked for it when it is taken."""
    if not str(port).isdigit() or not 0 < int(port) < 65536:
        raise SettingsError(f"{named}={port} is not a port. Use a number from 1 to 65535.")
    try:
        return _bound(int(port), TCP)
    except OSError as error:
        raise SettingsError(
            f"Port {port} ({named}) cannot be had: {error.strerror}. Choose another one, or leave it out to "
            "have a free one found."
        ) from None


def _bound(port: int, kind: socket.SocketKind) -> int:
    with closing(socket.socket(socket.AF_INET, kind)) as probe:
        if kind == TCP:
            # As the servers themselves do: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])
