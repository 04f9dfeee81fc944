"""Datagrams into a real transport that has a session: copies of what its peer sent, changed, and handshakes
of strangers that have a valid cookie and then say nonsense.

Whoever made this input can see the traffic and forge every address, and has no key. So nothing may be handed
over, no session may come to be or break, and the peer may not be taken to be elsewhere. Every so often the
real peer says something, and it comes.
"""

import asyncio
import atexit
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from mutating import any_bytes, changed_bytes

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Authority, Credentials
from comesh.runtime.transport.packets import DATA, FLIGHT, HELLO, Flight, Hello, encode
from comesh.runtime.transport.session import Address
from comesh.runtime.transport.settings import (
    MAX_HALF_OPEN,
    MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK,
    MAX_OLD_SESSIONS,
)
from comesh.runtime.transport.udp import UdpTransport

ONE, TWO = NodeId("n1"), NodeId("n2")
HOST: Final = "127.0.0.1"
TALK_EVERY: Final = 500
"""Cases between two messages of the real peer."""
LIMIT_S: Final = 60.0
MAX_SESSIONS: Final = MAX_HALF_OPEN + MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK + MAX_OLD_SESSIONS + 2


class World:
    """Two transports on loopback that have talked, and what came to the second."""

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="comesh-garbled-")
        keys = Path(self._holder.name) / "keys"
        authority = Authority.create(keys)
        for name in (ONE, TWO):
            authority.issue(name).write(keys, name)
        self.loop = asyncio.new_event_loop()
        self.got: list[bytes] = []
        self.captured: list[bytes] = []
        self.one = _transport(ONE, keys)
        self.two = _transport(TWO, keys)
        self.loop.run_until_complete(self._begin())
        self.got.clear()
        self.socket = self.two._sockets[0]
        self.peer_at: Any = (HOST, self.one.port)
        self.stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.stranger.bind((HOST, 0))
        self.established = self.two.counters["sessions established"]
        self.records = {
            kind: [one[skip:] for one in self.captured if one[0] == kind]
            for kind, skip in ((HELLO, 42), (FLIGHT, 17))
        }
        self.cases = 0

    async def _begin(self) -> None:
        take = self.two._on_datagram

        def spy(datagram: bytes, one: socket.socket, address: Address, now_ms: float) -> None:
            self.captured.append(datagram)
            take(datagram, one, address, now_ms)

        await self.one.open(lambda *_: None)
        await self.two.open(lambda _, message: self.got.append(message))
        self.one.set_addresses(TWO, [(HOST, self.two.port)])
        self.two.set_addresses(ONE, [(HOST, self.one.port)])
        self.two._on_datagram = spy
        for message in (b"hello", b"x" * 5_000, b"a", b"b"):
            await self._talk(message)
        self.two._on_datagram = take

    async def _talk(self, message: bytes) -> None:
        async def came() -> None:
            while message not in self.got:
                self.one.send(TWO, message)
                await asyncio.sleep(0.01)

        await asyncio.wait_for(came(), LIMIT_S)

    def talk(self) -> None:
        self.loop.run_until_complete(self._talk(f"after {self.cases}".encode()))
        self.got.clear()

    def close(self) -> None:
        self.loop.run_until_complete(self.one.close())
        self.loop.run_until_complete(self.two.close())
        self.loop.close()
        self.stranger.close()
        self._holder.cleanup()


def _transport(name: NodeId, keys: Path) -> UdpTransport:
    return UdpTransport(name, Credentials.load(keys, name), listen=[(HOST, 0)], addresses={})


@cache
def world() -> World:
    here = World()
    atexit.register(here.close)
    return here


def make_session(chance: random.Random) -> bytes:
    here = world()
    way = chance.random()
    if way < 0.05:
        return any_bytes(chance, bytes((chance.randrange(0xC1, 0xC8),)))
    if way < 0.15:
        return _hello(here, chance)
    if way < 0.25:
        return _flight(here, chance)
    kinds = [one for one in here.captured if one[0] == DATA] if chance.random() < 0.7 else here.captured
    good = chance.choice(kinds)
    if chance.random() < 0.5:
        return changed_bytes(good, chance, chance.choice(here.captured))
    head = bytearray(good)  # the envelope stays as it was: only the record is wrong
    at = chance.randrange(9, min(len(head), 40))
    head[at] = chance.randrange(256)
    return bytes(head) if chance.random() < 0.8 else bytes(head[: chance.randrange(10, len(head) + 1)])


def _hello(here: World, chance: random.Random) -> bytes:
    """With a valid cookie, of somebody whose first flight is not what it should be."""
    nonce, session = chance.randbytes(16), chance.randbytes(8)
    at = here.stranger.getsockname() if chance.random() < 0.5 else here.peer_at
    cookie = here.two._handshakes._cookies.bake(at, nonce, session, here.two._clock_ms())
    records = chance.choice(here.records[chance.choice((HELLO, FLIGHT))])
    if chance.random() < 0.8:
        records = changed_bytes(records, chance, records)
    return encode(Hello(cookie, nonce, session, records))


def _flight(here: World, chance: random.Random) -> bytes:
    """Into a handshake that is under way, or into the session."""
    begun = list(here.two._sessions.half_open.values()) or list(here.two._sessions.by_id.values())
    session = chance.choice(begun)
    records = chance.choice(here.records[FLIGHT])
    if chance.random() < 0.8:
        records = changed_bytes(records, chance, records)
    return encode(Flight(session.own_id, session.remote_id, records))


def take_session(data: bytes) -> str:
    here = world()
    two, counters = here.two, here.two.counters
    here.cases += 1
    before = {name: count for name, count in counters.items() if name.startswith(("dropped", "handshakes"))}
    for at in (here.stranger.getsockname(), here.peer_at):
        two._on_datagram(data, here.socket, at, two._clock_ms())
    assert here.got == [], "a message of a stranger was handed over"
    assert not counters["dropped: the session broke"]
    assert counters["sessions established"] == here.established
    assert not counters["peers followed to another address"]
    assert list(two.peers()) == [ONE]
    assert len(two._sessions.by_id) <= MAX_SESSIONS
    if here.cases % TALK_EVERY == 0:
        here.talk()
        here.established = counters["sessions established"]
    told = [name for name, count in counters.items() if name in before and count > before[name]]
    return f"refused: {told[0].removeprefix('dropped: ')}" if told else "ignored"
