"""Which sessions there are, and which of a peer's is used. Decision 15 says why.

Rules: one session per peer is sent by, whoever began it. A newer one replaces it; where both sides began at
once, the one of the smaller name. A session that the peer began is sent by once something came by it, because
only then does the peer surely have it too. A replaced one can be read for a while.
"""

from collections import Counter
from collections.abc import Callable

from comesh.core.ids import NodeId
from comesh.runtime.transport.fragments import Memory
from comesh.runtime.transport.peer import Peer
from comesh.runtime.transport.session import Address, Session
from comesh.runtime.transport.settings import (
    MAX_HALF_OPEN,
    MAX_HALF_OPEN_OF_ONE_HOST,
    MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK,
    MAX_HALF_OPEN_OF_ONE_NETWORK,
    MAX_HALF_OPEN_OF_THE_BOOK,
    MAX_OLD_SESSIONS,
    MAX_PEERS,
    TransportSettings,
)
from comesh.runtime.transport.slots import Slots


class Sessions:
    def __init__(
        self,
        own: NodeId,
        settings: TransportSettings,
        counters: Counter[str],
        used: Callable[[Peer, Session], None],
    ) -> None:
        self._own = own
        self._settings = settings
        self._counters = counters
        self._used = used
        self.peers: dict[NodeId, Peer] = {}
        self.by_id: dict[bytes, Session] = {}
        """Sessions by our id: those with a handshake under way, those in use, and replaced ones."""
        self.by_remote_id: dict[bytes, Session] = {}
        """Established sessions by the peer's id."""
        self.half_open: dict[tuple[Address, bytes], Session] = {}
        """Handshakes that others began, by address and their id."""
        self._slots = Slots(
            MAX_HALF_OPEN,
            of_one_network=MAX_HALF_OPEN_OF_ONE_NETWORK,
            of_one_host=MAX_HALF_OPEN_OF_ONE_HOST,
            chance_ms=settings.chance_ms,
        )
        self._slots_of_the_book = Slots(
            MAX_HALF_OPEN_OF_THE_BOOK,
            of_one_network=MAX_HALF_OPEN_OF_THE_BOOK,
            of_one_host=MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK,
            chance_ms=settings.chance_ms,
        )
        self._answered: dict[tuple[Address, bytes], Session] = {}
        """Established ones that peers began: a repeated HELLO begins nothing."""
        self.memory = Memory()

    def peer(self, name: NodeId) -> Peer | None:
        """Returns the state of a peer; None if there are too many."""
        peer = self.peers.get(name)
        if peer is None:
            if len(self.peers) >= MAX_PEERS:
                self._counters["dropped: too many peers"] += 1
                return None
            peer = self.peers[name] = Peer(name, self._settings, self.memory)
        return peer

    def clear(self) -> None:
        for session in list(self.by_id.values()):
            self.remove(session)
        self.peers.clear()

    def begun_by(self, key: tuple[Address, bytes]) -> Session | None:
        """The session that a HELLO from there with that id began."""
        return self.half_open.get(key) or self._answered.get(key)

    def make_room_for(self, host: str, now_ms: float, *, in_book: bool) -> bool:
        """Makes room for one more handshake from this address; one from another address may go for it."""
        may, victim = self._slots_for(in_book=in_book).make_room(host, now_ms)
        if victim is not None:
            self._counters["handshakes displaced: too many at once"] += 1
            self.remove(victim)
        return may

    def add_half_open(self, session: Session, *, in_book: bool) -> None:
        self.by_id[session.own_id] = session
        self.half_open[session.hello_key] = session
        self._slots_for(in_book=in_book).add(session)

    def _slots_for(self, *, in_book: bool) -> Slots:
        return self._slots_of_the_book if in_book else self._slots

    def add_established(self, peer: Peer, session: Session, now_ms: float) -> None:
        session.peer = peer
        session.established_ms = session.heard_ms = now_ms
        self.by_remote_id[session.remote_id] = session
        if not session.initiated:
            self._leave_half_open(session)
            self._answered[session.hello_key] = session
        peer.last_way = session.way
        if peer.session is not None and not session.confirmed:
            self._put_aside(peer, session, now_ms)
        else:
            self._use_better(peer, session, now_ms)

    def _put_aside(self, peer: Peer, session: Session, now_ms: float) -> None:
        """Keeps a replaced session readable for a while; it sends no more."""
        session.expires_ms = now_ms + self._settings.grace_ms
        peer.others.append(session)
        if len(peer.others) > MAX_OLD_SESSIONS:
            self.remove(peer.others[0])

    def on_confirmed(self, session: Session, now_ms: float) -> None:
        """The first message came by it."""
        session.confirmed = True
        peer: Peer = session.peer
        if session in peer.others:
            peer.others.remove(session)
            self._use_better(peer, session, now_ms)

    def _use_better(self, peer: Peer, new: Session, now_ms: float) -> None:
        current = peer.session
        at_once = (
            current is not None
            and current.initiated != new.initiated
            and new.began_ms < current.established_ms
        )
        if current is not None:
            loser = new if at_once and new.initiated != (self._own < peer.name) else current
            self._put_aside(peer, loser, now_ms)
            if loser is new:
                return
        peer.session = new
        peer.why = ""
        self._used(peer, new)

    def remove(self, session: Session) -> None:
        self.by_id.pop(session.own_id, None)
        if self.by_remote_id.get(session.remote_id) is session:
            del self.by_remote_id[session.remote_id]
        self._leave_half_open(session)
        if self._answered.get(session.hello_key) is session:
            del self._answered[session.hello_key]
        peer: Peer | None = session.peer
        if peer is not None:
            if peer.session is session:
                peer.session = None
            if session in peer.others:
                peer.others.remove(session)

    def _leave_half_open(self, session: Session) -> None:
        if self.half_open.get(session.hello_key) is session:
            del self.half_open[session.hello_key]
            self._slots.discard(session)
            self._slots_of_the_book.discard(session)

    def on_tick(self, peer: Peer, now_ms: float) -> None:
        """Replaced sessions end."""
        for other in list(peer.others):
            if now_ms > max(other.expires_ms, other.heard_ms + self._settings.grace_ms):
                self._retire(peer, other, now_ms)

    def _retire(self, peer: Peer, old: Session, now_ms: float) -> None:
        """Unless the peer uses it and not the one that we took for the newer."""
        current = peer.session
        if (
            current is not None
            and old.confirmed
            and old.heard_ms > current.heard_ms == current.established_ms
        ):
            peer.others.remove(old)
            peer.session = old
            self._put_aside(peer, current, now_ms)
        else:
            self.remove(old)
