"""`comesh node`: run one node of a deployment on this machine, until it is told to leave."""

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
    str, typer.Option(metavar="HOST:PORT|off", help="Where its HTTP interface listens, if installed.")
]
ApiCertificate = Annotated[
    str | None,
    typer.Option(metavar="FILE|own", help="Its certificate for TLS: a file, or this node's own."),
]
ApiKey = Annotated[str | None, typer.Option(metavar="FILE", help="The key of that certificate.")]
AddressFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help='Addresses instead of those in the document: {"n1": "10.0.0.1:7440", ...}.'
    ),
]
DevicesAt = Annotated[
    str | None, typer.Option(help="host:port of a `comesh virtual` process with the virtual devices.")
]

Still = Annotated[
    bool, typer.Option("--still", help="Virtual devices that are part of it change nothing by themselves.")
]


def node(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The deployment document; what it said at the first start is kept, and counts.",
            show_default=False,
        ),
    ],
    *,
    name: Annotated[str, typer.Option(help="Which node of the document this is.")],
    data: Annotated[Path, typer.Option(help="Where it keeps its journal.")] = Path("comesh-data"),
    keys: Annotated[Path, typer.Option(help="Where authority.crt, NAME.crt and NAME.key are.")] = Path(
        "keys"
    ),
    listen: Annotated[
        list[str] | None, typer.Option(help="host:port; left out: the port of its address in the document.")
    ] = None,
    addresses: AddressFile = None,
    devices_at: DevicesAt = None,
    still: Still = False,
    init: Annotated[
        bool,
        typer.Option("--init", help="The first start of the whole deployment: this node may begin groups."),
    ] = False,
    api: ApiAddress = DEFAULT_API,
    api_cert: ApiCertificate = None,
    api_key: ApiKey = None,
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
    """Of each node one address, or a list of them; each a text, or host and port apart."""
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
