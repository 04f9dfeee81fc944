"""Two real transports that go on talking, whatever a third does to one of them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from transport_parts import HOST, ONE, TWO, Inbox, make, opened, until

from comesh.runtime.transport.fragments import MAX_INCOMING_BYTES_OF_ALL
from comesh.runtime.transport.guard import Guard
from comesh.runtime.transport.settings import (
    MAX_HALF_OPEN,
    MAX_HALF_OPEN_OF_THE_BOOK,
    MAX_OLD_SESSIONS,
    TransportSettings,
)
from comesh.runtime.transport.udp import UdpTransport

MAX_COUNTERS = 60
"""Names of counters: none is made of what strangers send."""


class Attacked:
    """n1 and n2; n2 is attacked."""

    def __init__(self, one: UdpTransport, two: UdpTransport, inbox_one: Inbox, inbox_two: Inbox) -> None:
        self.one, self.two = one, two
        self.inbox_one, self.inbox_two = inbox_one, inbox_two
        self.known = {ONE}
        """Who has proved to n2 who it is."""
        self._said: list[bytes] = []

    @property
    def at(self) -> tuple[str, int]:
        return HOST, self.two.port

    async def go_on(self) -> None:
        """A message goes each way, as often as it has to be said."""
        message = f"message {len(self._said)}".encode()
        self._said.append(message)

        async def say_again() -> None:
            while True:
                self.one.send(TWO, message)
                self.two.send(ONE, message)
                await asyncio.sleep(0.05)

        saying = asyncio.ensure_future(say_again())
        try:
            await until(
                lambda: message in self.inbox_two.messages and message in self.inbox_one.messages,
                f"{message!r} goes both ways",
            )
        finally:
            saying.cancel()

    def nothing_got_in(self) -> None:
        """What was handed over is what nodes said, and of strangers no more is kept than the bounds allow."""
        assert {sender for sender, _ in self.inbox_two.got} <= self.known
        assert {sender for sender, _ in self.inbox_one.got} <= {TWO}
        assert {said for sender, said in self.inbox_two.got if sender == ONE} <= set(self._said)
        assert set(self.inbox_one.messages) <= set(self._said)
        assert set(self.two.peers()) == self.known
        sessions = self.two._sessions
        assert len(sessions.half_open) <= MAX_HALF_OPEN + MAX_HALF_OPEN_OF_THE_BOOK
        assert len(sessions.half_open) == len(sessions._slots) + len(sessions._slots_of_the_book)
        assert len(sessions.by_id) <= len(sessions.half_open) + MAX_OLD_SESSIONS + 2
        assert len(sessions.by_remote_id) <= MAX_OLD_SESSIONS + 1
        assert len(sessions._answered) <= MAX_OLD_SESSIONS + 1
        assert len(self.two._handshakes._attempts) <= 1
        assert sessions.memory.bytes <= MAX_INCOMING_BYTES_OF_ALL
        assert len(self.two.counters) <= MAX_COUNTERS
        assert not self.two.counters["dropped: the session broke"]


@asynccontextmanager
async def attacked(
    settings: TransportSettings | None = None, guard: Guard | None = None
) -> AsyncIterator[Attacked]:
    """guard: of n2."""
    inbox_one, inbox_two = Inbox(), Inbox()
    async with (
        opened(make(ONE, settings=settings), inbox_one) as one,
        opened(make(TWO, settings=settings, guard=guard), inbox_two) as two,
    ):
        one.set_addresses(TWO, [(HOST, two.port)])
        two.set_addresses(ONE, [(HOST, one.port)])
        pair = Attacked(one, two, inbox_one, inbox_two)
        await pair.go_on()
        yield pair
        await pair.go_on()
        pair.nothing_got_in()


@contextmanager
def stranger(host: str = HOST) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((host, 0))
        one.setblocking(False)
        yield one


def drained(one: socket.socket) -> list[bytes]:
    """What came to a stranger."""
    came: list[bytes] = []
    while True:
        try:
            came.append(one.recv(2048))
        except BlockingIOError:
            return came


def counted(transport: UdpTransport) -> dict[str, int]:
    return dict(transport.counters)


def more(transport: UdpTransport, before: dict[str, int], name: str, than: int | None = None) -> int:
    """By how much a counter has risen; with than: whether by more."""
    rise = transport.counters[name] - before.get(name, 0)
    return rise if than is None else rise > than
