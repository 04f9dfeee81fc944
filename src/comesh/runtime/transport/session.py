"""A DTLS session with one peer, over memory: records in, records out.

During the handshake the last flight is kept and sent again as it was until an answer comes: OpenSSL's own
timer begins at a second, which is long in a room. DTLS drops a copy of what came already.
"""

from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.bindings.openssl.binding import Binding
from OpenSSL import SSL

from comesh.runtime.transport.packets import DATA, Flight, encode, split
from comesh.runtime.transport.settings import MAX_DATAGRAM_BYTES, TransportSettings

_FLIGHT_HEADER_BYTES: Final = 42
"""Bytes of the header of a HELLO, which has the longest one."""
_MAX_RECORDS_BYTES: Final = MAX_DATAGRAM_BYTES - _FLIGHT_HEADER_BYTES
_MAX_READ_BYTES: Final = 65_536
_BUFFER_BYTES: Final = 2048
"""More than a datagram of ours has."""
_INSIDE: Final = ("_ssl", "_into_ssl", "_from_ssl", "_raise_ssl_error")
_lib: Final = Binding.lib
_ffi: Final = Binding.ffi

Address = tuple[Any, ...]
"""An address as the socket gives it: host and port, and for IPv6 two numbers more."""


class Way(NamedTuple):
    """A way to reach a peer: one of our sockets, and the peer's address."""

    socket: Any
    address: Address


class BrokenError(Exception):
    """The handshake failed; str() says why, and said is what is left to say to the other side."""

    def __init__(self, why: str, said: list[bytes]) -> None:
        super().__init__(why)
        self.said = said


class _Connection(SSL.Connection):
    """Takes one record at a time in and out by a buffer of its own.

    This is what `send`, `bio_read`, `bio_write` and `recv` do, without what they do besides for each record,
    which takes twice as long as the encryption: new buffers, and a look for problems of a handshake that is
    long over. A pyOpenSSL that is made otherwise inside is asked by these four.
    """

    def __init__(self, context: SSL.Context) -> None:
        super().__init__(context, None)
        self._buffer = _ffi.new("char[]", _BUFFER_BYTES)
        self._bytes = _ffi.buffer(self._buffer)
        self.is_quick = all(hasattr(self, name) for name in _INSIDE)

    def sealed(self, plain: bytes) -> bytes:
        """Returns the plaintext as a record. SSL.Error: the session broke."""
        if not self.is_quick:
            self.send(plain)
            return self.bio_read(_BUFFER_BYTES)
        written = _lib.SSL_write(self._ssl, plain, len(plain))
        if written <= 0:
            self._raise_ssl_error(self._ssl, written)
        size = _lib.BIO_read(self._from_ssl, self._buffer, _BUFFER_BYTES)
        record: bytes = self._bytes[:size]
        return record

    def opened(self, record: bytes) -> bytes:
        """Returns the plaintext of a record. SSL.WantReadError: the record is repeated or damaged; SSL.Error:
        the session broke."""
        if not self.is_quick:
            self.bio_write(record)
            return self.recv(_BUFFER_BYTES)
        _lib.BIO_write(self._into_ssl, record, len(record))
        size = _lib.SSL_read(self._ssl, self._buffer, _BUFFER_BYTES)
        if size <= 0:
            self._raise_ssl_error(self._ssl, size)
        plain: bytes = self._bytes[:size]
        return plain


class Session:
    __slots__ = (
        "began_ms",
        "bytes",
        "confirmed",
        "connection",
        "datagrams",
        "established_ms",
        "expires_ms",
        "flight",
        "heard_ms",
        "hello_key",
        "initiated",
        "next_resend_ms",
        "own_id",
        "peer",
        "prefix",
        "probed_ms",
        "remote_id",
        "resends",
        "unanswered_ms",
        "way",
    )

    def __init__(
        self, context: SSL.Context, own_id: bytes, way: Way, *, initiated: bool, now_ms: float
    ) -> None:
        self.connection = _Connection(context)
        self.connection.set_ciphertext_mtu(_MAX_RECORDS_BYTES)
        if initiated:
            self.connection.set_connect_state()
        else:
            self.connection.set_accept_state()
        self.own_id = own_id
        self.remote_id = b""
        self.prefix = b""
        self.peer: Any = None
        """The peer's name: known from the beginning where we began, from its certificate otherwise."""
        self.way = way
        self.hello_key: tuple[Address, bytes] = ((), b"")
        """The address at which the peer began this session, and the session's id: they identify a repeated
        HELLO."""
        self.initiated = initiated
        self.confirmed = False
        """Says if something came by this session, so that the other side surely has it."""
        self.began_ms = now_ms
        self.established_ms = 0.0
        self.heard_ms = 0.0
        self.unanswered_ms = 0.0
        """Since when it was sent by, with nothing coming; 0 if something came."""
        self.probed_ms = 0.0
        self.expires_ms = 0.0
        self.flight: list[bytes] = []
        self.next_resend_ms = 0.0
        self.resends = 0
        self.datagrams = 0
        self.bytes = 0

    def name_remote(self, remote_id: bytes) -> None:
        self.remote_id = remote_id
        self.prefix = bytes((DATA,)) + remote_id

    def handshake(self, records: bytes) -> tuple[bool, list[bytes]]:
        """Continues the handshake. Returns whether it is done, and what to send: records, in parts that fit a
        datagram."""
        done = True
        try:
            if records:
                self.connection.bio_write(records)
            self.connection.do_handshake()
        except SSL.WantReadError:
            done = False
        except SSL.Error as problem:
            raise BrokenError(_reason(problem), self._said()) from None
        return done, self._said()

    def _said(self) -> list[bytes]:
        try:
            return split(self.connection.bio_read(_MAX_READ_BYTES), _MAX_RECORDS_BYTES)
        except SSL.Error:
            return []

    def keep_flight(self, parts: list[bytes], settings: TransportSettings, now_ms: float) -> None:
        """Keeps a flight, to send it now and again until it is answered."""
        self.flight = [encode(Flight(self.remote_id, self.own_id, part)) for part in parts]
        self.resends = 0
        self.next_resend_ms = now_ms + settings.resend_ms

    def certificate(self) -> x509.Certificate | None:
        return self.connection.get_peer_certificate(as_cryptography=True)

    def seal(self, plain: bytes) -> bytes:
        """A whole datagram."""
        return self.prefix + self.connection.sealed(plain)


_PLAIN: Final = {
    "certificate verify failed": "its certificate was refused: another authority, or expired by our clock",
    "tlsv1 alert internal error": "our certificate was refused: expired by the peer's clock",
    "tlsv1 alert unknown ca": "our certificate was refused: the peer has another authority",
    "peer did not return a certificate": "it showed no certificate",
    "tlsv13 alert certificate required": "our certificate was refused: there is none",
}
"""Plain words for OpenSSL's reasons. Our own look at the dates cannot give it one: internal error."""


def _reason(problem: SSL.Error) -> str:
    """Returns the last reason in OpenSSL's list of places and reasons, in plain words."""
    reasons = problem.args[0] if problem.args and isinstance(problem.args[0], list) else []
    reason = str(reasons[-1][-1]) if reasons else type(problem).__name__
    return _PLAIN.get(reason, reason)
