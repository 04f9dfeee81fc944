"""Asks a node on this machine through its control socket. Blocking, for commands and tests."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from comesh.queries.answers import Error, Lost, News, QueryError, raised
from comesh.queries.requests import Query, Watch, answer_type

SOCKET: Final = "control.sock"
POINTER: Final = "control.path"
"""Where the path of a socket is too long for the system, it is elsewhere, and this file says where."""
ERROR: Final = b'{"error":'
"""How an `Error` begins, and no answer."""
MARGIN_S: Final = 5.0
"""How much longer an answer is waited for than the node may take."""
A = TypeVar("A")
_read_news: Final = msgspec.json.Decoder(News | Lost).decode


class NoAnswerError(QueryError):
    """The node does not run, or did not answer; str() says what to do."""

    kind = "no_answer"


class AnyClient(Protocol):
    """Asks a node: on this machine, or over HTTP (`remote.RemoteClient`)."""

    def __enter__(self) -> "AnyClient": ...
    def __exit__(self, *_: object) -> None: ...
    def ask(self, query: Query[A]) -> A:
        """The answer to a request. QueryError: why there is none. NoAnswerError: the node was not reached."""
        ...

    def watch(self) -> Iterator[News | Lost]:
        """What happens in the whole mesh, until the node ends."""
        ...


class Client:
    def __init__(self, directory: Path, *, within_s: float | None = None) -> None:
        """within_s: how long an answer is waited for; left out: as long as the request may take."""
        try:
            path = socket_of(directory)
        except PermissionError as wrong:
            raise NoAnswerError(_others_own(directory)) from wrong
        if path is None:
            raise NoAnswerError(f"no node runs from {directory}; start it with `comesh node` or `comesh up`")
        self.directory = directory
        self._within_s = within_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(Query.within_s if within_s is None else within_s)
        try:
            self._socket.connect(str(path))
        except OSError as wrong:
            self._socket.close()
            if isinstance(wrong, PermissionError):
                raise NoAnswerError(_others_own(directory)) from wrong
            raise NoAnswerError(
                f"no node runs from {directory} any more ({wrong.strerror}); see its log for why, and start "
                "it again with `comesh node` or `comesh up`"
            ) from wrong
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, query: Query[A]) -> A:
        within_s = query.within_s + MARGIN_S if self._within_s is None else self._within_s
        self._socket.settimeout(within_s)
        self._write(query)
        line = self._line()
        if not line:
            raise NoAnswerError(f"the node of {self.directory} ended while it was asked")
        try:
            if line.startswith(ERROR):
                raise raised(msgspec.json.decode(line, type=Error))
            answer: A = msgspec.json.decode(line, type=answer_type(type(query)))
        except msgspec.DecodeError as wrong:
            raise NoAnswerError(
                f"the node of {self.directory} says what this command does not understand ({wrong}): "
                "use the comesh of the same version as the node"
            ) from wrong
        return answer

    def watch(self) -> Iterator[News | Lost]:
        self._socket.settimeout(None)
        self._write(Watch())
        while line := self._line():
            yield _read_news(line)

    def _line(self) -> bytes:
        try:
            return self._lines.readline()
        except TimeoutError as wrong:
            raise NoAnswerError(
                f"the node of {self.directory} did not answer in time; is its process stopped, or the "
                "machine too busy?"
            ) from wrong
        except OSError as wrong:
            raise NoAnswerError(f"the node of {self.directory} went away: {wrong.strerror}") from wrong

    def _write(self, request: msgspec.Struct) -> None:
        try:
            self._socket.sendall(msgspec.json.encode(request) + b"\n")
        except OSError as wrong:
            raise NoAnswerError(f"the node of {self.directory} went away: {wrong.strerror}") from wrong


def _others_own(directory: Path) -> str:
    return f"{directory} belongs to another user: ask as that user, for example with sudo -u comesh"


def socket_of(directory: Path) -> Path | None:
    """Where the node with this data directory listens; None: nowhere."""
    pointer = directory / POINTER
    if pointer.is_file():
        path = Path(pointer.read_text())
        return path if path.exists() else None
    path = directory / SOCKET
    return path if path.exists() else None
