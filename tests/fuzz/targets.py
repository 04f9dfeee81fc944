"""What takes bytes from outside, and what is true of each whatever the bytes are.

A target makes input from a chance, and takes any input: it says in a few words what became of it (taken, or
refused and how), and raises whatever should never have been raised. `GARBLED` has them all, by name.
"""

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import msgspec
from drawing import draw, kind_of
from garbled_documents import make_document, take_document
from garbled_journals import make_journal, take_journal
from garbled_peers import make_peers, take_peers
from garbled_sessions import make_session, take_session
from mutating import any_bytes, changed_bytes, changed_tree

from comesh.core.ids import NodeId
from comesh.core.messages import WIRE_VERSION, Datagram, WireError, decode, encode
from comesh.drivers.virtual import wire
from comesh.queries import peers
from comesh.queries.node_reads import answered
from comesh.runtime.devices import frames as device_frames
from comesh.runtime.transport import frames, packets
from comesh.runtime.transport.fragments import MAX_INCOMING, MAX_INCOMING_BYTES, Incoming, Memory, Outgoing
from comesh.runtime.transport.settings import TransportSettings

Make = Callable[[random.Random], bytes]
Take = Callable[[bytes], str]
TAKEN: Final = "taken"
_encode = msgspec.msgpack.Encoder().encode


class Target(NamedTuple):
    make: Make
    take: Take
    quick: int
    """Cases of the quick form."""
    most: int = 1_000_000
    """Cases of the long one; fewer where a case is many messages."""


def garbled(first: bytes, *of: Any) -> Make:
    """Bytes of one of these types: mostly changed in one place of their structure, or in their bytes."""
    kinds = [kind_of(one) for one in of]

    def make(chance: random.Random) -> bytes:
        way = chance.random()
        if way < 0.05:
            return any_bytes(chance, first if chance.random() < 0.5 else b"")
        tree = draw(chance.choice(kinds), chance)
        if way < 0.1:
            return first + _encode(tree)
        if way < 0.65:
            return first + _encode(changed_tree(tree, chance))
        return changed_bytes(first + _encode(tree), chance, _encode(tree))

    return make


def take_wire(data: bytes) -> str:
    try:
        datagram = decode(data)
    except WireError as refused:
        assert str(refused)
        return "refused"
    assert decode(encode(datagram)) == datagram or _has_nan(datagram)
    return TAKEN


def _has_nan(datagram: Datagram) -> bool:
    """What is not equal to itself; it says nothing about the decoder."""
    return "nan" in repr(datagram)


def take_device_frame(data: bytes) -> str:
    try:
        device_frames.decode(data)
    except device_frames.FrameError as refused:
        assert str(refused)
        return "refused"
    return TAKEN


def take_device_packets(data: bytes) -> str:
    told: list[str] = []
    for read in (wire.decode_packets, wire.decode_backs):
        try:
            read(data)
        except wire.PacketError as refused:
            assert str(refused)
        else:
            told.append(read.__name__)
    return TAKEN if told else "refused"


class _AnyNode:
    """A node that has nothing to say, whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: ()


def take_read(data: bytes) -> str:
    sent: list[bytes] = []
    answers = peers.Answers(lambda read: answered(read, cast(Any, _AnyNode())), lambda: 0.0, "1")
    asked = peers.Peers(lambda _, frame: sent.append(frame), answers, lambda: 0.0)
    asked.on_news.append(lambda news: sent.append(msgspec.json.encode(news)))
    taken = asked.on_frame(NodeId("n1"), data)
    assert len(sent) <= 1
    return TAKEN if taken else "refused"


# -- the transport's own ----------------------------------------------------------------------------------

_RECORD: Final = b"\x17\xfe\xfd" + bytes(8) + b"\x00\x04" + b"abcd"


def make_packet(chance: random.Random) -> bytes:
    records = _RECORD * chance.randrange(1, 4)
    nonce, session, cookie = chance.randbytes(16), chance.randbytes(8), chance.randbytes(17)
    good = packets.encode(
        chance.choice(
            (
                packets.Knock(chance.choice((1, 1, 0, 255)), nonce, session),
                packets.Cookie(nonce, cookie),
                packets.OtherVersion(2, nonce),
                packets.Hello(cookie, nonce, session, records),
                packets.Flight(session, session, records),
                packets.Gone(session),
            )
        )
    )
    if chance.random() < 0.1:
        return any_bytes(chance, good[:1])
    return good if chance.random() < 0.1 else changed_bytes(good, chance, good)


def take_packet(data: bytes) -> str:
    packet = packets.decode(data)
    if packet is None:
        return "refused"
    if not isinstance(packet, packets.Knock):  # whose padding may be anything
        assert packets.encode(packet) == data
    if isinstance(packet, packets.Hello | packets.Flight):
        assert b"".join(packets.split(packet.records, 100)) == packet.records
    return TAKEN


_SETTINGS: Final = TransportSettings()
_PART: Final = bytes(frames.PART_BYTES)


def make_frames(chance: random.Random) -> bytes:
    """Some frames in a row, each with its length in front: what they do to each other counts."""
    made: list[bytes] = []
    for _ in range(chance.randrange(1, 6)):
        number, count = chance.randrange(3), chance.choice((2, 3, 3, frames.MAX_FRAGMENTS, 60_000))
        index = chance.choice((0, 1, 2, count - 1))
        good = chance.choice(
            (
                frames.joined([chance.randbytes(chance.randrange(9)) for _ in range(chance.randrange(2, 5))]),
                frames.encode_fragment(number, index, count, _PART if index + 1 < count else b"end"),
                frames.encode_report(
                    frames.Report(number, chance.choice(list(frames.State)), index, (0, 1, index))
                ),
                frames.encode_forgot(number),
                bytes((chance.randrange(256),)),
            )
        )
        if chance.random() < 0.6:
            short = good if len(good) < 100 else good[:40]
            good = changed_bytes(short, chance, short) + (good[40:] if len(good) >= 100 else b"")
        made.append(len(good).to_bytes(2, "big") + good)
    return b"".join(made)


def take_frames(data: bytes) -> str:
    """As an authenticated peer that says nonsense: both sides of long messages stay within their bounds."""
    memory = Memory()
    incoming, outgoing = Incoming(_SETTINGS, memory), Outgoing(_SETTINGS, 0)
    outgoing.add(_PART * 3, 0.0)
    list(outgoing.due(0.0))
    understood = 0
    for now_ms, plain in enumerate(frames.separated(b"\0" + data) or []):
        kind = plain[:1]
        if kind == b"\x02":
            messages = frames.separated(plain)
            understood += messages is not None
            assert messages is None or sum(map(len, messages)) < len(plain)
        elif kind == b"\x03":
            fragment = frames.decode_fragment(plain)
            if fragment is not None:
                understood += 1
                whole, _ = incoming.on_fragment(fragment, float(now_ms))
                assert whole is None or len(whole) <= frames.MAX_FRAGMENTS * frames.PART_BYTES
        elif kind == b"\x04":
            report = frames.decode_report(plain)
            if report is not None:
                understood += 1
                assert len(list(outgoing.on_report(report, float(now_ms)))) <= frames.MAX_MISSING
        elif kind == b"\x05":
            number = frames.decode_forgot(plain)
            if number is not None:
                understood += 1
                incoming.forget(number)
        assert len(incoming) <= MAX_INCOMING + 1
        assert 0 <= memory.bytes <= MAX_INCOMING_BYTES
        assert len(outgoing) <= 1
    list(incoming.on_tick(1e9))
    outgoing.on_tick(1e9)
    return TAKEN if understood else "refused"


GARBLED: Final[dict[str, Target]] = {
    "wire": Target(garbled(bytes([WIRE_VERSION]), Datagram), take_wire, 4_000),
    "packets": Target(make_packet, take_packet, 4_000),
    "frames": Target(make_frames, take_frames, 2_000),
    "session": Target(make_session, take_session, 2_000),
    "reads": Target(garbled(bytes([peers.FIRST_BYTE]), peers.Frame), take_read, 3_000),
    "device-frames": Target(
        garbled(bytes([device_frames.FIRST_BYTE]), device_frames.Frame), take_device_frame, 3_000
    ),
    "device-packets": Target(
        garbled(bytes([wire.VERSION]), list[wire.Packet], list[wire.Back]), take_device_packets, 3_000
    ),
    "peers": Target(make_peers, take_peers, 200, most=50_000),
    "journal": Target(make_journal, take_journal, 3_000),
    "documents": Target(make_document, take_document, 1_000),
}
