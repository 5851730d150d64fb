"""Rate limits: every token starts a paid call, so nobody gets them faster than people talk."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from server.config import Config

MOST_BUCKETS = 10_000


class TokenBuckets:
    """One bucket per key: `burst` at once, then one each `interval` seconds.

    At most `MOST_BUCKETS` are kept. The one unused for longest goes first: it has refilled most, so
    forgetting it gives the least away.
    """

    def __init__(self, burst: int, interval: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._interval = interval
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Takes one; returns 0.0, or the seconds to wait when there is none."""
        now = self._clock()
        tokens, since = self._buckets.pop(key, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._interval)
        wait = 0.0 if tokens >= 1 else (1 - tokens) * self._interval
        self._buckets[key] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait

    def __len__(self) -> int:
        return len(self._buckets)


def client_address(peer: str | None, forwarded: Sequence[str], config: Config) -> str:
    """What an address is limited by: its own for IPv4, its /64 for IPv6, where one person has them all.

    `forwarded` holds the `X-Forwarded-For` headers. They are read from the right, and only as far as
    configured proxies vouch for them: anybody can send such a header.
    """
    address = peer or ""
    hops = [hop.strip() for header in forwarded for hop in header.split(",")]
    while hops and config.trusts(address):
        hop = _without_port(hops.pop())
        if not _is_address(hop):
            break
        address = hop
    if not _is_address(address):
        return "unknown"
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed.packed, 64), strict=False))


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
