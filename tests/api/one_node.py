"""One node in the loop of the test, with its HTTP interface: for bounds made small, and for single bytes."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from comesh.api.opening import Api
from comesh.api.tokens import create
from comesh.core.ids import NodeId
from comesh.queries.requests import Role
from comesh.runtime.assembly import Assembly
from comesh.runtime.credentials import Authority
from comesh.runtime.log import Log
from comesh.runtime.options import NodeOptions

BOUND_S = 60.0
ALONE = """
settings: {f: 0, lease: 500ms, membership_period: 300ms}
nodes:
  n1: {place: [0m, 0m], address: "127.0.0.1:1"}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}, commands: {set: {argument: bool, sets: on}}}
routines:
  light: {do: [{device: lamp, command: set, argument: true}]}
"""


class OneNode:
    def __init__(self, assembly: Assembly, port: int, token: str, log: Path) -> None:
        self.assembly = assembly
        self.port = port
        self.token = token
        self.log = log

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, data: bytes) -> bytes:
        """Send bytes; all that comes back until the connection is closed."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            return await asyncio.wait_for(reader.read(), BOUND_S)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def get(self, path: str, *, token: str | None = None) -> tuple[int, Any]:
        answer = await self.say(self.request("GET", path, token=token))
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), msgspec.json.decode(body)

    def request(
        self, method: str, path: str, body: bytes = b"", *, token: str | None = None, more: str = ""
    ) -> bytes:
        shown = self.token if token is None else token
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {shown}\r\n"
            f"connection: close\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        )
        return head.encode() + body

    def said(self) -> str:
        return self.log.read_text()


@asynccontextmanager
async def one_node(place: Path, **more: Any) -> AsyncIterator[OneNode]:
    authority = Authority.create(place / "keys")
    authority.issue("n1").write(place / "keys", "n1")
    (place / "alone.yaml").write_text(ALONE)
    token = create(place / "keys", "does", Role.OPERATOR, 1000.0 * time.time())
    options = NodeOptions(
        name=NodeId("n1"),
        document=place / "alone.yaml",
        data=place / "data",
        keys=place / "keys",
        listen=(("127.0.0.1", 0),),
        initialise=True,
        api=("127.0.0.1", 0),
    )
    descriptor = os.open(place / "log", os.O_WRONLY | os.O_CREAT, 0o600)
    log = Log("n1", to=descriptor)
    assembly = Assembly(msgspec.structs.replace(options, **more), log)
    api = Api(assembly)
    await assembly.open()
    try:
        await api.open()
        await until(lambda: assembly.view.ready)
        yield OneNode(assembly, 0 if api.port is None else api.port, token, place / "log")
    finally:
        await api.close()
        await assembly.close()
        log.close()
        os.close(descriptor)


async def until(condition: Any) -> None:
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, "not in time"
        await asyncio.sleep(0.02)
