"""What the tests of the transport share: credentials, inboxes, waiting, a relay that loses and remembers."""

import asyncio
import functools
import itertools
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.runtime.credentials import Authority, Credentials
from comesh.runtime.transport.guard import Guard, NobodyRefused
from comesh.runtime.transport.packets import VERSION, Cookie, Hello, Knock, decode, encode
from comesh.runtime.transport.session import Session, Way
from comesh.runtime.transport.settings import TransportSettings
from comesh.runtime.transport.udp import UdpTransport

ONE, TWO, THREE = NodeId("n1"), NodeId("n2"), NodeId("n3")
BOUND_S = 30.0
HOST = "127.0.0.1"


async def until(condition: Callable[[], Any], what: str = "") -> None:
    """Waits for it to become true, and fails after a bound."""

    async def watch() -> None:
        while not condition():
            await asyncio.sleep(0.002)

    try:
        await asyncio.wait_for(watch(), BOUND_S)
    except TimeoutError:
        raise AssertionError(f"this did not happen in {BOUND_S} s: {what or condition}") from None


class Inbox:
    def __init__(self) -> None:
        self.got: list[tuple[NodeId, bytes]] = []

    def __call__(self, sender: NodeId, message: bytes) -> None:
        self.got.append((sender, message))

    @property
    def messages(self) -> list[bytes]:
        return [message for _, message in self.got]


@functools.cache
def key_directory(of: str = "ours") -> Path:
    """Made once per process; another name is another authority."""
    holder = tempfile.TemporaryDirectory(prefix="comesh-keys-")
    _holders.append(holder)
    directory = Path(holder.name) / of
    authority = Authority.create(directory)
    for name in (ONE, TWO, THREE):
        authority.issue(name).write(directory, name)
    return directory


_holders: list[tempfile.TemporaryDirectory[str]] = []


def credentials(name: NodeId, of: str = "ours") -> Credentials:
    return Credentials.load(key_directory(of), name)


def make(
    name: NodeId,
    addresses: Mapping[NodeId, int] | None = None,
    *,
    settings: TransportSettings | None = None,
    shown: Credentials | None = None,
    guard: Guard | None = None,
    port: int = 0,
) -> UdpTransport:
    """On loopback, with peers at these ports."""
    return UdpTransport(
        name,
        shown or credentials(name),
        listen=[(HOST, port)],
        addresses={node: [(HOST, at)] for node, at in (addresses or {}).items()},
        settings=settings or TransportSettings(),
        guard=guard or NobodyRefused(),
    )


@asynccontextmanager
async def opened(
    transport: UdpTransport, inbox: Callable[[NodeId, bytes], None]
) -> AsyncIterator[UdpTransport]:
    await transport.open(inbox)
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def pair(
    settings: TransportSettings | None = None,
) -> AsyncIterator[tuple[UdpTransport, UdpTransport, Inbox, Inbox]]:
    """Two transports that know each other's address, and what came to each."""
    first, second = Inbox(), Inbox()
    async with (
        opened(make(ONE, settings=settings), first) as one,
        opened(make(TWO, settings=settings), second) as two,
    ):
        one.set_addresses(TWO, [(HOST, two.port)])
        two.set_addresses(ONE, [(HOST, one.port)])
        yield one, two, first, second


async def until_sent(transport: UdpTransport, to: NodeId, message: bytes, inbox: Inbox) -> None:
    """As the core does: say it again until it came."""

    turns = itertools.count()

    def came() -> bool:
        if next(turns) % 10 == 0:
            transport.send(to, message)
        return message in inbox.messages

    await until(came, f"{message!r} comes to {to}")


async def begin_handshake(one: socket.socket, at: tuple[str, int]) -> None:
    """A stranger's: with a valid cookie and what a real node begins with. It does not go on after that."""
    nonce, session = os.urandom(16), os.urandom(8)
    cookie = await _cookie(one, at, nonce, session)
    one.sendto(encode(Hello(cookie.cookie, nonce, session, _first_flight())), at)


async def _cookie(one: socket.socket, at: tuple[str, int], nonce: bytes, session: bytes) -> Cookie:
    """As a node does, it knocks again until it is answered: flights that are said again to all that it began
    may fill its socket, and then the kernel drops the answer."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(BOUND_S):
        while True:
            one.sendto(encode(Knock(VERSION, nonce, session)), at)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:
                        said = decode(await loop.sock_recv(one, 2048))
                        if isinstance(said, Cookie) and said.nonce == nonce:
                            return said


@functools.cache
def _first_flight() -> bytes:
    begun = Session(credentials(THREE).context(), bytes(8), Way(None, ()), initiated=True, now_ms=0.0)
    return begun.handshake(b"")[1][0]


class Relay:
    """Stands between clients and one target; forwards both ways, loses some, remembers all."""

    def __init__(self, target: int, loss: float = 0.0, seed: int = 1) -> None:
        self._target = (HOST, target)
        self._loss = loss
        self._draws = Draws(seed)
        self._front: asyncio.DatagramTransport | None = None
        self._backs: dict[Any, asyncio.DatagramTransport] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self.to_target: list[bytes] = []
        self.to_client: list[bytes] = []
        self.cut = False
        self.swallows: Callable[[bytes], bool] = lambda _: False
        """Of the datagrams to the client, which are lost for certain."""

    @property
    def port(self) -> int:
        assert self._front is not None
        return int(self._front.get_extra_info("sockname")[1])

    async def __aenter__(self) -> "Relay":
        loop = asyncio.get_running_loop()
        front = _Side(self._from_client)
        self._front, _ = await loop.create_datagram_endpoint(lambda: front, local_addr=(HOST, 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*self._opening)
        for one in (self._front, *self._backs.values()):
            assert one is not None
            one.close()

    def _from_client(self, datagram: bytes, client: Any) -> None:
        self.to_target.append(datagram)
        if client in self._backs:
            self.forward(datagram, client)
        else:
            task = asyncio.get_running_loop().create_task(self._open_back(datagram, client))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_back(self, datagram: bytes, client: Any) -> None:
        side = _Side(lambda answer, _: self._from_target(answer, client))
        back, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: side, local_addr=(HOST, 0)
        )
        if client in self._backs:
            back.close()
        else:
            self._backs[client] = back
        self.forward(datagram, client)

    def forward(self, datagram: bytes, client: Any = None) -> None:
        """Of a client; of any one, for a datagram that the test makes up."""
        if not self.cut and not self._draws.chance(self._loss):
            self._backs[client if client is not None else next(iter(self._backs))].sendto(
                datagram, self._target
            )

    def _from_target(self, datagram: bytes, client: Any) -> None:
        self.to_client.append(datagram)
        if not self.cut and not self.swallows(datagram) and not self._draws.chance(self._loss):
            assert self._front is not None
            self._front.sendto(datagram, client)

    def replay_to_client(self, datagram: bytes) -> None:
        assert self._front is not None
        self._front.sendto(datagram, next(iter(self._backs)))


class _Side(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, Any], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._received(data, addr)

    def error_received(self, exc: Exception) -> None:
        """A target that is gone: as on a real network, nobody is told."""
