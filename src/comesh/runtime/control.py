"""The door of a node for people on its machine: a Unix socket in its data directory, a JSON object per line.

    {"ask": "status"}                                      what this node knows
    {"ask": "device", "device": "lamp"}                    how a device is
    {"ask": "pause", "routine": "night", "request": "a"}   an order, carried out once
    {"ask": "watch"}                                       news, line by line, until the socket is closed

`comesh.queries.requests` has all of them: the tag of a request is what `ask` says. Every answer is one line;
an `Error` says what was wrong. Only the node's own user can open it, and may do everything; who that is, for
the audit log, the system says.
"""

import asyncio
import contextlib
import os
import pwd
import socket
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from comesh.queries.answers import MalformedError, QueryError, UnavailableError
from comesh.queries.mesh import Asker
from comesh.queries.news import NewsDesk
from comesh.queries.requests import Query, Request, Role, Watch
from comesh.queries.table import Table
from comesh.runtime.client import POINTER, SOCKET

ELSEWHERE: Final = "comesh-"
"""How the directory is called where it is then."""
LONGEST_PATH: Final = 100
MAX_LINE_BYTES: Final = 2_500_000
"""A question may carry a document, each of its characters in two."""
MAX_CLIENTS: Final = 64

_CREDENTIALS: Final = struct.Struct("3i")

MALFORMED: Final = 'a request is one JSON object per line, such as {"ask": "status"}'
_decode: Final[Callable[[bytes], Query[Any] | Watch]] = msgspec.json.Decoder(Request | Watch).decode


class Control:
    def __init__(self, directory: Path, table: Table, news: NewsDesk, *, where: str = "") -> None:
        """where: the node, in the names of those who ask."""
        self._where = where
        self._directory = directory
        self._table = table
        self._news = news
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self._path = directory / SOCKET
        self._elsewhere: Path | None = None

    async def open(self) -> None:
        if len(os.fsencode(self._path.absolute())) > LONGEST_PATH:
            self._remove_former()
            self._elsewhere = Path(tempfile.mkdtemp(prefix=ELSEWHERE))
            self._path = self._elsewhere / SOCKET
            (self._directory / POINTER).write_text(str(self._path))
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._server = await asyncio.start_unix_server(self._on_client, str(self._path), limit=MAX_LINE_BYTES)
        self._path.chmod(0o600)

    def _remove_former(self) -> None:
        """What a process that was killed left elsewhere."""
        with contextlib.suppress(OSError):
            former = Path((self._directory / POINTER).read_text())
            if former.name == SOCKET and former.parent.name.startswith(ELSEWHERE):
                former.unlink()
                former.parent.rmdir()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for path in (self._path, self._directory / POINTER):
            with contextlib.suppress(OSError):
                path.unlink()
        if self._elsewhere is not None:
            with contextlib.suppress(OSError):
                self._elsewhere.rmdir()

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if len(self._clients) > MAX_CLIENTS:
                full = UnavailableError(f"{MAX_CLIENTS} others ask already; try again")
                await _write(writer, full.as_error())
                return
            while line := await reader.readline():
                await self._on_line(line, reader, writer)
        except (ConnectionError, ValueError, asyncio.CancelledError):
            pass  # it went away, or sent a line longer than any question
        finally:
            self._clients.discard(task)
            writer.close()

    async def _on_line(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = _decoded(line)
            if isinstance(request, Watch):
                await self._tell_until_gone(reader, writer)
                return
            asker = Asker(by=f"{_user(writer)}@{self._where}", role=Role.OPERATOR)
            answer: object = await self._table.answer(request, asker)
        except QueryError as wrong:
            await _write(writer, wrong.as_error())
        else:
            await _write(writer, answer)

    async def _tell_until_gone(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A follower says nothing more; when it goes, also without any news, its place is free."""
        follower = self._news.follow()

        async def tell() -> None:
            while True:
                for news in await follower.take():
                    await _write(writer, news)

        telling = asyncio.ensure_future(tell())
        gone = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait((telling, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._news.leave(follower)
            for task in (telling, gone):
                task.cancel()
            await asyncio.gather(telling, gone, return_exceptions=True)


def _decoded(line: bytes) -> Query[Any] | Watch:
    try:
        return _decode(line)
    except msgspec.ValidationError as wrong:
        raise MalformedError(f"this node has no such request ({wrong}): is it of another version?") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedError(MALFORMED) from None


def _user(writer: asyncio.StreamWriter) -> str:
    """The user at the other end, as the system knows."""
    credentials = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    _, user, _ = _CREDENTIALS.unpack(credentials)
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


async def _write(writer: asyncio.StreamWriter, answer: object) -> None:
    writer.write(msgspec.json.encode(answer) + b"\n")
    await writer.drain()
