"""The socket for people on a node's machine: what is asked badly is answered, and paths may be long."""

import asyncio
import os
import pwd
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from comesh.core.ids import NodeId
from comesh.queries.answers import Lost, News, UnknownNameError
from comesh.queries.mesh import Asker
from comesh.queries.requests import ListNodes, Query, Role
from comesh.runtime.client import POINTER, Client, NoAnswerError, socket_of
from comesh.runtime.control import LONGEST_PATH, MAX_LINE_BYTES, Control


class Desk:
    """A table that says what it was asked, and by whom."""

    async def answer(self, query: Query[Any], asker: Asker) -> object:
        assert asker.by == f"{pwd.getpwuid(os.getuid()).pw_name}@here", "who asks is what the system says"
        assert asker.role is Role.OPERATOR
        if isinstance(query, ListNodes):
            raise UnknownNameError("there is no such thing", did_you_mean="that")
        return {"heard": query}


class Told:
    """News of which there are always two more."""

    async def take(self) -> list[object]:
        await asyncio.sleep(0.01)
        return [News(1.0, NodeId("n1"), "run", "a", "fired"), Lost(lost=2)]


class NewsDesk:
    followers = 0

    def follow(self) -> Told:
        self.followers += 1
        return Told()

    def leave(self, _: Told) -> None:
        self.followers -= 1


def control_of(directory: Path) -> Control:
    return Control(directory, cast("Any", Desk()), cast("Any", NewsDesk()), where="here")


def deep(tmp_path: Path) -> Path:
    directory = tmp_path / ("d" * LONGEST_PATH)
    directory.mkdir()
    return directory


async def said_to(directory: Path, line: bytes, lines: int = 1) -> list[Any]:
    path = socket_of(directory)
    assert path is not None
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(line)
        return [msgspec.json.decode(await asyncio.wait_for(reader.readline(), 10)) for _ in range(lines)]
    finally:
        writer.close()
        await writer.wait_closed()


def test_questions_are_answered_line_by_line(tmp_path: Path) -> None:
    async def scene() -> None:
        control = control_of(tmp_path)
        await control.open()
        try:
            assert await said_to(tmp_path, b'{"ask": "status"}\n') == [{"heard": {"ask": "status"}}]
            told = await said_to(tmp_path, b'{"ask": "watch"}\n', 2)
            assert [one["event"] for one in told] == ["news", "lost"]
            [error] = await said_to(tmp_path, b'{"ask": "nodes"}\n')
            assert error == {
                "error": "there is no such thing",
                "kind": "unknown_name",
                "did_you_mean": "that",
            }
            for nonsense in (b"nonsense\n", b"[1]\n", b"\xff\n", b"[" * 5000 + b"\n", b'{"ask": "x"}\n'):
                [error] = await said_to(tmp_path, nonsense)
                assert error["kind"] == "malformed"
            with pytest.raises(msgspec.DecodeError):  # it is cut off
                await said_to(tmp_path, b"x" * (MAX_LINE_BYTES + 10) + b"\n")
            assert (tmp_path / "control.sock").stat().st_mode & 0o077 == 0
        finally:
            await control.close()

    asyncio.run(scene())
    assert socket_of(tmp_path) is None


def test_a_socket_whose_path_is_too_long_is_elsewhere(tmp_path: Path) -> None:
    directory = deep(tmp_path)

    async def scene() -> tuple[Path, Path]:
        killed = control_of(directory)
        await killed.open()
        former = Path((directory / POINTER).read_text())
        control = control_of(directory)
        await control.open()
        try:
            assert await said_to(directory, b'{"ask": "status"}\n') == [{"heard": {"ask": "status"}}]
            return former, Path((directory / POINTER).read_text())
        finally:
            await control.close()
            await killed.close()

    former, path = asyncio.run(scene())
    assert former.parent != path.parent
    assert not former.parent.exists()
    assert not path.parent.exists()
    with pytest.raises(NoAnswerError, match="no node runs from"):
        Client(directory)


def test_a_socket_that_nobody_listens_to_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        control = control_of(tmp_path)
        await control.open()
        path = socket_of(tmp_path)
        assert path is not None
        left = path.with_name("left")
        left.hardlink_to(path)
        await control.close()
        left.rename(path)

    asyncio.run(scene())
    with pytest.raises(NoAnswerError, match=r"any more \(Connection refused\); see its log"):
        Client(tmp_path)
