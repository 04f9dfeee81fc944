"""`comesh node`: runs one node of a deployment on this machine, until a signal ends it."""

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from comesh.cli.terminal import fail
from comesh.core.ids import NodeId
from comesh.runtime.log import LogFormat
from comesh.runtime.options import DEFAULT_API, Address, NodeOptions, node_command, parse_address

ApiAddress = Annotated[
    str, typer.Option(metavar="HOST:PORT|off", help="Address of the HTTP interface, if it is installed.")
]
ApiCertificate = Annotated[
    str | None,
    typer.Option(metavar="FILE|own", help="Certificate for HTTPS: a file, or the node's own."),
]
ApiKey = Annotated[str | None, typer.Option(metavar="FILE", help="Key of that certificate.")]
AddressFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help='JSON file with addresses that replace the document\'s: {"n1": "10.0.0.1:7440", ...}.',
    ),
]
DevicesAt = Annotated[
    str | None, typer.Option(help="Address of the `comesh virtual` process that runs the virtual devices.")
]

Still = Annotated[
    bool, typer.Option("--still", help="The node's own virtual devices change nothing by themselves.")
]


_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The deployment document. The node keeps what it contained at the first start, and goes "
        "by that.",
        show_default=False,
    ),
]
_Listen = Annotated[
    list[str] | None,
    typer.Option(
        help="Address to listen on; repeatable.  [default: the port of its address in the document]"
    ),
]
_Init = Annotated[
    bool,
    typer.Option("--init", help="First start of the whole deployment: this node may start groups."),
]
_Record = Annotated[Path | None, typer.Option(help="Record everything to this file, for the lab's checkers.")]
_EndWithInput = Annotated[
    bool, typer.Option("--end-with-stdin", help="Leave the mesh when standard input ends.")
]


def node(
    file: _File,
    *,
    name: Annotated[str, typer.Option(help="Name of this node in the document.")],
    data: Annotated[Path, typer.Option(help="Directory for the journal.")] = Path("comesh-data"),
    keys: Annotated[Path, typer.Option(help="Directory with authority.crt, NAME.crt and NAME.key.")] = Path(
        "keys"
    ),
    listen: _Listen = None,
    addresses: AddressFile = None,
    devices_at: DevicesAt = None,
    still: Still = False,
    init: _Init = False,
    api: ApiAddress = DEFAULT_API,
    api_cert: ApiCertificate = None,
    api_key: ApiKey = None,
    log: Annotated[LogFormat, typer.Option(help="Format of log lines.")] = LogFormat.PEOPLE,
    record: _Record = None,
    boot_id: Annotated[str | None, typer.Option(hidden=True)] = None,
    clock_offset: Annotated[float, typer.Option(hidden=True)] = 0.0,
    end_with_input: _EndWithInput = False,
) -> None:
    """Run one node of a document on this machine.

    It runs until SIGTERM or Ctrl-C: then it hands over the groups that it leads, leaves the mesh, and ends
    with 0.
    """
    options = NodeOptions(
        name=NodeId(name),
        document=file,
        data=data,
        keys=keys,
        listen=tuple(_address(text) for text in listen or ()),
        addresses={} if addresses is None else _address_book(addresses),
        devices_at=devices_at,
        still=still,
        initialise=init,
        api=None if api == "off" else _address(api),
        api_cert=None if api == "off" else api_cert,
        api_key=None if api == "off" else api_key,
        record=record,
        boot_id=boot_id,
        clock_offset_ms=1000 * clock_offset,
        log=log,
        end_with_stdin=end_with_input,
    )
    sys.stdout.flush()
    os.execv(sys.executable, node_command(options))


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as wrong:
        fail(str(wrong))


def _address_book(file: Path) -> dict[NodeId, tuple[Address, ...]]:
    """Reads the addresses of each node: one, or a list of them; each a text, or host and port apart."""
    try:
        book = msgspec.json.decode(file.read_bytes(), type=dict[NodeId, str | list[str | Address]])
        return {
            name: tuple(
                parse_address(one) if isinstance(one, str) else one
                for one in ([found] if isinstance(found, str) else found)
            )
            for name, found in book.items()
        }
    except OSError as wrong:
        fail(f"{file} cannot be read ({wrong.strerror or wrong})")
    except ValueError as wrong:
        fail(f'{file}: {wrong}; it should be like {{"n1": "10.0.0.1:7440", "n2": "[fd00::2]:7440"}}')
