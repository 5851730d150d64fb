"""Settings, read in one place so that the agent, the token server and the chat cannot disagree.

Values come from the environment, then `.env.local`, then `.env`. White space round a value is
stripped and an empty value counts as unset: a copied `.env.example` behaves like no file at all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from supermemory import AsyncSupermemory

ROOT = Path(__file__).resolve().parent
DEFAULT_AGENT_NAME = "memory-agent"

# Since 1.29 onnxruntime, which voice activity detection needs, reports to its makers when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class SettingsError(ValueError):
    """A setting cannot work as it stands; the message names it and says what to do."""


def load() -> None:
    """Reads `.env.local` and `.env` beside this file; what the environment already holds wins.

    A blank value hides nothing: not another file's, and not one of the environment's. A file that is no
    UTF-8 text is reported by the first `get`, since this runs where an error would have no place to go.
    """
    from dotenv import dotenv_values

    for name in (".env.local", ".env"):
        try:
            found = dotenv_values(ROOT / name, encoding="utf-8-sig")
        except UnicodeDecodeError:
            _unreadable.append(f"{name} is not UTF-8 text. Save it again as UTF-8.")
            continue
        for key, value in found.items():
            if value and value.strip() and not os.environ.get(key, "").strip():
                os.environ[key] = value


_unreadable: list[str] = []


def get(name: str) -> str | None:
    """The value of one setting, or None when it is unset or blank.

    Raises `SettingsError` for a value that would fail later in a less obvious place: quotes that
    an env file kept, blanks in the middle, or characters that no HTTP header can carry.
    """
    if _unreadable:
        raise SettingsError(_unreadable[0])
    value = os.environ.get(name, "").strip()
    if not value:
        return None
    if value[0] in "\"'" or value[-1] in "\"'":
        raise SettingsError(f"{name} starts or ends with a quote. Write it without quotes: {name}=value")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise SettingsError(
            f"{name} holds a blank or a character that cannot be sent. Copy it again, without line breaks."
        )
    return value


def path(name: str, default: Path) -> Path:
    """A folder from the environment. Unlike `get`, blanks and any letters are welcome in it."""
    value = os.environ.get(name, "").strip()
    return Path(value).expanduser().resolve() if value else default


def switch(name: str) -> bool:
    """An on/off setting: 1, true, yes or on, and their opposites. Unset is off."""
    value = (get(name) or "0").lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise SettingsError(f"{name}={value!r} is neither on nor off. Use 1 or 0.")


def agent_name() -> str:
    """The name that the worker registers and the token server asks for.

    Read when the agent is imported, where an error would have no place to go: `require` checks it.
    """
    return os.environ.get("LIVEKIT_AGENT_NAME", "").strip() or DEFAULT_AGENT_NAME


def require(*names: str) -> None:
    """Raises one `SettingsError` that names every setting of `names` which is missing."""
    missing = [name for name in names if get(name) is None]
    if missing:
        raise SettingsError(
            f"{' and '.join(missing)} not set. Put {'it' if len(missing) == 1 else 'them'} into .env.local "
            "or the environment; .env.example says where to get them. "
            "Without any account, `python3 run.py` starts a chat in the terminal."
        )
    get("LIVEKIT_AGENT_NAME")


def memory_dir() -> Path:
    """Where a local run keeps its state; `.memory/` beside the code unless MEMORY_DIR says otherwise."""
    return path("MEMORY_DIR", ROOT / ".memory")


def livekit_cloud() -> bool:
    """Whether LIVEKIT_URL points to LiveKit Cloud, the home of LiveKit Inference."""
    address = get("LIVEKIT_URL")
    if address is None:
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        usable = host and parts.scheme in ("wss", "ws", "https", "http") and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        usable = False
    if not usable:
        raise SettingsError(
            f"LIVEKIT_URL={address!r} is not an address like wss://project.livekit.cloud or ws://127.0.0.1:7880."
        )
    return host.endswith(".livekit.cloud")


def check_memory() -> str | None:
    """The Supermemory key, or None for the embedded memory. Raises `SettingsError` for half a setting."""
    key, base_url = get("SUPERMEMORY_API_KEY"), get("SUPERMEMORY_BASE_URL")
    if base_url and not key:
        raise SettingsError(
            f"SUPERMEMORY_BASE_URL={base_url!r} is set without SUPERMEMORY_API_KEY. "
            "Set the key too, or remove the address to use the embedded memory."
        )
    return key


def memory_client() -> tuple[AsyncSupermemory, str]:
    """A client for the memory in use, and its name: `supermemory` with a key, else `embedded`.

    The caller owns the client and closes it.
    """
    key = check_memory()
    if key:
        from memory.errors import MemoryConfigurationError
        from memory.store import make_client

        try:
            return make_client(key, get("SUPERMEMORY_BASE_URL")), "supermemory"
        except MemoryConfigurationError as error:
            raise SettingsError(str(error)) from None
    from memory import embedded

    try:
        return embedded.client(memory_dir() / "memory.sqlite3"), "embedded"
    except embedded.EmbeddedMemoryError as error:
        raise SettingsError(f"{error} MEMORY_DIR chooses the folder.") from None
