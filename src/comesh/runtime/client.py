"""Asks a node on this machine through its control socket. Blocking, for commands and tests."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from comesh.runtime.control import socket_of

ANSWER_S: Final = 20.0
_T = TypeVar("_T")


class NoAnswerError(Exception):
    """The node does not run, or did not answer; str() says what to do."""


class SaidNoError(NoAnswerError):
    """The node understood, and the answer is no: there is no such thing, or it is out of reach."""


class AnyClient(Protocol):
    """Whoever asks a node: on this machine, or over HTTP (`remote.RemoteClient`)."""

    def __enter__(self) -> "AnyClient": ...
    def __exit__(self, *_: object) -> None: ...
    def wait(self, within_s: float) -> None: ...
    def ask(self, kind: type[_T], ask: str, **about: Any) -> _T: ...
    def watch(self, kind: type[_T]) -> Iterator[_T]: ...


class Client:
    def __init__(self, directory: Path, *, within_s: float = ANSWER_S) -> None:
        try:
            path = socket_of(directory)
        except PermissionError as wrong:
            raise NoAnswerError(_others_own(directory)) from wrong
        if path is None:
            raise NoAnswerError(f"no node runs from {directory}; start it with `comesh node` or `comesh up`")
        self.directory = directory
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(within_s)
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

    def wait(self, within_s: float) -> None:
        """How long an answer may take from now on."""
        self._socket.settimeout(within_s)

    def ask(self, kind: type[_T], ask: str, **about: Any) -> _T:
        """The answer to one question, as what it is."""
        return self._read(self._ask({"ask": ask, **about}), kind)

    def watch(self, kind: type[_T]) -> Iterator[_T]:
        """News, for ever."""
        self._socket.settimeout(None)
        self._write({"ask": "watch"})
        while line := self._line():
            yield self._read(line, kind)

    def _ask(self, question: dict[str, Any]) -> bytes:
        self._write(question)
        line = self._line()
        if not line:
            raise NoAnswerError(f"the node of {self.directory} ended while it was asked")
        return line

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

    def _read(self, line: bytes, kind: type[_T]) -> _T:
        if line.startswith(b'{"error"'):
            said = msgspec.json.decode(line, type=dict[str, Any])
            raise (SaidNoError if said.get("no") else NoAnswerError)(said["error"])
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError as wrong:
            raise NoAnswerError(
                f"the node of {self.directory} says what this command does not understand ({wrong}): "
                "use the comesh of the same version as the node"
            ) from wrong

    def _write(self, question: dict[str, Any]) -> None:
        try:
            self._socket.sendall(msgspec.json.encode(question) + b"\n")
        except OSError as wrong:
            raise NoAnswerError(f"the node of {self.directory} went away: {wrong.strerror}") from wrong


def _others_own(directory: Path) -> str:
    return f"{directory} belongs to another user: ask as that user, for example with sudo -u comesh"
