"""`comesh node`: run one node of a deployment on this machine, until it is told to leave."""

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from comesh.cli.documents import DocumentFile
from comesh.cli.terminal import Exit, fail
from comesh.core.ids import NodeId
from comesh.runtime.assembly import Assembly
from comesh.runtime.credentials import CredentialsError
from comesh.runtime.documents import DocumentError
from comesh.runtime.journal import JournalError
from comesh.runtime.local_mesh import end_with_stdin
from comesh.runtime.log import Log, LogFormat
from comesh.runtime.options import Address, NodeOptions, parse_address
from comesh.runtime.transport import TransportError

READY_LOOK_S = 0.05


def node(
    file: DocumentFile,
    *,
    name: Annotated[str, typer.Option(help="Which node of the document this is.")],
    data: Annotated[Path, typer.Option(help="Where it keeps its journal.")] = Path("comesh-data"),
    keys: Annotated[Path, typer.Option(help="Where authority.crt, NAME.crt and NAME.key are.")] = Path(
        "keys"
    ),
    listen: Annotated[
        list[str] | None, typer.Option(help="host:port; left out: the port of its address in the document.")
    ] = None,
    addresses: Annotated[
        Path | None, typer.Option(help="JSON: addresses of nodes, instead of those in the document.")
    ] = None,
    devices_at: Annotated[
        str | None, typer.Option(help="host:port of a `comesh devices` process with the virtual devices.")
    ] = None,
    init: Annotated[
        bool,
        typer.Option("--init", help="The first start of the whole deployment: this node may begin groups."),
    ] = False,
    log: Annotated[LogFormat, typer.Option(help="Log lines for people, or JSON.")] = LogFormat.PEOPLE,
    record: Annotated[
        Path | None, typer.Option(help="Record everything to a file, for the lab's checkers.")
    ] = None,
    boot_id: Annotated[str | None, typer.Option(hidden=True)] = None,
    clock_offset: Annotated[float, typer.Option(hidden=True)] = 0.0,
    end_with_input: Annotated[
        bool, typer.Option("--end-with-stdin", help="Leave when standard input ends.")
    ] = False,
) -> None:
    """Run a node until SIGTERM or Ctrl-C: it hands over what it leads, says good-bye, and ends with 0."""
    options = NodeOptions(
        name=NodeId(name),
        document=file,
        data=data,
        keys=keys,
        listen=tuple(_address(text) for text in listen or ()),
        addresses={} if addresses is None else _address_book(addresses),
        devices_at=devices_at,
        initialise=init,
        record=record,
        boot_id=boot_id,
        clock_offset_ms=1000 * clock_offset,
        log=log,
    )
    try:
        why = asyncio.run(_run(options, end_with_input))
    except (DocumentError, CredentialsError, JournalError, TransportError) as wrong:
        fail(f"{name}: {wrong}")
    raise typer.Exit(int(Exit.NO if why else Exit.OK))


async def _run(options: NodeOptions, end_with_input: bool) -> str:
    """Why it had to end; empty: somebody wanted it to."""
    assembly = Assembly(options, Log(options.name, options.log))
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, assembly.stopped.set)
    if end_with_input:
        end_with_stdin(lambda: loop.call_soon_threadsafe(assembly.stopped.set))
    await assembly.open()
    readiness = asyncio.create_task(_tell_service_manager(assembly))
    await assembly.stopped.wait()
    readiness.cancel()
    await assembly.close()
    return assembly.why_stopped


async def _tell_service_manager(assembly: Assembly) -> None:
    """READY=1 for systemd, once the node takes part in the mesh."""
    while not assembly.was_ready:
        await asyncio.sleep(READY_LOOK_S)
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        address = "\0" + where[1:] if where.startswith("@") else where
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(b"READY=1", address)


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as wrong:
        fail(str(wrong))


def _address_book(file: Path) -> dict[NodeId, tuple[Address, ...]]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[NodeId, tuple[Address, ...]])
    except (OSError, msgspec.DecodeError) as wrong:
        fail(f'cannot read {file}: {wrong}; it should be like {{"n1": [["10.0.0.1", 7440]]}}')
