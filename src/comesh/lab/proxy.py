"""Links that lose, delay, repeat, reorder and cut, for a mesh on loopback: a relay for UDP, without root.

    nodes = free_addresses(["n1", "n2"])                     # where the nodes will listen
    proxy = Proxy(seed=1)
    addresses = await proxy.start(nodes)                     # addresses["n1"]["n2"]: n2, as n1 is to know it
    proxy.set_link("n1", "n2", Link(loss=0.05, delay_ms=3))  # one direction
    proxy.partition([["n1"], ["n2"]]); proxy.deafen("n1"); proxy.silence("n2"); proxy.heal()
    proxy.counts["n1", "n2"].bytes
    await proxy.close()

For every ordered pair (a, b) there is a socket: b, as a sees it. What a sends there leaves for b from the
socket (b, a), which is a as b sees it; so answers find back, and no node needs to know of the relay.

A node listens on an address that the proxy must know beforehand. `free_addresses` looks for free ports
outside of the range from which the system gives them, and lets them go again, for the nodes to bind. A port
that another program takes in between makes that node say so when it starts.

Which datagrams a link harms is drawn from the seed, for each ordered pair by itself.
"""

import asyncio
import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from random import SystemRandom
from typing import Final

import msgspec

from comesh.core.draws import Draws
from comesh.core.streams import stream

MAX_WAITING: Final = 20_000
"""Datagrams that are under way at once; further ones are lost and counted."""
BATCH: Final = 64
"""Datagrams that are taken from one socket before others have their turn."""
BUFFER_BYTES: Final = 1 << 20
"""Asked of the system for each socket."""
MAX_DATAGRAM: Final = 65_535
FIRST_PORT: Final = 20_000
LAST_PORT: Final = 32_000
OWN_PORTS: Final = 500
"""Ports that one process draws from, by its number: two processes that look at the same time, and begin to
listen a second later, hardly take each other's."""
MAX_TRIES: Final = 1000

Address = tuple[str, int]
Pair = tuple[str, str]


class ProxyError(Exception):
    """Raised when something cannot be done; str() says why."""


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one direction of a link. Datagrams with jitter may overtake each other."""

    loss: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    """Up to so much more, drawn."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """Share of datagrams that are held back for hold_ms, so that later ones pass them."""
    hold_ms: float = 10.0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ProxyError(f"{name} is {getattr(self, name)}: it must be from 0 to 1")
        for name in ("delay_ms", "jitter_ms", "hold_ms"):
            if getattr(self, name) < 0.0:
                raise ProxyError(f"{name} is {getattr(self, name)}: it must not be negative")


PERFECT: Final = Link()


class Count(msgspec.Struct):
    """Counts of one ordered pair. Sent datagrams are counted as they came, before anything happens to
    them."""

    datagrams: int = 0
    bytes: int = 0
    lost: int = 0
    cut: int = 0
    duplicated: int = 0
    held: int = 0
    overflowed: int = 0
    """There was no room: too many under way, or in the system."""
    strange: int = 0
    """Datagrams from an address that is not the node's: dropped."""
    delivered: int = 0


def free_addresses(
    names: Iterable[str], host: str = "127.0.0.1", *, besides: Collection[Address] = ()
) -> dict[str, Address]:
    """A free UDP address for each name. besides: what somebody else is about to take."""
    drawn = SystemRandom()
    first = FIRST_PORT + os.getpid() % ((LAST_PORT - FIRST_PORT) // OWN_PORTS) * OWN_PORTS
    found: dict[str, Address] = {}
    taken: list[socket.socket] = []
    try:
        for name in names:
            for _ in range(MAX_TRIES):
                port = drawn.randrange(first, first + OWN_PORTS)
                if (host, port) in besides:
                    continue
                one = socket.socket(_family(host), socket.SOCK_DGRAM)
                taken.append(one)
                try:
                    one.bind((host, port))
                except OSError:
                    continue
                found[name] = (host, port)
                break
            else:
                raise ProxyError(f"no free port at {host} between {FIRST_PORT} and {LAST_PORT}")
    finally:
        for one in taken:
            one.close()
    return found


class Proxy:
    def __init__(self, *, seed: int = 0) -> None:
        self.counts: dict[Pair, Count] = {}
        self._seed = seed
        self._nodes: dict[str, Address] = {}
        self._sockets: dict[Pair, socket.socket] = {}
        self._links: dict[Pair, Link] = {}
        self._cuts: set[Pair] = set()
        self._draws: dict[Pair, Draws] = {}
        self._waiting: set[asyncio.TimerHandle] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, nodes: Mapping[str, Address]) -> dict[str, dict[str, Address]]:
        """Relay between all of them; answers, for each node, where it reaches the others."""
        if self._loop is not None:
            raise ProxyError("this proxy runs already: close it, or make another one")
        self._loop = asyncio.get_running_loop()
        self._nodes = dict(nodes)
        addresses: dict[str, dict[str, Address]] = {name: {} for name in nodes}
        for sender in nodes:
            for receiver in nodes:
                if sender != receiver:
                    addresses[sender][receiver] = self._open((sender, receiver))
        return addresses

    async def close(self) -> None:
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()
        for one in self._sockets.values():
            if self._loop is not None:
                self._loop.remove_reader(one)
            one.close()
        self._sockets.clear()
        self._loop = None

    def _open(self, pair: Pair) -> Address:
        host = self._nodes[pair[0]][0]
        one = socket.socket(_family(host), socket.SOCK_DGRAM)
        self._sockets[pair] = one
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        one.bind((host, 0))
        self.counts[pair] = Count()
        self._draws[pair] = stream(self._seed, f"link {pair[0]} {pair[1]}")
        if self._loop is not None:
            self._loop.add_reader(one, self._on_readable, pair, one)
        return (host, int(one.getsockname()[1]))

    # -- what is broken ----------------------------------------------------------------------------------

    def set_link(self, sender: str, receiver: str, link: Link, *, both: bool = False) -> None:
        """Sets the faults of a link from now on; both: also of the way back."""
        self._links[self._pair(sender, receiver)] = link
        if both:
            self._links[receiver, sender] = link

    def set_all(self, link: Link) -> None:
        for pair in self._sockets:
            self._links[pair] = link

    def cut(self, sender: str, receiver: str, *, both: bool = False) -> None:
        """Nothing gets through, in this direction; both: in none."""
        self._cuts.add(self._pair(sender, receiver))
        if both:
            self._cuts.add((receiver, sender))

    def partition(self, sides: Sequence[Collection[str]]) -> None:
        """Only nodes of one side hear each other; those that are in none are a side together. Replaces what
        was cut before."""
        side_of = {name: number for number, side in enumerate(sides) for name in side}
        for name in side_of:
            self._known(name)
        self._cuts = {
            (sender, receiver)
            for sender, receiver in self._sockets
            if side_of.get(sender) != side_of.get(receiver)
        }

    def deafen(self, node: str) -> None:
        """It hears nobody, and everybody hears it. Adds to what was cut before."""
        self._known(node)
        self._cuts |= {pair for pair in self._sockets if pair[1] == node}

    def silence(self, node: str) -> None:
        """Makes a node unheard, although it hears everybody. Adds to what was cut before."""
        self._known(node)
        self._cuts |= {pair for pair in self._sockets if pair[0] == node}

    def heal(self) -> None:
        """Nothing is cut any more; links lose and delay as before."""
        self._cuts.clear()

    def move(self, node: str, address: Address) -> None:
        """The node listens somewhere else now."""
        self._known(node)
        self._nodes[node] = address

    def _known(self, name: str) -> None:
        if name not in self._nodes:
            known = ", ".join(sorted(self._nodes))
            raise ProxyError(f"no node {name!r} behind this proxy: there are {known}")

    def _pair(self, sender: str, receiver: str) -> Pair:
        self._known(sender)
        self._known(receiver)
        if sender == receiver:
            raise ProxyError(f"{sender} does not reach itself through the proxy")
        return (sender, receiver)

    # -- what is sent ------------------------------------------------------------------------------------

    def _on_readable(self, pair: Pair, one: socket.socket) -> None:
        for _ in range(BATCH):
            try:
                data, source = one.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                continue  # an error of something that was sent before
            self._relay(pair, data, (source[0], source[1]))

    def _relay(self, pair: Pair, data: bytes, source: Address) -> None:
        count = self.counts[pair]
        if source != self._nodes[pair[0]]:
            count.strange += 1
            return
        count.datagrams += 1
        count.bytes += len(data)
        if pair in self._cuts:
            count.cut += 1
            return
        link = self._links.get(pair, PERFECT)
        if link is PERFECT:
            self._forward(pair, data)
            return
        draws = self._draws[pair]
        if link.loss and draws.unit() < link.loss:
            count.lost += 1
            return
        copies = 1
        if link.duplicate and draws.unit() < link.duplicate:
            count.duplicated += 1
            copies = 2
        for _ in range(copies):
            self._delay(pair, data, link, draws, count)

    def _delay(self, pair: Pair, data: bytes, link: Link, draws: Draws, count: Count) -> None:
        after_ms = link.delay_ms
        if link.jitter_ms:
            after_ms += draws.between(0.0, link.jitter_ms)
        if link.reorder and draws.unit() < link.reorder:
            count.held += 1
            after_ms += link.hold_ms
        if not after_ms or self._loop is None:
            self._forward(pair, data)
        elif len(self._waiting) >= MAX_WAITING:
            count.overflowed += 1
        else:
            parcel = _Parcel(pair, data)
            parcel.handle = self._loop.call_later(after_ms / 1000, self._arrive, parcel)
            self._waiting.add(parcel.handle)

    def _arrive(self, parcel: "_Parcel") -> None:
        if parcel.handle is not None:
            self._waiting.discard(parcel.handle)
        if parcel.pair in self._cuts:
            self.counts[parcel.pair].cut += 1
        else:
            self._forward(parcel.pair, parcel.data)

    def _forward(self, pair: Pair, data: bytes) -> None:
        sender, receiver = pair
        count = self.counts[pair]
        try:
            self._sockets[receiver, sender].sendto(data, self._nodes[receiver])
        except OSError:  # no room, or nobody can be there
            count.overflowed += 1
        else:
            count.delivered += 1


class _Parcel:
    __slots__ = ("data", "handle", "pair")

    def __init__(self, pair: Pair, data: bytes) -> None:
        self.pair = pair
        self.data = data
        self.handle: asyncio.TimerHandle | None = None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
