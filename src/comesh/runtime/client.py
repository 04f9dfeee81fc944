"""Asks a node on this machine through its control socket. Blocking, for commands and tests."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from comesh.runtime.control import socket_of

ANSWER_S: Final = 20.0
_T = TypeVar("_T")


class NoAnswerError(Exception):
    """The node does not run, or did not answer; str() says what to do."""


class Client:
    def __init__(self, directory: Path, *, within_s: float = ANSWER_S) -> None:
        path = socket_of(directory)
        if path is None:
            raise NoAnswerError(f"no node runs from {directory}; start it with `comesh node` or `comesh up`")
        self._directory = directory
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(within_s)
        try:
            self._socket.connect(str(path))
        except OSError as wrong:
            self._socket.close()
            raise NoAnswerError(
                f"the node of {directory} does not answer ({wrong.strerror}); does it run?"
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
        return msgspec.json.decode(self._ask({"ask": ask, **about}), type=kind)

    def watch(self, kind: type[_T]) -> Iterator[_T]:
        """News, for ever."""
        self._socket.settimeout(None)
        self._write({"ask": "watch"})
        while line := self._lines.readline():
            yield msgspec.json.decode(line, type=kind)

    def _ask(self, question: dict[str, Any]) -> bytes:
        self._write(question)
        try:
            line = self._lines.readline()
        except TimeoutError as wrong:
            raise NoAnswerError(f"the node of {self._directory} did not answer in time") from wrong
        if not line:
            raise NoAnswerError(f"the node of {self._directory} ended while it was asked")
        if line.startswith(b'{"error"'):
            raise NoAnswerError(msgspec.json.decode(line, type=dict[str, Any])["error"])
        return line

    def _write(self, question: dict[str, Any]) -> None:
        try:
            self._socket.sendall(msgspec.json.encode(question) + b"\n")
        except OSError as wrong:
            raise NoAnswerError(f"the node of {self._directory} went away: {wrong.strerror}") from wrong
