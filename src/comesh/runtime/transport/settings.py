"""Times and amounts of the UDP transport. The defaults suit a mesh with round trips of up to some 200 ms."""

from dataclasses import dataclass
from typing import Final

MAX_DATAGRAM_BYTES: Final = 1_200
"""Maximum bytes of a datagram with everything in it: fits the smallest packet that IPv6 promises to carry
whole."""
RECORD_BYTES: Final = 37
"""Bytes that DTLS 1.2 adds to one record: header 13, nonce 8, tag 16."""
MAX_READS: Final = 64
"""Datagrams read in one wake-up, before others get their turn."""
MAX_PEERS: Final = 4_096
"""Peers remembered at once; all of them have certificates of our authority or stand in the address book."""
MAX_HALF_OPEN: Final = 256
"""Handshakes under way that strangers began."""
MAX_HALF_OPEN_OF_ONE_NETWORK: Final = 128
"""Maximum half-open handshakes of one /24 of IPv4, or /64 of IPv6."""
MAX_HALF_OPEN_OF_ONE_HOST: Final = 64
"""And by one address."""
MAX_HALF_OPEN_OF_THE_BOOK: Final = 256
"""Handshakes under way that came from hosts of the address book, which have these for themselves."""
MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK: Final = 128
"""Maximum half-open handshakes of one address in the book: a whole mesh may live on one machine."""
MAX_WAITING: Final = 256
"""Messages that wait for one peer's session; the oldest are dropped."""
MAX_WAITING_BYTES: Final = 524_288
MAX_OLD_SESSIONS: Final = 8
"""Replaced sessions of one peer that can still be read."""
MAX_ADDRESSES: Final = 8
"""Addresses of one peer that are tried."""
GONE_PER_S: Final = 200
"""Answers to datagrams of unknown sessions."""
SOCKET_BUFFER_BYTES: Final = 4_194_304
"""Asked of the kernel, which may give less."""


@dataclass(frozen=True)
class TransportSettings:
    resend_ms: float = 60.0
    """Time until a part of a handshake is sent again; doubles each time up to max_resend_ms."""
    max_resend_ms: float = 2_000.0
    """Maximum time between repeats, also between knocks at a silent peer while there is something to send."""
    handshake_limit_ms: float = 5_000.0
    """A handshake that takes longer is given up, and begun anew."""
    chance_ms: float = 1_000.0
    """A handshake that others began keeps its slot so long, unless a source with fewer needs it."""
    waiting_ms: float = 3_000.0
    """A message that waited longer for a session is old news, and dropped."""
    gone_ms: float = 1_000.0
    """At most one renewal in this time because somebody said that a session is gone."""
    probe_ms: float = 1_000.0
    """A peer that was sent to and said nothing for so long is asked whether it is there."""
    silent_ms: float = 3_000.0
    """And after this time a new session is tried, at all of its addresses."""
    forget_ms: float = 30_000.0
    """And after this one the session is given up."""
    grace_ms: float = 10_000.0
    """Time in which a replaced session can still be read."""
    rekey_ms: float = 6 * 3_600_000.0
    rekey_bytes: int = 1 << 36
    rekey_datagrams: int = 1 << 30
    """After so long, or so much, a session is replaced by a new one."""
    window: int = 64
    """Fragments on the way to one peer at once: fits the usual receive buffer of a kernel."""
    stalled_ms: float = 30.0
    """Time until a receiver asks for missing fragments; doubles each time."""
    unheard_ms: float = 200.0
    """Time until a sender of fragments that hears nothing sends again; doubles each time up to a second."""
    fragment_tries: int = 8
    """Then the long message is given up."""
    busy_tick_ms: float = 10.0
    idle_tick_ms: float = 500.0
    """Intervals at which deadlines are checked: with handshakes or long messages under way, and without."""
