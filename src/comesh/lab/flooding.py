"""A stranger without keys that floods one node: a process of its own, bounded in rate and time.

    python -m comesh.lab.flooding 127.0.0.1 7440 --garbage 10000 --hellos 1000 --seconds 30

Garbage is of every kind that the transport tells apart. A hello is a whole beginning of a handshake: a knock,
and with the cookie that comes back the first flight of DTLS, as a real node sends it; then nothing more. They
come from several addresses of loopback, one of which nodes have too. At the end it says as JSON what it sent.
It ends early when its standard input is closed: with the process that started it.
"""

import argparse
import random
import selectors
import socket
import sys
import time
from typing import Final

import msgspec
from OpenSSL import SSL

from comesh.runtime.credentials import CIPHERS, DTLS_1_2
from comesh.runtime.transport.packets import (
    DATA,
    VERSION,
    Cookie,
    Flight,
    Gone,
    Hello,
    Knock,
    decode,
    encode,
)
from comesh.runtime.transport.session import Session, Way

FROM: Final = ("127.0.0.1", "127.0.8.1", "127.0.8.2", "127.0.9.1")
"""The first is one that the nodes of a mesh on one machine have; the others are strangers'."""
TURN_S: Final = 0.002
MAX_SECONDS: Final = 600.0
MAX_RATE: Final = 100_000
_RECORD: Final = b"\x17\xfe\xfd\x00\x01" + bytes(6)


class Sent(msgspec.Struct, kw_only=True):
    """The result of a flood."""

    seconds: float = 0.0
    garbage: int = 0
    knocks: int = 0
    hellos: int = 0
    """Knocks that were answered, and went on."""
    refused: int = 0
    """Number of packets that the system did not take."""


class Flood:
    def __init__(self, host: str, port: int, seed: int) -> None:
        self._to = (host, port)
        self._chance = random.Random(seed)
        self._sockets = [_socket(at) for at in FROM]
        self._selector = selectors.DefaultSelector()
        for one in self._sockets:
            self._selector.register(one, selectors.EVENT_READ)
        self._knocked: dict[bytes, bytes] = {}
        """Session ids, by nonce."""
        self._first_flight = _first_flight()
        self.sent = Sent()

    def run(self, garbage: int, hellos: int, seconds: float) -> Sent:
        """Sends this many packets of each kind in a second. Packets that could not be sent in time are not
        made up for."""
        began = before = time.monotonic()
        owed_garbage = owed_hellos = 0.0
        while (now := time.monotonic()) - began < seconds and not _is_closed():
            passed_s, before = min(now - before, 10 * TURN_S), now
            owed_garbage += garbage * passed_s
            owed_hellos += hellos * passed_s
            while owed_garbage >= 1.0:
                owed_garbage -= 1.0
                self.sent.garbage += self._send(self._sockets[0], self._garbage())
            while owed_hellos >= 1.0:
                owed_hellos -= 1.0
                self._knock()
            self._answer()
            time.sleep(TURN_S)
        self.sent.seconds = time.monotonic() - began
        return self.sent

    def close(self) -> None:
        self._selector.close()
        for one in self._sockets:
            one.close()

    def _send(self, one: socket.socket, datagram: bytes) -> int:
        try:
            one.sendto(datagram, self._to)
        except OSError:
            self.sent.refused += 1
            return 0
        return 1

    def _garbage(self) -> bytes:
        chance = self._chance
        body = chance.randbytes(chance.randrange(24, 400))
        record = _RECORD + len(body).to_bytes(2, "big") + body
        match chance.randrange(6):
            case 0:
                return body
            case 1:
                return bytes((chance.randrange(0xC1, 0xC8),)) + body
            case 2:
                return bytes((DATA,)) + body[:8] + record
            case 3:
                return encode(Flight(body[:8], body[8:16], record))
            case 4:
                return encode(Hello(body[:17], body[:16], body[:8], record))
            case _:
                return encode(Gone(body[:8]))

    def _knock(self) -> None:
        nonce, session = self._chance.randbytes(16), self._chance.randbytes(8)
        if len(self._knocked) > 10_000:
            self._knocked.clear()
        self._knocked[nonce] = session
        one = self._chance.choice(self._sockets)
        self.sent.knocks += self._send(one, encode(Knock(VERSION, nonce, session)))

    def _answer(self) -> None:
        """Cookies are used; flights of handshakes are left unanswered."""
        for key, _ in self._selector.select(0.0):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            while True:
                try:
                    said = decode(one.recv(2048))
                except OSError:
                    break
                session = self._knocked.pop(said.nonce, None) if isinstance(said, Cookie) else None
                if session is not None and isinstance(said, Cookie):
                    hello = Hello(said.cookie, said.nonce, session, self._first_flight)
                    self.sent.hellos += self._send(one, encode(hello))


def _socket(host: str) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((host, 0))
    one.setblocking(False)
    return one


def _first_flight() -> bytes:
    context = SSL.Context(SSL.DTLS_METHOD)
    context.set_min_proto_version(DTLS_1_2)
    context.set_cipher_list(CIPHERS)
    context.set_options(SSL.OP_NO_QUERY_MTU)
    _, parts = Session(context, bytes(8), Way(None, ()), initiated=True, now_ms=0.0).handshake(b"")
    return parts[0]


def _is_closed() -> bool:
    """Whoever started this is gone."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.buffer, selectors.EVENT_READ)
        return bool(selector.select(0.0))


def main() -> int:
    parser = argparse.ArgumentParser(description="Flood one node of a mesh of your own, to see it go on.")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--garbage", type=int, default=10_000, help="datagrams a second")
    parser.add_argument("--hellos", type=int, default=1_000, help="handshakes begun a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not 0 < given.seconds <= MAX_SECONDS or max(given.garbage, given.hellos) > MAX_RATE:
        parser.error(f"at most {MAX_SECONDS:g} s, and {MAX_RATE} a second")
    flood = Flood(given.host, given.port, given.seed)
    try:
        sent = flood.run(given.garbage, given.hellos, given.seconds)
    finally:
        flood.close()
    sys.stdout.buffer.write(msgspec.json.encode(sent) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
