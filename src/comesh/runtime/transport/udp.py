"""The transport of real nodes: UDP, with DTLS inside. The outside is in `packets`, the inside in `frames`.

    send -> a peer's pending messages -> flush: as few datagrams as possible, each sealed once -> socket
    socket -> the session that the datagram names -> opened by DTLS -> messages, fragments, reports

Rules: sending never waits and never fails; what cannot be sent is dropped and counted. Nothing is done for
an unauthenticated datagram but what `sessions` says. One coarse tick sees to all deadlines, so that nothing
on the way of a message sets a timer.
"""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from OpenSSL import SSL

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Credentials
from comesh.runtime.transport import MAX_MESSAGE_BYTES, Deliver, Rest, TransportError, no_rest
from comesh.runtime.transport.addresses import AddressBook, Endpoint, open_sockets
from comesh.runtime.transport.frames import (
    ALONE,
    FORGOT,
    FRAGMENT,
    MAX_ALONE_BYTES,
    MAX_PLAIN_BYTES,
    PROBE,
    PROBED,
    REPORT,
    SEVERAL,
    joined,
    separated,
)
from comesh.runtime.transport.guard import Guard, NobodyRefused
from comesh.runtime.transport.handshakes import Handshakes
from comesh.runtime.transport.long_messages import LongMessages
from comesh.runtime.transport.packets import DATA, DATA_HEADER_BYTES, RECORD_HEADER_BYTES, decode
from comesh.runtime.transport.peer import Peer, PeerStatus, shown
from comesh.runtime.transport.session import Address, Session, Way
from comesh.runtime.transport.settings import MAX_DATAGRAM_BYTES, MAX_READS, TransportSettings

_MIN_DATA_BYTES: Final = DATA_HEADER_BYTES + RECORD_HEADER_BYTES
_APPLICATION: Final = 23
"""The type of a record of DTLS that carries what we say."""
_READ_BYTES: Final = 2048
"""More than a datagram of ours has: a longer one shows as such."""
_TOGETHER_MS: Final = 0.1
"""A datagram that came so soon after the last was done with is not alone. Only then more than one is looked
for: looking in vain costs a call of the system."""
_DEFAULTS: Final = TransportSettings()
_NOBODY_REFUSED: Final = NobodyRefused()


class UdpTransport:
    def __init__(
        self,
        own: NodeId,
        credentials: Credentials,
        *,
        listen: Sequence[Endpoint],
        addresses: Mapping[NodeId, Sequence[Endpoint]],
        settings: TransportSettings = _DEFAULTS,
        guard: Guard = _NOBODY_REFUSED,
    ) -> None:
        if credentials.name != own:
            raise TransportError(f"the credentials are those of {credentials.name}, and this is {own}")
        self._own = own
        self._listen = list(listen)
        self._settings = settings
        self._counters: Counter[str] = Counter()
        self._book = AddressBook(addresses)
        self._handshakes = Handshakes(
            credentials,
            settings,
            self._book,
            self._counters,
            guard=guard,
            transmit=self._transmit,
            ready=self._on_ready,
            part=self._part,
        )
        self._sessions = self._handshakes.sessions
        self._by_id = self._sessions.by_id
        self._peers = self._sessions.peers
        self._long = LongMessages(self._handshakes, self._counters, seal=self._seal)
        self._sockets: list[socket.socket] = []
        self._deliver: Deliver | None = None
        self._rest: Rest = no_rest
        self._loop: asyncio.AbstractEventLoop
        self._dirty: list[Peer] = []
        """Peers with pending messages."""
        self._several = False
        """Says if more than one datagram is to be looked for: the last time there were, or one came soon
        after."""
        self._rested_ms = 0.0
        self._reading = False
        """Datagrams are being read; what is said meanwhile leaves at the end at the latest."""
        self._flush_soon: asyncio.Handle | None = None
        self._tick_handle: asyncio.TimerHandle | None = None
        self._ticks_fast = False
        self._idle_tick_ms = 0.0

    @property
    def counters(self) -> Counter[str]:
        return self._counters

    @property
    def port(self) -> int:
        """The port of the first socket, once open."""
        return self.ports[0]

    @property
    def ports(self) -> list[int]:
        """The ports, in the order of the addresses that are listened on."""
        if not self._sockets:
            raise TransportError("the transport is not open")
        return [one.getsockname()[1] for one in self._sockets]

    @property
    def listens(self) -> tuple[str, ...]:
        """The addresses that are listened on, once open."""
        return tuple(shown(one.getsockname()) for one in self._sockets)

    def peers(self) -> dict[NodeId, PeerStatus]:
        return {name: peer.status() for name, peer in self._peers.items()}

    def set_addresses(self, node: NodeId, addresses: Sequence[Endpoint]) -> None:
        """Sets the addresses of a node. A node that is heard from elsewhere is answered there
        nevertheless."""
        self._book.set(node, addresses)
        peer = self._peers.get(node)
        if self._deliver is None or peer is None:
            return
        known = [address for _, address in self._book.addresses(node, self._clock_ms())]
        if peer.session is not None and peer.session.way.address not in known:
            self._handshakes.begin(peer, self._clock_ms())
        elif peer.attempt is not None:
            peer.attempt.next_knock_ms = 0.0
        self._hurry()

    def take_credentials(self, credentials: Credentials) -> None:
        """Takes other credentials for handshakes from now on; existing sessions go on until they are
        re-keyed."""
        self._handshakes.take_credentials(credentials)

    def end_refused(self) -> None:
        """The guard refuses others than before: sessions with them end now."""
        self._handshakes.end_refused()

    async def open(self, deliver: Deliver, rest: Rest = no_rest) -> None:
        if self._sockets:
            raise TransportError("the transport is open already")
        if not self._listen:
            raise TransportError("there is no address to listen on; give at least one")
        self._sockets = self._handshakes.sockets = await open_sockets(self._listen)
        self._deliver = deliver
        self._rest = rest
        loop = self._loop = asyncio.get_running_loop()
        for one in self._sockets:
            loop.add_reader(one.fileno(), self._on_readable, one)
        self._schedule_tick(fast=False)

    async def close(self) -> None:
        self.flush()
        self._deliver = None
        loop = asyncio.get_running_loop()
        for one in self._sockets:
            loop.remove_reader(one.fileno())
            one.close()
        self._sockets = self._handshakes.sockets = []
        for handle in (self._flush_soon, self._tick_handle):
            if handle is not None:
                handle.cancel()
        self._flush_soon = self._tick_handle = None
        self._handshakes.clear()
        self._dirty.clear()
        self._long.clear()
        await self._book.close()

    # Sending

    def send(self, to: NodeId, message: bytes) -> None:
        if self._deliver is None:
            self._counters["dropped: the transport is not open"] += 1
            return
        size = len(message)
        if size > MAX_MESSAGE_BYTES:
            self._counters["dropped: message too long"] += 1
            return
        peer = self._peers.get(to)
        if peer is None:
            peer = self._new_peer(to)
            if peer is None:
                return
        if not peer.dirty:
            peer.dirty = True
            self._dirty.append(peer)
            if self._flush_soon is None and not self._reading:
                self._flush_soon = self._loop.call_soon(self._flush_now)
        if size <= MAX_ALONE_BYTES:
            peer.pending.append(message)
        else:
            self._long.add(peer, message, self._clock_ms())

    def send_to_all_of(self, to: NodeId, message: bytes) -> None:
        """Sends by replaced sessions that were used, too: they may be those of another process of this
        name."""
        self.send(to, message)
        peer = self._peers.get(to)
        if peer is not None and len(message) <= MAX_ALONE_BYTES:
            for session in [one for one in peer.others if one.confirmed]:
                self._send_messages(peer, session, [message])

    def _new_peer(self, to: NodeId) -> Peer | None:
        if to == self._own:
            self._counters["dropped: to ourselves"] += 1
            return None
        if to not in self._book:
            self._counters["dropped: no address of the peer is known"] += 1
            return None
        return self._sessions.peer(to)

    def _flush_now(self) -> None:
        self._flush_soon = None
        self.flush()

    def flush(self) -> None:
        if not self._dirty:
            return
        dirty, self._dirty = self._dirty, []
        for peer in dirty:
            peer.dirty = False
            messages, peer.pending = peer.pending, []
            session = peer.session
            if session is None or (peer.attempt is not None and peer.attempt.because_gone):
                self._keep(peer, messages)
            if session is not None:
                self._send_messages(peer, session, messages)
                self._long.send(peer, self._clock_ms)
        if self._handshakes.is_busy or self._long.is_busy:
            self._hurry()

    def _keep(self, peer: Peer, messages: list[bytes]) -> None:
        """Keeps a message until there is a new session. With an old session that is said to be gone it is
        tried both ways."""
        now_ms = self._clock_ms()
        peer.wanted_ms = now_ms
        for message in messages:
            dropped = peer.keep(message, now_ms)
            if dropped:
                self._counters["dropped: too many messages wait for a session"] += dropped
        self._handshakes.begin(peer, now_ms)

    def _send_messages(self, peer: Peer, session: Session, messages: list[bytes]) -> None:
        """Together, as many as fit."""
        if not messages:
            return
        self._counters["messages sent"] += len(messages)
        if len(messages) == 1:
            self._seal(peer, session, b"\x01" + messages[0])
            return
        first, size = 0, 1
        for at, message in enumerate(messages):
            size += 2 + len(message)
            if size > MAX_PLAIN_BYTES and at > first:
                self._seal(peer, session, joined(messages[first:at]))
                first, size = at, 3 + len(message)
        self._seal(peer, session, joined(messages[first:]))

    def _seal(self, peer: Peer, session: Session, plain: bytes, *, is_answer: bool = False) -> None:
        """is_answer: nothing is expected to come of it, so silence after it says nothing."""
        try:
            datagram = session.seal(plain)
        except SSL.Error:
            self._counters["dropped: the session broke"] += 1
            self._sessions.remove(session)
            return
        size = len(datagram)
        session.datagrams += 1
        session.bytes += size
        peer.sent_bytes += size
        if not (session.unanswered_ms or is_answer):
            session.unanswered_ms = self._clock_ms()
        self._transmit(session.way, datagram)

    def _part(self, peer: Peer, session: Session, message: bytes) -> None:
        """Tells a peer, once, that a session ends; the message may be lost."""
        if message and len(message) <= MAX_ALONE_BYTES:
            self._seal(peer, session, bytes((ALONE,)) + message)

    def _transmit(self, way: Way, datagram: bytes) -> None:
        try:
            way.socket.sendto(datagram, way.address)
        except OSError as problem:
            self._counters[f"dropped: cannot send ({errno.errorcode.get(problem.errno or 0, 'closed')})"] += 1
        else:
            self._counters["datagrams sent"] += 1
            self._counters["bytes sent"] += len(datagram)

    def _on_ready(self, peer: Peer, session: Session) -> None:
        """There is a new session to send by."""
        if session.initiated:
            self._seal(peer, session, bytes((PROBE,)))
        messages, old = peer.take_waiting(self._clock_ms() - self._settings.waiting_ms)
        if old:
            self._counters["dropped: waited too long for a session"] += old
        self._send_messages(peer, session, messages)
        self._long.send(peer, self._clock_ms)

    # Receiving

    def _on_readable(self, one: socket.socket) -> None:
        now_ms = self._clock_ms()
        self._reading = True
        try:
            for number in range(MAX_READS if self._several else 1):
                try:
                    datagram, address = one.recvfrom(_READ_BYTES)
                except (BlockingIOError, InterruptedError):
                    self._several = number > 1
                    break
                except OSError:
                    self._counters["errors of the network"] += 1
                    continue
                self._on_datagram(datagram, one, address, now_ms)
                if self._deliver is None:  # closed by what came
                    break
            else:
                self._several = self._several or now_ms - self._rested_ms < _TOGETHER_MS
        finally:
            self._rest()
            self._reading = False
            self.flush()
            self._rested_ms = self._clock_ms()

    def _on_datagram(self, datagram: bytes, one: socket.socket, address: Address, now_ms: float) -> None:
        size = len(datagram)
        self._counters["datagrams received"] += 1
        self._counters["bytes received"] += size
        if size > MAX_DATAGRAM_BYTES:
            self._counters["dropped: datagram too long"] += 1
        elif size > _MIN_DATA_BYTES and datagram[0] == DATA:
            session = self._by_id.get(datagram[1:DATA_HEADER_BYTES])
            if session is None:
                self._handshakes.say_gone(datagram[1:DATA_HEADER_BYTES], Way(one, address), now_ms)
            elif not session.established_ms:
                self._counters["dropped: before the handshake was done"] += 1
            else:
                self._on_record(session, datagram[DATA_HEADER_BYTES:], one, address, now_ms)
        else:
            packet = decode(datagram)
            if packet is None:
                self._counters["dropped: not a datagram of ours"] += 1
            else:
                self._handshakes.on_packet(packet, Way(one, address), now_ms)
                if self._handshakes.is_busy:
                    self._hurry()

    def _on_record(
        self, session: Session, record: bytes, one: socket.socket, address: Address, now_ms: float
    ) -> None:
        if record[0] != _APPLICATION or (record[11] << 8 | record[12]) + RECORD_HEADER_BYTES != len(record):
            self._counters["dropped: not a datagram of ours"] += 1
            return
        try:
            plain = session.connection.opened(record)
        except SSL.WantReadError:
            self._counters["dropped: repeated or damaged"] += 1
            return
        except SSL.Error:
            self._counters["dropped: the session broke"] += 1
            self._sessions.remove(session)
            return
        peer: Peer = session.peer
        peer.received_bytes += len(record) + DATA_HEADER_BYTES
        session.heard_ms = now_ms
        session.unanswered_ms = 0.0
        way = session.way
        if way.address != address or way.socket is not one:
            session.way = peer.last_way = Way(one, address)
            self._counters["peers followed to another address"] += 1
        if not session.confirmed:
            self._sessions.on_confirmed(session, now_ms)
        kind = plain[0]
        if kind == ALONE and self._deliver is not None:
            self._counters["messages received"] += 1
            self._deliver(peer.name, plain[1:])
        else:
            self._on_frame(peer, session, plain, now_ms)

    def _on_frame(self, peer: Peer, session: Session, plain: bytes, now_ms: float) -> None:
        kind = plain[0]
        understood = True
        if kind == SEVERAL:
            messages = separated(plain)
            understood = messages is not None
            for message in messages or ():
                self._hand_over(peer, message)
        elif kind == FRAGMENT:
            understood, whole = self._long.on_fragment(peer, session, plain, now_ms)
            self._hurry()
            if whole is not None:
                self._hand_over(peer, whole)
        elif kind == REPORT:
            understood = self._long.on_report(peer, plain, now_ms)
        elif kind == FORGOT:
            understood = self._long.on_forgot(peer, plain)
        elif kind == PROBE:
            self._seal(peer, session, bytes((PROBED,)), is_answer=True)
        else:
            understood = kind == PROBED
        if not understood:
            self._counters["dropped: nonsense from a peer"] += 1

    def _hand_over(self, peer: Peer, message: bytes) -> None:
        if self._deliver is not None:
            self._counters["messages received"] += 1
            self._deliver(peer.name, message)

    # Time

    def _clock_ms(self) -> float:
        return monotonic() * 1000.0

    def _schedule_tick(self, *, fast: bool) -> None:
        if self._tick_handle is not None:
            self._tick_handle.cancel()
        self._ticks_fast = fast
        after_ms = self._settings.busy_tick_ms if fast else self._settings.idle_tick_ms
        self._tick_handle = self._loop.call_later(after_ms / 1000.0, self._on_tick)

    def _hurry(self) -> None:
        """Wakes the loop early, since something has a deadline soon."""
        if not self._ticks_fast and self._deliver is not None:
            self._schedule_tick(fast=True)

    def _on_tick(self) -> None:
        now_ms = self._clock_ms()
        self._handshakes.on_busy_tick(now_ms)
        self._long.on_tick(now_ms)
        if now_ms - self._idle_tick_ms >= self._settings.idle_tick_ms:
            self._idle_tick_ms = now_ms
            for peer in list(self._peers.values()):
                if self._handshakes.on_idle_tick(peer, now_ms) and peer.session is not None:
                    self._seal(peer, peer.session, bytes((PROBE,)))
        self._schedule_tick(fast=self._handshakes.is_busy or self._long.is_busy)
