"""The transport's state of one peer: its sessions, waiting messages, and what the log said of it."""

import secrets
from collections import deque
from dataclasses import dataclass
from typing import Final

from comesh.core.ids import NodeId
from comesh.runtime.transport.fragments import Incoming, Memory, Outgoing
from comesh.runtime.transport.packets import ID_BYTES, NONCE_BYTES
from comesh.runtime.transport.session import Address, Session, Way
from comesh.runtime.transport.settings import MAX_WAITING, MAX_WAITING_BYTES, TransportSettings

NOT_TRIED: Final = "nothing was sent to it yet"


@dataclass(frozen=True)
class PeerStatus:
    """The connection to one peer, for people."""

    address: str
    connected: bool
    why: str
    """Why it is not connected, or empty."""
    sent_bytes: int
    received_bytes: int


class Attempt:
    """An attempt to begin a session with a peer: first a knock, then a handshake."""

    __slots__ = ("because_gone", "began_ms", "knocks", "next_knock_ms", "nonce", "own_id", "session")

    def __init__(self, now_ms: float, *, because_gone: bool) -> None:
        self.nonce = secrets.token_bytes(NONCE_BYTES)
        self.own_id = secrets.token_bytes(ID_BYTES)
        self.session: Session | None = None
        self.began_ms = now_ms
        self.next_knock_ms = now_ms
        self.knocks = 0
        self.because_gone = because_gone


class Peer:
    def __init__(self, name: NodeId, settings: TransportSettings, memory: Memory) -> None:
        self.name = name
        self.session: Session | None = None
        """The session that sends."""
        self.others: list[Session] = []
        """Replaced ones, and those that the peer began and has not used yet."""
        self.attempt: Attempt | None = None
        self.wanted_ms = float("-inf")
        """When something was last to be said to it: only then is a silent peer knocked at."""
        self.gone_ms = float("-inf")
        self.last_way: Way | None = None
        """The way by which the peer last proved who it is."""
        self.pending: list[bytes] = []
        self.dirty = False
        """Says if something was to be sent since the last flush."""
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.waiting_bytes = 0
        self.outgoing = Outgoing(settings, secrets.randbits(62))
        self.incoming = Incoming(settings, memory)
        self.why = NOT_TRIED
        self.sent_bytes = 0
        self.received_bytes = 0

    def keep(self, message: bytes, now_ms: float) -> int:
        """Keeps a message until there is a session. Returns how many older ones were dropped for it."""
        self.waiting.append((now_ms, message))
        self.waiting_bytes += len(message)
        dropped = 0
        while len(self.waiting) > MAX_WAITING or self.waiting_bytes > MAX_WAITING_BYTES:
            self.waiting_bytes -= len(self.waiting.popleft()[1])
            dropped += 1
        return dropped

    def take_waiting(self, not_before_ms: float) -> tuple[list[bytes], int]:
        """Takes the waiting messages, and counts those that were too old."""
        fresh = [message for at_ms, message in self.waiting if at_ms >= not_before_ms]
        old = len(self.waiting) - len(fresh)
        self.waiting.clear()
        self.waiting_bytes = 0
        return fresh, old

    def status(self) -> PeerStatus:
        way = self.session.way if self.session is not None else self.last_way
        return PeerStatus(
            address=shown(way.address) if way is not None else "",
            connected=self.session is not None,
            why="" if self.session is not None else self.why,
            sent_bytes=self.sent_bytes,
            received_bytes=self.received_bytes,
        )


def shown(address: Address) -> str:
    host = f"[{address[0]}]" if ":" in str(address[0]) else str(address[0])
    return f"{host}:{address[1]}"
