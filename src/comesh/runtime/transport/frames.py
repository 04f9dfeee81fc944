"""The inside of a datagram, after DTLS: one kind byte, then what it says.

    ALONE     one message
    SEVERAL   length, message, length, message, ...
    FRAGMENT  message id, index, count, part
    REPORT    message id, state, next index, missing indexes ...
    FORGOT    message id: it will not be completed
    PROBE, PROBED   are you there? yes

What comes is from an authenticated peer, and may still be nonsense: decoding gives None then.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from comesh.runtime.transport import MAX_MESSAGE_BYTES
from comesh.runtime.transport.packets import DATA_HEADER_BYTES
from comesh.runtime.transport.settings import MAX_DATAGRAM_BYTES, RECORD_BYTES

ALONE: Final = 1
SEVERAL: Final = 2
FRAGMENT: Final = 3
REPORT: Final = 4
FORGOT: Final = 5
PROBE: Final = 6
PROBED: Final = 7

MAX_PLAIN_BYTES: Final = MAX_DATAGRAM_BYTES - DATA_HEADER_BYTES - RECORD_BYTES
MAX_ALONE_BYTES: Final = MAX_PLAIN_BYTES - 1
"""Maximum bytes of a message that is sent whole; longer ones are fragmented."""
_FRAGMENT: Final = struct.Struct(">BQHH")
_REPORT: Final = struct.Struct(">BQBH")
PART_BYTES: Final = MAX_PLAIN_BYTES - _FRAGMENT.size
"""Bytes of every fragment but the last."""
MAX_FRAGMENTS: Final = -(-MAX_MESSAGE_BYTES // PART_BYTES)
MAX_MISSING: Final = 128
"""Indexes in one report."""


class State(IntEnum):
    """The state of a long message at its receiver."""

    GOING = 0
    STALLED = 1
    DONE = 2


class Fragment(NamedTuple):
    message: int
    place: int
    pieces: int
    part: bytes


class Report(NamedTuple):
    message: int
    state: State
    next_index: int
    """One more than the highest index that came."""
    missing: tuple[int, ...] = ()
    """Below it, and asked for."""


def joined(messages: list[bytes]) -> bytes:
    """Messages that fit together, as the inside of one datagram."""
    if len(messages) == 1:
        return b"\x01" + messages[0]
    parts = [b"\x02"]
    for message in messages:
        parts.append(len(message).to_bytes(2, "big"))
        parts.append(message)
    return b"".join(parts)


def separated(plain: bytes) -> list[bytes] | None:
    """The messages of a SEVERAL."""
    messages: list[bytes] = []
    at, size = 1, len(plain)
    while at < size:
        if at + 2 > size:
            return None
        begin = at + 2
        at = begin + (plain[at] << 8 | plain[at + 1])
        if at > size:
            return None
        messages.append(plain[begin:at])
    return messages


def encode_fragment(message: int, index: int, count: int, part: bytes) -> bytes:
    return _FRAGMENT.pack(FRAGMENT, message, index, count) + part


def decode_fragment(plain: bytes) -> Fragment | None:
    if len(plain) <= _FRAGMENT.size:
        return None
    _, message, index, count = _FRAGMENT.unpack_from(plain)
    part = plain[_FRAGMENT.size :]
    if not index < count <= MAX_FRAGMENTS or count < 2:
        return None
    if len(part) != PART_BYTES and (index + 1 < count or len(part) > PART_BYTES):
        return None
    return Fragment(message, index, count, part)


def encode_report(report: Report) -> bytes:
    head = _REPORT.pack(REPORT, report.message, report.state, report.next_index)
    return head + b"".join(index.to_bytes(2, "big") for index in report.missing)


def decode_report(plain: bytes) -> Report | None:
    rest = len(plain) - _REPORT.size
    if rest < 0 or rest % 2 or rest > 2 * MAX_MISSING:
        return None
    _, message, state, next_index = _REPORT.unpack_from(plain)
    if state not in (State.GOING, State.STALLED, State.DONE):
        return None
    missing = struct.unpack_from(f">{rest // 2}H", plain, _REPORT.size)
    return Report(message, State(state), next_index, missing)


def encode_forgot(message: int) -> bytes:
    return bytes((FORGOT,)) + message.to_bytes(8, "big")


def decode_forgot(plain: bytes) -> int | None:
    return int.from_bytes(plain[1:], "big") if len(plain) == 9 else None
