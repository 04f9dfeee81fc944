"""A plain UDP socket on an event loop that reads all that waits at once: an asyncio endpoint reads one
datagram per turn of the loop, which costs more than the datagram.

What is sent in one turn of the loop to one address leaves as one datagram, joined by `join`: when all that
waited was read, when somebody flushes, or in the next turn. Sending never blocks: what the socket does not
take is lost, and counted.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

MAX_AT_ONCE: Final = 64
"""Maximum datagrams read in one turn of the loop; the rest waits for the next turn."""
MAX_JOINED_BYTES: Final = 1200
"""Maximum size of a datagram that several parts share; a longer part is sent alone."""
_LARGEST: Final = 65_535

Address = tuple[Any, ...]


class Datagrams:
    """A UDP socket that calls received(data, address) for each datagram, rest() when no more wait, and
    refused() when a datagram sent before found no listener."""

    def __init__(
        self,
        opened: socket.socket,
        received: Callable[[bytes, Address], None],
        refused: Callable[[], None],
        join: Callable[[list[bytes]], bytes],
        counters: Counter[str],
        *,
        rest: Callable[[], None] | None = None,
    ) -> None:
        self._socket = opened
        self._received = received
        self._refused = refused
        self._join = join
        self._counters = counters
        self._rest = rest
        self._parts: dict[Address | None, list[bytes]] = {}
        self._bytes = 0
        self._soon: asyncio.Handle | None = None
        opened.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(opened.fileno(), self._read)

    @property
    def own_address(self) -> tuple[str, int]:
        address = self._socket.getsockname()
        return str(address[0]), int(address[1])

    def close(self) -> None:
        """Send what is queued, then close."""
        if self._socket.fileno() >= 0:
            self._send_all()
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def add(self, part: bytes, to: Address | None = None) -> None:
        """Queue a part; without an address, for the peer that the socket is connected to."""
        if not self._parts:
            if self._soon is None:
                self._soon = self._loop.call_soon(self.flush)
        elif self._bytes + len(part) > MAX_JOINED_BYTES:
            self._send_all()
        self._parts.setdefault(to, []).append(part)
        self._bytes += len(part)

    def flush(self) -> None:
        """Send what is queued now."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._parts and self._socket.fileno() >= 0:
            self._send_all()

    def _send_all(self) -> None:
        parts, self._parts, self._bytes = self._parts, {}, 0
        for to, those in parts.items():
            self._send(self._join(those), to)

    def _send(self, data: bytes, to: Address | None) -> None:
        try:
            if to is None:
                self._socket.send(data)
            else:
                self._socket.sendto(data, to)
        except ConnectionRefusedError:
            self._refused()
        except OSError:
            self._counters["could not send"] += 1

    def _read(self) -> None:
        self._read_all()
        if self._rest is not None:
            self._rest()
        self.flush()

    def _read_all(self) -> None:
        for _ in range(MAX_AT_ONCE):
            if self._socket.fileno() < 0:
                return  # the receiver of the last one closed it
            try:
                data, address = self._socket.recvfrom(_LARGEST)
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionRefusedError:
                self._refused()
                continue
            except OSError:
                self._counters["could not receive"] += 1
                return
            self._received(data, address)


async def listening(host: str, port: int) -> socket.socket:
    """Returns a socket bound to that address. OSError: the address cannot be used."""
    return await _opened(host, port, socket.socket.bind)


async def connected(host: str, port: int) -> socket.socket:
    """Returns a socket connected to that peer only. OSError: there is no such address."""
    return await _opened(host, port, socket.socket.connect)


async def _opened(host: str, port: int, how: Callable[[socket.socket, Address], None]) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, address = found[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        how(opened, address)
    except OSError:
        opened.close()
        raise
    return opened
