"""Addresses of peers as people write them, host names looked up beside the loop, and the sockets of this
node."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from comesh.core.ids import NodeId
from comesh.runtime.transport import TransportError
from comesh.runtime.transport.session import Address
from comesh.runtime.transport.settings import MAX_ADDRESSES, SOCKET_BUFFER_BYTES

FIRST_FREE_PORT: Final = 1024
"""Programs without special rights listen on ports from this one on."""

LOOK_UP_AGAIN_MS: Final = 5_000.0
"""Host names of a peer that does not answer are looked up again, at most so often."""

Endpoint = tuple[str, int]


class AddressBook:
    """Keeps the addresses of each node."""

    def __init__(self, given: Mapping[NodeId, Sequence[Endpoint]]) -> None:
        self._given = {node: list(endpoints)[:MAX_ADDRESSES] for node, endpoints in given.items()}
        self._known: dict[NodeId, list[tuple[socket.AddressFamily, Address]]] = {}
        self._hosts: Counter[str] = Counter()
        """Number of uses of each known address."""
        self._looked_up_ms: dict[NodeId, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for node in self._given:
            self._learn(node, self._literals(node))

    def set(self, node: NodeId, endpoints: Sequence[Endpoint]) -> None:
        self._given[node] = list(endpoints)[:MAX_ADDRESSES]
        self._learn(node, self._literals(node))
        self._looked_up_ms.pop(node, None)

    def _literals(self, node: NodeId) -> list[tuple[socket.AddressFamily, Address]]:
        return [at for one in self._given[node] for at in literal(*one)]

    def _learn(self, node: NodeId, found: list[tuple[socket.AddressFamily, Address]]) -> None:
        for _, address in self._known.get(node, ()):
            host = str(address[0])
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]
        self._hosts.update(str(address[0]) for _, address in found)
        self._known[node] = found

    def has_host(self, host: str) -> bool:
        """Says if some node is known to be at this host."""
        return host in self._hosts

    def __contains__(self, node: NodeId) -> bool:
        return bool(self._given.get(node))

    def addresses(self, node: NodeId, now_ms: float) -> list[tuple[socket.AddressFamily, Address]]:
        """Returns the known addresses. Host names are looked up in the background, and known the next
        time."""
        known = self._known.get(node, [])
        names = [one for one in self._given.get(node, ()) if not literal(*one)]
        if names and now_ms - self._looked_up_ms.get(node, float("-inf")) >= LOOK_UP_AGAIN_MS:
            self._looked_up_ms[node] = now_ms
            task = asyncio.get_running_loop().create_task(self._look_up(node, names))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return known

    async def _look_up(self, node: NodeId, names: list[Endpoint]) -> None:
        found = self._literals(node)
        for host, port in names:
            try:
                answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            except (OSError, UnicodeError):
                continue
            found += [(answer[0], answer[4]) for answer in answers]
        if all(one in self._given.get(node, ()) for one in names):
            self._learn(node, list(dict.fromkeys(found))[:MAX_ADDRESSES])

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def literal(host: str, port: int) -> list[tuple[socket.AddressFamily, Address]]:
    """An address given as numbers, ready for the socket; nothing if it is a host name or nonsense."""
    try:
        answers = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError, OverflowError):
        return []
    return [(answer[0], answer[4]) for answer in answers]


async def open_sockets(listen: Iterable[Endpoint]) -> list[socket.socket]:
    """Opens one socket per address; all of them, or none and an error."""
    opened: list[socket.socket] = []
    try:
        for host, port in listen:
            try:
                answers = literal(host, port) or [
                    (answer[0], answer[4])
                    for answer in await asyncio.get_running_loop().getaddrinfo(
                        host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
                    )
                ]
                opened += [_open_socket(family, address) for family, address in answers[:1]]
            except (OSError, UnicodeError, OverflowError) as problem:
                raise TransportError(
                    f"cannot listen on {host} port {port}: {_why_not(problem, port)}"
                ) from None
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def _open_socket(family: socket.AddressFamily, address: Address) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
    except BaseException:
        opened.close()
        raise
    return opened


def _why_not(problem: Exception, port: int) -> str:
    reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    if isinstance(problem, PermissionError) and port < FIRST_FREE_PORT:
        return f"{reason}; ports below {FIRST_FREE_PORT} need special rights: choose a higher one"
    return f"{reason}; is the port taken, or the address not this machine's?"
