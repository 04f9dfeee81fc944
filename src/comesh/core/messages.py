"""What nodes say to each other, and its bytes.

A datagram is one byte of wire version, then MessagePack of `[incarnation, deployment, message]`,
each message an array that starts with its number. Fields are only ever added at the end, with a default;
anything else raises WIRE_VERSION, and an unknown version is refused by name instead of misread.

States and documents repeat names and fields: where that is long, what follows the first byte is deflated, and
the byte's highest bit says so. Membership says many short things, and is never.
"""

import zlib
from enum import IntEnum

import msgspec

from comesh.core.group_messages import InConfig
from comesh.core.ids import Counter, DurationMs, Incarnation, NodeId
from comesh.core.work_messages import DocumentAsked, DocumentGiven, GroupMessage

WIRE_VERSION = 2
DEFLATED = 0x80
DEFLATED_FROM_BYTES = 128
MAX_DATAGRAM_BYTES = 1_048_576
"""Upper bound of one decoded message; the transport fragments well below it."""


class MemberState(IntEnum):
    """How a member is believed to be. At one incarnation a higher state overrides a lower one."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


class MemberUpdate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An update about a member. by names who suspects, so that independent suspicions can be counted."""

    node: NodeId
    state: MemberState
    incarnation: Incarnation
    by: NodeId | None = None


class Announcement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Opaque data that rides along to everyone; of two with one key the higher version stays."""

    key: str
    version: Counter
    value: bytes


class GossipItems(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What rides on every membership message: a bounded number of each kind."""

    members: tuple[MemberUpdate, ...] = ()
    announcements: tuple[Announcement, ...] = ()


class _Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages."""


class Ping(_Message, frozen=True, tag=1):
    """Are you there? number comes back in the Ack."""

    number: int
    gossip: GossipItems


class Ack(_Message, frozen=True, tag=2):
    """Here I am; or, from a helper, target is (and this is its incarnation)."""

    number: int
    gossip: GossipItems
    target: NodeId | None = None
    target_incarnation: Incarnation | None = None


class PingRequest(_Message, frozen=True, tag=3):
    """I can't reach target: would you try for wait_ms, and pass its Ack on to me, or a Nack?"""

    number: int
    target: NodeId
    wait_ms: DurationMs
    gossip: GossipItems


class Gossip(_Message, frozen=True, tag=4):
    """News that should not wait for the next probe."""

    gossip: GossipItems


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names from low on, up to but not including high; None: to the end."""

    low: str
    high: str | None

    def has(self, name: str) -> bool:
        return self.low <= name and (self.high is None or name < self.high)


class Exchange(_Message, frozen=True, tag=5):
    """Compare all that we know, first by digest. answer: the digests are equal. members: the digest of the
    members alone; where only announcements differ, only they are sent."""

    digest: int
    answer: bool = False
    members: int = 0


class Page(_Message, frozen=True, tag=8):
    """All that the sender knows within two spans. Unless it is an answer, the receiver answers with what
    it knows better there."""

    members: tuple[MemberUpdate, ...]
    announcements: tuple[Announcement, ...]
    member_span: Span
    announcement_span: Span
    answer: bool = False


class Nack(_Message, frozen=True, tag=6):
    """I tried for you, and got no answer either (but you reached me: doubt the target, not yourself)."""

    number: int


class Doubled(_Message, frozen=True, tag=7):
    """A younger life of your name spoke to me heard_ago_ms ago: two processes share one name."""

    younger: Incarnation
    heard_ago_ms: DurationMs


MembershipMessage = Ping | Ack | PingRequest | Gossip | Exchange | Page | Nack | Doubled
Message = MembershipMessage | InConfig | GroupMessage | DocumentAsked | DocumentGiven


class Datagram(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message with what every message carries. Its sender is whom the transport authenticated."""

    incarnation: Incarnation
    deployment: int
    message: Message


class WireError(ValueError):
    """Bytes that are no datagram of ours; str() says what is wrong with them."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Datagram)
_VERSION = bytes([WIRE_VERSION])
_DEFLATED_VERSION = bytes([WIRE_VERSION | DEFLATED])
_LONG = (InConfig, DocumentGiven)
_WINDOW_BITS = -15


def encode(datagram: Datagram) -> bytes:
    """The bytes of a datagram; what the core sends is built to stay below MAX_DATAGRAM_BYTES."""
    data = _encoder.encode(datagram)
    if len(data) < DEFLATED_FROM_BYTES or not isinstance(datagram.message, _LONG):
        return _VERSION + data
    deflate = zlib.compressobj(wbits=_WINDOW_BITS)
    shorter = deflate.compress(data) + deflate.flush()
    return _DEFLATED_VERSION + shorter if len(shorter) < len(data) else _VERSION + data


def decode(data: bytes) -> Datagram:
    """The datagram in data, or WireError: never any other exception, whatever the bytes are."""
    if not data:
        raise WireError("an empty datagram")
    if len(data) > MAX_DATAGRAM_BYTES:
        raise WireError(f"{len(data)} bytes, more than {MAX_DATAGRAM_BYTES}")
    version = wire_version(data)
    if version != WIRE_VERSION:
        raise WireError(f"wire version {version}; this node speaks {WIRE_VERSION}: update the older one")
    try:
        said = memoryview(data)[1:]
        return _decoder.decode(_inflate(said) if data[0] & DEFLATED else said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(str(error)) from error


def wire_version(data: bytes) -> int:
    """That the sender of these bytes speaks."""
    return data[0] & ~DEFLATED


def _inflate(data: memoryview) -> bytes:
    inflate = zlib.decompressobj(_WINDOW_BITS)
    try:
        said = inflate.decompress(data, MAX_DATAGRAM_BYTES)
    except zlib.error as error:
        raise WireError(f"it cannot be inflated: {error}") from error
    if not inflate.eof:
        raise WireError(f"it is cut off, or inflates to more than {MAX_DATAGRAM_BYTES} bytes")
    return said
