"""Listens for HTTP in the node's own loop, with a bound on everything that a client could make it hold.

uvicorn parses and writes. Its server is not used, only its protocol: signals, the loop and the end of the
process are the node's. Bounds that it does not have are here: connections, the time in which a request must
have come, and the time that a client may let its answer wait.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from comesh.api.app import App
from comesh.api.limits import (
    CLOSE_S,
    HANDSHAKE_S,
    KEEP_ALIVE_S,
    MAX_CONNECTIONS,
    MAX_HANDSHAKES,
    MAX_HEADER_BYTES,
    MAX_OF_ONE_ADDRESS,
    REQUEST_S,
    STALLED_S,
)
from comesh.runtime.assembly import Assembly
from comesh.runtime.options import Address

BACKLOG: Final = 64


class Connection(H11Protocol):
    """One client."""

    _patience: asyncio.TimerHandle | None = None
    """Cuts off who sends its request, or takes its answer, too slowly."""
    _stalled: asyncio.TimerHandle | None = None
    on_made: Callable[[], object] | None = None
    host: str = ""
    connections: "set[Connection]"  # type: ignore[assignment]  # uvicorn allows others, too

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it
        if self.on_made is not None:
            self.on_made()
            self.on_made = None
        self.host = _host(transport)
        full = len(self.connections) >= MAX_CONNECTIONS
        if full or sum(one.host == self.host for one in self.connections) >= MAX_OF_ONE_ADDRESS:
            self.transport = transport
            whose = b"" if full else b" from one address"
            body = b'{"error":"this node has as many connections%s as it takes; ask again, or another node"}'
            transport.write(_raw(b"503 Service Unavailable", body % whose))
            transport.close()
            return
        super().connection_made(transport)
        self._be_patient()

    def data_received(self, data: bytes) -> None:
        if self._patience is None and self.conn.their_state is h11.IDLE:
            self._be_patient()
        super().data_received(data)
        state = self.conn.their_state
        comes = state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0])
        if self._patience is not None and not comes:
            self._patience.cancel()
            self._patience = None

    def _be_patient(self) -> None:
        self._patience = self.loop.call_later(REQUEST_S, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._patience, self._stalled):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP, or has too long headers."""
        if self.conn.our_state is h11.IDLE:
            body = (
                b'{"error":"this is no HTTP/1.1 request, or its headers are longer than %d bytes"}'
                % MAX_HEADER_BYTES
            )
            self.transport.write(_raw(b"400 Bad Request", body))
        self.transport.close()


def _host(transport: asyncio.Transport) -> str:
    address = transport.get_extra_info("peername")
    return str(address[0]) if address else ""


class Server:
    def __init__(self, assembly: Assembly, at: Address, tls: ssl.SSLContext | None) -> None:
        self._assembly = assembly
        self._at = at
        self._tls = tls
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._log = _Told(assembly)
        self.port = 0
        self._handshakes: dict[Connection, float] = {}
        """Clients that begin TLS, and since when."""

    async def open(self) -> None:
        """Raises OSError where it cannot listen."""
        loop = asyncio.get_running_loop()
        config = self._config()
        self._server = await loop.create_server(
            lambda: self._accept(config),
            *self._at,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_S,
            backlog=BACKLOG,
        )
        own, self.port = self._server.sockets[0].getsockname()[:2]
        host = f"[{own}]" if ":" in own else own
        self._assembly.log.say(f"HTTP interface at {'https' if self._tls else 'http'}://{host}:{self.port}")

    def _accept(self, config: Config) -> Connection:
        """Raises where it has no room: then the loop drops the client."""
        connection = Connection(config, self._state, {})
        if self._tls is not None:
            now_s = connection.loop.time()
            for begun in [one for one, at_s in self._handshakes.items() if at_s + HANDSHAKE_S < now_s]:
                del self._handshakes[begun]  # it failed
            if len(self._handshakes) >= MAX_HANDSHAKES:
                raise ConnectionAbortedError
            self._handshakes[connection] = now_s
            connection.on_made = lambda: self._handshakes.pop(connection, None)
        return connection

    def _config(self) -> Config:
        app = App(self._assembly, connections=lambda: len(self._state.connections))
        config = Config(
            cast(Any, app),
            http=Connection,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        )
        logger = logging.getLogger("uvicorn.error")
        logger.setLevel(logging.ERROR)
        logger.propagate = False
        logger.handlers = [self._log]
        config.load()
        return config

    async def close(self) -> None:
        """Whoever still waits is cut off."""
        if self._server is None:
            return
        self._server.close()
        logging.getLogger("uvicorn.error").handlers = [logging.NullHandler()]
        for connection in list(self._state.connections):
            cast(Connection, connection).transport.abort()
        tasks = list(self._state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


class _Told(logging.Handler):
    """What uvicorn finds wrong goes to the node's log."""

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(logging.ERROR)
        self._node_log = assembly.log

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        why = "" if cause is None else f" ({type(cause).__name__}: {cause})"
        self._node_log.error(f"HTTP interface: {record.getMessage().strip()}{why}")


def _raw(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (status, len(body)) + body
