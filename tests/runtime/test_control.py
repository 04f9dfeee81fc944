"""The socket for people on a node's machine: what is asked badly is answered, and paths may be long."""

import asyncio
import os
import pwd
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from comesh.runtime.client import Client, NoAnswerError
from comesh.runtime.control import LONGEST_PATH, MAX_LINE_BYTES, POINTER, Control, socket_of


async def answer(asked: dict[str, Any]) -> object:
    assert asked.pop("by") == f"{pwd.getpwuid(os.getuid()).pw_name}@here", "who asks is what the system says"
    return {"heard": asked}


async def stream(asked: dict[str, Any]) -> AsyncIterator[object]:
    for number in range(2):
        yield {"news": number}


def deep(tmp_path: Path) -> Path:
    directory = tmp_path / ("d" * LONGEST_PATH)
    directory.mkdir()
    return directory


async def said_to(directory: Path, line: bytes, lines: int = 1) -> list[object]:
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
        control = Control(tmp_path, answer, stream, where="here")
        await control.open()
        try:
            assert await said_to(tmp_path, b'{"ask": "status"}\n') == [{"heard": {"ask": "status"}}]
            assert await said_to(tmp_path, b'{"ask": "watch"}\n', 2) == [{"news": 0}, {"news": 1}]
            for nonsense in (b"nonsense\n", b"[1]\n", b"\xff\n", b"[" * 5000 + b"\n"):
                [told] = await said_to(tmp_path, nonsense)
                assert isinstance(told, dict)
                assert told["error"].startswith("a question is one JSON object per line")
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
        killed = Control(directory, answer, stream, where="here")
        await killed.open()
        former = Path((directory / POINTER).read_text())
        control = Control(directory, answer, stream, where="here")
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
        control = Control(tmp_path, answer, stream, where="here")
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
