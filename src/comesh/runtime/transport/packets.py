"""The outside of a datagram: what anybody on the way can read, and what tells sessions apart.

    KNOCK    version, nonce, session id, padding      may I?                      to an address
    COOKIE   nonce, cookie                            come with this              no state is kept for it
    OTHER    version, nonce                           I speak another version
    HELLO    cookie, nonce, session id, records       the first flight of DTLS    state, if it is our cookie
    FLIGHT   to id, from id, records                  the rest of the handshake
    DATA     to id, record                            one record of DTLS
    GONE     id                                       I know no such session      a hint, not a proof

A session id is drawn by the one who receives by it. Nothing here is trusted: DTLS inside is. Decoding any
bytes gives a packet or None and never fails.
"""

from typing import Final, NamedTuple

VERSION: Final = 1
KNOCK: Final = 0xC1
COOKIE: Final = 0xC2
OTHER: Final = 0xC3
HELLO: Final = 0xC4
FLIGHT: Final = 0xC5
DATA: Final = 0xC6
GONE: Final = 0xC7

ID_BYTES: Final = 8
NONCE_BYTES: Final = 16
COOKIE_BYTES: Final = 17
DATA_HEADER_BYTES: Final = 1 + ID_BYTES
KNOCK_BYTES: Final = 64
"""Padded: no answer to a stranger is longer than what it sent."""
RECORD_HEADER_BYTES: Final = 13


class Knock(NamedTuple):
    version: int
    nonce: bytes
    session: bytes


class Cookie(NamedTuple):
    nonce: bytes
    cookie: bytes


class OtherVersion(NamedTuple):
    version: int
    nonce: bytes


class Hello(NamedTuple):
    cookie: bytes
    nonce: bytes
    session: bytes
    records: bytes


class Flight(NamedTuple):
    to: bytes
    session: bytes
    records: bytes


class Gone(NamedTuple):
    session: bytes


Packet = Knock | Cookie | OtherVersion | Hello | Flight | Gone


def encode(packet: Packet) -> bytes:
    match packet:
        case Knock(version, nonce, session):
            return (bytes((KNOCK, version)) + nonce + session).ljust(KNOCK_BYTES, b"\0")
        case Cookie(nonce, cookie):
            return bytes((COOKIE,)) + nonce + cookie
        case OtherVersion(version, nonce):
            return bytes((OTHER, version)) + nonce
        case Hello(cookie, nonce, session, records):
            return bytes((HELLO,)) + cookie + nonce + session + records
        case Flight(to, session, records):
            return bytes((FLIGHT,)) + to + session + records
        case Gone(session):
            return bytes((GONE,)) + session


def decode(datagram: bytes) -> Packet | None:
    """Everything but DATA, which the transport takes apart itself, for speed."""
    if not datagram:
        return None
    kind, size = datagram[0], len(datagram)
    if kind == KNOCK and size == KNOCK_BYTES:
        return Knock(datagram[1], datagram[2:18], datagram[18:26])
    if kind == COOKIE and size == 1 + NONCE_BYTES + COOKIE_BYTES:
        return Cookie(datagram[1:17], datagram[17:])
    if kind == OTHER and size == 2 + NONCE_BYTES:
        return OtherVersion(datagram[1], datagram[2:])
    if kind == HELLO and size > 42 and are_records(records := datagram[42:]):
        return Hello(datagram[1:18], datagram[18:34], datagram[34:42], records)
    if kind == FLIGHT and size > 17 and are_records(records := datagram[17:]):
        return Flight(datagram[1:9], datagram[9:17], records)
    if kind == GONE and size == 1 + ID_BYTES:
        return Gone(datagram[1:])
    return None


def are_records(content: bytes) -> bool:
    """Says if these bytes are whole records of DTLS, one after the other, with nothing behind."""
    at = 0
    while at < len(content):
        if at + RECORD_HEADER_BYTES > len(content) or content[at + 1] != 0xFE:
            return False
        at += RECORD_HEADER_BYTES + int.from_bytes(content[at + 11 : at + 13], "big")
    return at == len(content) > 0


def split(records: bytes, max_bytes: int) -> list[bytes]:
    """Records of DTLS, put together again into as few parts as fit."""
    parts: list[bytes] = []
    begin = at = 0
    while at < len(records):
        end = at + RECORD_HEADER_BYTES + int.from_bytes(records[at + 11 : at + 13], "big")
        if end - begin > max_bytes and at > begin:
            parts.append(records[begin:at])
            begin = at
        at = end
    if begin < len(records):
        parts.append(records[begin:])
    return parts
