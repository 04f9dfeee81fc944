"""The door of a node for people on its machine: a Unix socket in its data directory, a JSON object per line.

    {"ask": "status"}                      what this node knows
    {"ask": "mesh"}                        what every node says, each asked by this one
    {"ask": "doctor"}                      how every node and its machine are, and whom it hears
    {"ask": "nodes"}, {"ask": "node", "node": "..."}, and so with groups, devices, routines
    {"ask": "names", "kind": "device"}     all names of a kind, without asking anybody
    {"ask": "runs", "limit": 50}           the latest runs
    {"ask": "run", "run": "..."}           what a run did, or the latest run of a routine, from all nodes
    {"ask": "fire", "routine": "...", "request": "..."}
    {"ask": "pause", "routine": "..."}     it does not fire; without a routine: nothing does. And "resume"
    {"ask": "maintain", "device": "...", "on": true}       routines leave it alone
    {"ask": "set", "device": "...", "command": "...", "argument": ...}    by hand, through its lock
    {"ask": "unlock", "device": "...", "run": "..."}       the run that holds it is stopped
    {"ask": "audit"}                       who did what
    {"ask": "versions"}, {"ask": "version", "version": 2}, {"ask": "chain"}     of the document
    {"ask": "preview", "text": "..."}      what a document would change
    {"ask": "apply", "base": 1, "text": "...", "why": "..."}      have the mesh run by it
    {"ask": "reach", "version": 2}         have all groups work by it at once
    {"ask": "recover", "group": "..."}     go on alone, because its other members are lost for good
    {"ask": "watch"}                       news of the whole mesh, line by line, until the socket is closed
    {"ask": "device", "device": "...", "be": "slow|silent|gone|well", "ms": 500}    a virtual one of this node
    {"ask": "device", "device": "...", "readings": {"open": "true"}}                as if somebody had done it
    {"ask": "device", "device": "...", "press": {"press": "double"}}                an event

Every answer is one line; `{"error": "..."}` says what was wrong, with `"no": true` where the question was
understood and there is no such thing, or it is out of reach. Only the node's own user can open it.
"""

import asyncio
import contextlib
import os
import pwd
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

SOCKET: Final = "control.sock"
POINTER: Final = "control.path"
"""Where the path of a socket is too long for the system, it is elsewhere, and this file says where."""
ELSEWHERE: Final = "comesh-"
"""How the directory is called where it is then."""
LONGEST_PATH: Final = 100
MAX_LINE_BYTES: Final = 2_500_000
"""A question may carry a document, each of its characters in two."""
MAX_CLIENTS: Final = 64

_CREDENTIALS: Final = struct.Struct("3i")

Asked = dict[str, Any]
Answer = Callable[[Asked], Awaitable[object]]
Stream = Callable[[Asked], AsyncIterator[object]]


class Control:
    """Serves `answer` for one line, and `stream` for asks that go on (`watch`)."""

    def __init__(self, directory: Path, answer: Answer, stream: Stream, *, where: str = "") -> None:
        """where: the node, in the names of those who ask."""
        self._where = where
        self._directory = directory
        self._answer = answer
        self._stream = stream
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
                await _write(writer, {"error": f"{MAX_CLIENTS} others ask already; try again"})
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
            asked = msgspec.json.decode(line, type=Asked)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            await _write(
                writer, {"error": 'a question is one JSON object per line, such as {"ask": "status"}'}
            )
            return
        if asked.get("ask") == "watch":
            await self._tell_until_gone(asked, reader, writer)
        else:
            await _write(writer, await self._answer({**asked, "by": f"{_user(writer)}@{self._where}"}))

    async def _tell_until_gone(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Who watches says nothing more; when it goes, also without any news, its place is free."""

        async def tell() -> None:
            async for news in self._stream(asked):
                await _write(writer, news)

        telling = asyncio.ensure_future(tell())
        gone = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait((telling, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (telling, gone):
                task.cancel()
            await asyncio.gather(telling, gone, return_exceptions=True)


def _user(writer: asyncio.StreamWriter) -> str:
    """Who is at the other end, as the system knows."""
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


def socket_of(directory: Path) -> Path | None:
    """Where the node with this data directory listens; None: nowhere."""
    pointer = directory / POINTER
    if pointer.is_file():
        path = Path(pointer.read_text())
        return path if path.exists() else None
    path = directory / SOCKET
    return path if path.exists() else None
