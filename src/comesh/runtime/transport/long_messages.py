"""Long messages of all peers: what `fragments` says, put into datagrams and on time."""

from collections import Counter
from collections.abc import Callable

from comesh.core.ids import NodeId
from comesh.runtime.transport.frames import decode_forgot, decode_fragment, decode_report, encode_report
from comesh.runtime.transport.handshakes import Handshakes
from comesh.runtime.transport.peer import Peer
from comesh.runtime.transport.session import Session

Seal = Callable[[Peer, Session, bytes], None]


class LongMessages:
    def __init__(self, handshakes: Handshakes, counters: Counter[str], seal: Seal) -> None:
        self._handshakes = handshakes
        self._counters = counters
        self._seal = seal
        self._busy: dict[NodeId, Peer] = {}
        """Peers with long messages under way."""

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def clear(self) -> None:
        self._busy.clear()

    def add(self, peer: Peer, message: bytes, now_ms: float) -> None:
        if peer.outgoing.add(message, now_ms):
            self._busy[peer.name] = peer
            self._counters["messages sent"] += 1
        else:
            self._counters["dropped: too many long messages wait"] += 1

    def send(self, peer: Peer, clock_ms: Callable[[], float]) -> None:
        """Sends the fragments that may go now. The clock is asked only if there are some."""
        if not len(peer.outgoing):
            return
        for plain in peer.outgoing.due(clock_ms()):
            if peer.session is None:
                return
            self._seal(peer, peer.session, plain)

    def on_fragment(
        self, peer: Peer, session: Session, plain: bytes, now_ms: float
    ) -> tuple[bool, bytes | None]:
        """Takes a fragment. Returns whether it was understood, and the whole message if this was the last
        piece."""
        fragment = decode_fragment(plain)
        if fragment is None:
            return False, None
        whole, report = peer.incoming.on_fragment(fragment, now_ms)
        if report is not None:
            self._seal(peer, session, encode_report(report))
        if len(peer.incoming):
            self._busy[peer.name] = peer
        return True, whole

    def on_report(self, peer: Peer, plain: bytes, now_ms: float) -> bool:
        report = decode_report(plain)
        if report is None:
            return False
        for again in peer.outgoing.on_report(report, now_ms):
            self._counters["fragments sent again"] += 1
            if peer.session is not None:
                self._seal(peer, peer.session, again)
        self.send(peer, lambda: now_ms)
        return True

    def on_forgot(self, peer: Peer, plain: bytes) -> bool:
        number = decode_forgot(plain)
        if number is not None:
            peer.incoming.forget(number)
        return number is not None

    def on_tick(self, now_ms: float) -> None:
        for peer in list(self._busy.values()):
            given_up = self._tick(peer, now_ms)
            if given_up:
                self._counters["dropped: long messages given up"] += given_up
            if peer.incoming.given_up:
                self._counters["dropped: long messages never completed"] += peer.incoming.given_up
                peer.incoming.given_up = 0
            if not len(peer.outgoing) and not len(peer.incoming):
                del self._busy[peer.name]

    def _tick(self, peer: Peer, now_ms: float) -> int:
        """Returns how many outgoing messages were given up."""
        for report in peer.incoming.on_tick(now_ms):
            if peer.session is not None:
                self._seal(peer, peer.session, encode_report(report))
        if peer.session is not None:
            given_up = peer.outgoing.on_tick(now_ms)
            self.send(peer, lambda: now_ms)
            return given_up
        given_up = peer.outgoing.wait(now_ms)
        if len(peer.outgoing):
            peer.wanted_ms = now_ms
            self._handshakes.begin(peer, now_ms)
        return given_up
