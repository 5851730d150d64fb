"""A room without a server: people join, type, call methods and leave when the test says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from livekit import rtc


@dataclass
class FakeParticipant:
    """Somebody else in the room; by default a caller on a web page."""

    identity: str
    attributes: dict[str, str] = field(default_factory=dict)
    kind: int = rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD
    metadata: str = ""
    name: str = ""
    sid: str = "PA_caller"
    disconnect_reason: int | None = None
    state: int = rtc.ParticipantState.PARTICIPANT_STATE_ACTIVE
    track_publications: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sent:
    """One text that the agent sent into the room."""

    topic: str
    text: str
    to: tuple[str, ...]
    """Identities it was sent to; empty is everyone."""


class FakeLocalParticipant:
    """The agent's own place in the room, which remembers what it published."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.sid = "PA_agent"
        self.kind = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
        self.attributes: dict[str, str] = {}
        self.methods: dict[str, Callable[[rtc.RpcInvocationData], Any]] = {}
        self.sent: list[Sent] = []

    async def set_attributes(self, attributes: dict[str, str]) -> None:
        self.attributes.update(attributes)

    def register_rpc_method(self, method_name: str, handler: Any = None) -> Any:
        """As in livekit: with a handler, or as a decorator."""
        if handler is None:
            return lambda function: self.register_rpc_method(method_name, function)
        self.methods[method_name] = handler
        return handler

    def unregister_rpc_method(self, method: str) -> None:
        self.methods.pop(method, None)

    async def send_text(
        self, text: str, *, topic: str = "", destination_identities: list[str] | None = None, **_: Any
    ) -> None:
        self.sent.append(Sent(topic, text, tuple(destination_identities or ())))

    async def send_bytes(self, data: bytes, **_: Any) -> None:
        """What the session host reports; no test reads it."""


class FakeRoom(rtc.EventEmitter[str]):
    """Stands in for `rtc.Room` as far as an `AgentSession` that has its own audio uses it.

    Until `connect` it has no name, as the real one. `people` are in it from the start.
    """

    def __init__(self, name: str = "room-1", *people: FakeParticipant) -> None:
        super().__init__()
        self.name = ""
        self.metadata = ""
        self.connection_state = rtc.ConnectionState.CONN_DISCONNECTED
        self.remote_participants = {person.identity: person for person in people}
        self._real_name = name
        self._me = FakeLocalParticipant("fake-agent")
        self._text_handlers: dict[str, Callable[[Any, str], None]] = {}

    @property
    def local_participant(self) -> FakeLocalParticipant:
        if not self.isconnected():
            raise RuntimeError("cannot access local participant before connecting")
        return self._me

    def isconnected(self) -> bool:
        return self.connection_state == rtc.ConnectionState.CONN_CONNECTED

    async def connect(self, url: str, token: str, options: Any = None) -> None:
        self.name = self._real_name
        self.connection_state = rtc.ConnectionState.CONN_CONNECTED
        self.emit("connection_state_changed", self.connection_state)

    async def disconnect(self) -> None:
        self.connection_state = rtc.ConnectionState.CONN_DISCONNECTED
        self.emit("disconnected", "")

    def joins(self, person: FakeParticipant) -> None:
        self.remote_participants[person.identity] = person
        self.emit("participant_connected", person)

    def leaves(self, identity: str, reason: int = rtc.DisconnectReason.CLIENT_INITIATED) -> None:
        person = self.remote_participants.pop(identity)
        person.disconnect_reason = reason
        self.emit("participant_disconnected", person)

    def texts(self, identity: str, text: str, topic: str = "lk.chat") -> None:
        """Somebody sends a text. Raises `KeyError` when the agent listens to no such topic."""
        self._text_handlers[topic](_Text(text), identity)

    async def calls(self, identity: str, method: str, payload: str = "") -> str:
        """Somebody calls a method of the agent; its answer, or what it raised."""
        asked = rtc.RpcInvocationData("request-1", identity, payload, 10.0, method)
        answer = self.local_participant.methods[method](asked)
        result: str = await answer if inspect.isawaitable(answer) else answer
        return result

    def register_text_stream_handler(self, topic: str, handler: Callable[[Any, str], None]) -> None:
        self._text_handlers[topic] = handler

    def unregister_text_stream_handler(self, topic: str) -> None:
        self._text_handlers.pop(topic, None)

    def register_byte_stream_handler(self, topic: str, handler: Any) -> None:
        """The session host listens here; nobody sends."""

    def unregister_byte_stream_handler(self, topic: str) -> None:
        pass


class _Text:
    """An incoming text stream that has arrived whole."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.info = None

    async def read_all(self) -> str:
        return self._text
