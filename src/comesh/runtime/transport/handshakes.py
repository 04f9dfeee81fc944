"""Begins sessions: knocks, cookies, flights, and who may begin anew when. Decision 15 says why.

    we:    KNOCK ->             HELLO ->            FLIGHT ->
    peer:           <- COOKIE            <- FLIGHT             <- FLIGHT

Rules: nothing is kept for a stranger without a valid cookie, and no answer to it is longer than what it sent.
What an unauthenticated datagram says costs at most a handshake; `slots` says how many of them. Every part is
repeated until answered, ever slower; a handshake has its time; a silent peer is knocked at only as long as
there is something to say to it.
"""

import secrets
import socket
from collections import Counter
from collections.abc import Callable
from typing import Final

from cryptography import x509

from comesh.runtime.credentials import Credentials, name_in
from comesh.runtime.transport.addresses import AddressBook
from comesh.runtime.transport.cookies import Cookies
from comesh.runtime.transport.guard import Guard
from comesh.runtime.transport.packets import (
    ID_BYTES,
    VERSION,
    Cookie,
    Flight,
    Gone,
    Hello,
    Knock,
    OtherVersion,
    Packet,
    encode,
)
from comesh.runtime.transport.peer import Attempt, Peer, shown
from comesh.runtime.transport.session import BrokenError, Session, Way
from comesh.runtime.transport.sessions import Sessions
from comesh.runtime.transport.settings import GONE_PER_S, MAX_ADDRESSES, TransportSettings

BACKOFF_KNOCKS: Final = 4
"""After a failed handshake it is waited as long as after so many knocks without an answer, at least."""


class Handshakes:
    def __init__(
        self,
        credentials: Credentials,
        settings: TransportSettings,
        book: AddressBook,
        counters: Counter[str],
        *,
        guard: Guard,
        transmit: Callable[[Way, bytes], None],
        ready: Callable[[Peer, Session], None],
        part: Callable[[Peer, Session, bytes], None],
    ) -> None:
        self._own = credentials.name
        self._context = credentials.context()
        self._settings = settings
        self._book = book
        self._counters = counters
        self._guard = guard
        self._transmit = transmit
        self._ready = ready
        self._part = part
        self.sockets: list[socket.socket] = []
        self.sessions = Sessions(self._own, settings, counters, self._on_used)
        self._attempts: dict[bytes, Peer] = {}
        """Attempts by their nonce."""
        self._cookies = Cookies()
        self._gone_second = 0
        self._gone_left = 0

    @property
    def is_busy(self) -> bool:
        return bool(self._attempts or self.sessions.half_open)

    def clear(self) -> None:
        self._attempts.clear()
        self.sessions.clear()

    def take_credentials(self, credentials: Credentials) -> None:
        """New handshakes are made with these; sessions go on."""
        self._context = credentials.context()

    # Beginning a session ourselves

    def begin(self, peer: Peer, now_ms: float, *, because_gone: bool = False) -> None:
        if peer.attempt is not None:
            peer.attempt.because_gone |= because_gone
            return
        self._start(peer, Attempt(now_ms, because_gone=because_gone))
        self._knock(peer, now_ms)

    def _start(self, peer: Peer, attempt: Attempt) -> None:
        peer.attempt = attempt
        self._attempts[attempt.nonce] = peer

    def _end(self, peer: Peer) -> None:
        if peer.attempt is not None:
            del self._attempts[peer.attempt.nonce]
            peer.attempt = None

    def _knock(self, peer: Peer, now_ms: float) -> None:
        attempt = peer.attempt
        if attempt is None:
            return
        attempt.next_knock_ms = now_ms + self._pause_ms(attempt.knocks)
        attempt.knocks += 1
        ways = self._ways(peer, now_ms)
        if peer.session is None and attempt.knocks > 1:
            where = ", ".join(shown(way.address) for way in ways)
            peer.why = f"no answer from {where}" if ways else "no address of it is known"
        datagram = encode(Knock(VERSION, attempt.nonce, attempt.own_id))
        for way in ways:
            self._transmit(way, datagram)

    def _pause_ms(self, tries: int) -> float:
        return min(self._settings.resend_ms * 2.0 ** min(tries, 16), self._settings.max_resend_ms)

    def _ways(self, peer: Peer, now_ms: float) -> list[Way]:
        """Returns the way by which a peer last proved who it is, and all ways of the address book."""
        ways = [peer.last_way] if peer.last_way is not None else []
        for family, address in self._book.addresses(peer.name, now_ms):
            through = next((one for one in self.sockets if one.family == family), None)
            if through is not None and all(way.address != address for way in ways):
                ways.append(Way(through, address))
        return ways[:MAX_ADDRESSES]

    def _fail(self, peer: Peer, why: str, now_ms: float) -> None:
        """The handshake that we began came to nothing: later again, with new numbers."""
        peer.why = why
        before = peer.attempt
        if before is None:
            return
        self._end(peer)
        if before.session is not None:
            self.sessions.remove(before.session)
        attempt = Attempt(now_ms, because_gone=before.because_gone)
        attempt.began_ms = before.began_ms
        attempt.knocks = max(before.knocks, BACKOFF_KNOCKS)
        attempt.next_knock_ms = now_ms + self._pause_ms(attempt.knocks)
        self._start(peer, attempt)

    # What comes from outside

    def on_packet(self, packet: Packet, way: Way, now_ms: float) -> None:
        match packet:
            case Knock():
                self._on_knock(packet, way, now_ms)
            case Cookie():
                self._on_cookie(packet, way, now_ms)
            case OtherVersion():
                self._on_other_version(packet, way)
            case Hello():
                self._on_hello(packet, way, now_ms)
            case Flight():
                self._on_flight(packet, way, now_ms)
            case Gone():
                self._on_gone(packet, now_ms)

    def _on_knock(self, knock: Knock, way: Way, now_ms: float) -> None:
        if knock.version != VERSION:
            self._counters["dropped: another version"] += 1
            self._transmit(way, encode(OtherVersion(VERSION, knock.nonce)))
            return
        cookie = self._cookies.bake(way.address, knock.nonce, knock.session, now_ms)
        self._transmit(way, encode(Cookie(knock.nonce, cookie)))

    def _on_other_version(self, other: OtherVersion, way: Way) -> None:
        peer = self._attempts.get(other.nonce)
        if peer is not None:
            peer.why = f"{shown(way.address)} speaks version {other.version}, and we speak {VERSION}"

    def _on_cookie(self, cookie: Cookie, way: Way, now_ms: float) -> None:
        peer = self._attempts.get(cookie.nonce)
        attempt = peer.attempt if peer is not None else None
        if peer is None or attempt is None or attempt.session is not None:
            return
        session = Session(self._context, attempt.own_id, way, initiated=True, now_ms=now_ms)
        session.peer = peer
        attempt.session = session
        self.sessions.by_id[session.own_id] = session
        try:
            _, parts = session.handshake(b"")
        except BrokenError as problem:
            self._fail(peer, str(problem), now_ms)
            return
        session.keep_flight(parts, self._settings, now_ms)
        session.flight = [encode(Hello(cookie.cookie, cookie.nonce, session.own_id, part)) for part in parts]
        self._say(session)

    def _on_hello(self, hello: Hello, way: Way, now_ms: float) -> None:
        if not self._cookies.is_ours(hello.cookie, way.address, hello.nonce, hello.session, now_ms):
            self._counters["dropped: no valid cookie"] += 1
            return
        key = (way.address, hello.session)
        known = self.sessions.begun_by(key)
        if known is not None:
            self._say_again(known, now_ms)
            return
        host = str(way.address[0])
        in_book = self._book.has_host(host)
        if not self.sessions.make_room_for(host, now_ms, in_book=in_book):
            self._counters["dropped: too many handshakes at once"] += 1
            return
        own_id = secrets.token_bytes(ID_BYTES)
        session = Session(self._context, own_id, way, initiated=False, now_ms=now_ms)
        session.name_remote(hello.session)
        session.hello_key = key
        self.sessions.add_half_open(session, in_book=in_book)
        self._advance(session, hello.records, now_ms)

    def _on_flight(self, flight: Flight, way: Way, now_ms: float) -> None:
        session = self.sessions.by_id.get(flight.to)
        if session is None:
            self.say_gone(flight.to, way, now_ms)
            return
        if session.established_ms:
            self._say_again(session, now_ms)  # the other side has not got our last flight
            return
        if not session.remote_id:
            session.name_remote(flight.session)
        elif session.remote_id != flight.session:
            self._counters["dropped: not of this handshake"] += 1
            return
        self._advance(session, flight.records, now_ms)

    def _on_gone(self, gone: Gone, now_ms: float) -> None:
        session = self.sessions.by_remote_id.get(gone.session)
        if session is None:
            return
        peer: Peer = session.peer
        if session is not peer.session:
            self.sessions.remove(session)
        elif now_ms - peer.gone_ms >= self._settings.gone_ms:
            peer.gone_ms = now_ms
            self._counters["sessions gone"] += 1
            self.begin(peer, now_ms, because_gone=True)

    def say_gone(self, session: bytes, way: Way, now_ms: float) -> None:
        self._counters["dropped: unknown session"] += 1
        second = int(now_ms / 1000.0)
        if second != self._gone_second:
            self._gone_second, self._gone_left = second, GONE_PER_S
        if self._gone_left > 0:
            self._gone_left -= 1
            self._transmit(way, encode(Gone(session)))

    # Handshakes

    def _say(self, session: Session) -> None:
        for datagram in session.flight:
            self._transmit(session.way, datagram)

    def _say_again(self, session: Session, now_ms: float) -> None:
        """Repeats a flight, not more often than the timer would: a repeated datagram must not be an
        amplifier."""
        if now_ms >= session.next_resend_ms:
            session.resends += 1
            session.next_resend_ms = now_ms + self._pause_ms(session.resends)
            self._say(session)

    def _advance(self, session: Session, records: bytes, now_ms: float) -> None:
        try:
            done, parts = session.handshake(records)
        except BrokenError as problem:
            self._counters["handshakes failed"] += 1
            session.keep_flight(problem.said, self._settings, now_ms)
            self._say(session)
            self._give_up(session, f"{shown(session.way.address)}: {problem}", now_ms)
            return
        if parts:
            session.keep_flight(parts, self._settings, now_ms)
            self._say(session)
        if done:
            self._on_established(session, now_ms)

    def _give_up(self, session: Session, why: str, now_ms: float) -> None:
        if session.initiated:
            self._fail(session.peer, why, now_ms)
        self.sessions.remove(session)

    def _on_established(self, session: Session, now_ms: float) -> None:
        certificate = session.certificate()
        name = name_in(certificate) if certificate is not None else None
        if name is None or name == self._own or (session.initiated and name != session.peer.name):
            self._counters["dropped: certificate of another name"] += 1
            self._give_up(session, f"{shown(session.way.address)} is {name or 'no node'}", now_ms)
            return
        peer = self.sessions.peer(name)
        if peer is None:
            self.sessions.remove(session)
            return
        why = self._guard.why_refused(certificate) if certificate is not None else ""
        if certificate is not None and why:
            self._counters["handshakes refused by the guard"] += 1
            self._part_with(peer, session, certificate, why)
            self._give_up(session, peer.why, now_ms)
            return
        self._counters["sessions established"] += 1
        if session.initiated:
            session.flight = []
            session.confirmed = True
            self._end(peer)
        self.sessions.add_established(peer, session, now_ms)

    def end_refused(self) -> None:
        """End all sessions with those who are refused from now on."""
        for session in list(self.sessions.by_id.values()):
            certificate = session.certificate() if session.established_ms else None
            why = self._guard.why_refused(certificate) if certificate is not None else ""
            if certificate is not None and why:
                self._counters["sessions ended by the guard"] += 1
                self._part_with(session.peer, session, certificate, why)
                self.sessions.remove(session)

    def _part_with(self, peer: Peer, session: Session, certificate: x509.Certificate, why: str) -> None:
        """It proved who it is, so it may know why; nothing that it says is read any more."""
        at = shown(session.way.address)
        self._part(peer, session, self._guard.farewell(peer.name, certificate, at, why))
        if peer.last_way is not None and peer.last_way.address == session.way.address:
            peer.last_way = None
        if peer.session is None or peer.session is session:
            peer.why = f"{at} {why}"

    def _on_used(self, peer: Peer, session: Session) -> None:
        """The peer's sessions now have this one in front: what we begin at the same time may be needless."""
        attempt = peer.attempt
        if attempt is not None and not session.initiated:
            begun = attempt.session
            if begun is None or (not begun.remote_id and peer.name < self._own):
                self._end(peer)
                if begun is not None:
                    self.sessions.remove(begun)
        self._ready(peer, session)

    # Time

    def on_busy_tick(self, now_ms: float) -> None:
        for peer in list(self._attempts.values()):
            self._tick_attempt(peer, now_ms)
        for session in list(self.sessions.half_open.values()):
            if now_ms - session.began_ms > self._settings.handshake_limit_ms:
                self._counters["handshakes given up"] += 1
                self.sessions.remove(session)
            else:
                self._say_again(session, now_ms)

    def _tick_attempt(self, peer: Peer, now_ms: float) -> None:
        attempt = peer.attempt
        if attempt is None:
            return
        settings = self._settings
        if attempt.session is not None:
            if now_ms - attempt.session.began_ms > settings.handshake_limit_ms:
                self._counters["handshakes given up"] += 1
                self._fail(peer, f"{shown(attempt.session.way.address)}: the handshake took too long", now_ms)
            else:
                self._say_again(attempt.session, now_ms)
            return
        wanted = peer.session is None and now_ms - peer.wanted_ms <= settings.waiting_ms
        if not wanted and now_ms - attempt.began_ms > settings.handshake_limit_ms:
            self._end(peer)
        elif now_ms >= attempt.next_knock_ms:
            self._knock(peer, now_ms)

    def on_idle_tick(self, peer: Peer, now_ms: float) -> bool:
        """Sees to the peer's sessions; True if it is to be asked whether it is there."""
        settings = self._settings
        self.sessions.on_tick(peer, now_ms)
        session = peer.session
        if session is None:
            return False
        factor = 1 if session.initiated else 2  # so that not both begin
        if (
            now_ms - session.established_ms > settings.rekey_ms * factor
            or session.bytes > settings.rekey_bytes * factor
            or session.datagrams > settings.rekey_datagrams * factor
        ):
            self.begin(peer, now_ms)
        silent_ms = now_ms - session.unanswered_ms if session.unanswered_ms else 0.0
        if silent_ms > settings.forget_ms:
            peer.why = f"nothing heard for {settings.forget_ms / 1000:.0f} s"
            self.sessions.remove(session)
            return False
        if silent_ms > settings.silent_ms:
            self.begin(peer, now_ms)
        if silent_ms > settings.probe_ms and now_ms - session.probed_ms >= settings.probe_ms:
            session.probed_ms = now_ms
            return True
        return False
