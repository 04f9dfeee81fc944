"""What a node process is told when it starts."""

import ipaddress
import sys
from pathlib import Path

import msgspec

from comesh.core.ids import NodeId
from comesh.runtime.log import LogFormat

Address = tuple[str, int]
DEFAULT_PORT = 7440
DEFAULT_API = "127.0.0.1:8460"
OWNER = "node"
"""The file in a data directory that has the name of its node."""
OWN_CERTIFICATE = "own"
"""In the place of a file: the certificate that the node has from its deployment's authority."""


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: NodeId
    document: Path
    data: Path
    keys: Path
    listen: tuple[Address, ...] = ()
    """Empty: the port of its address in the document, on all interfaces."""
    addresses: dict[NodeId, tuple[Address, ...]] = {}
    """Of nodes, instead of those in the document."""
    devices_at: str | None = None
    """Where a process with the virtual devices listens."""
    still: bool = False
    """Virtual devices that are part of it change nothing by themselves."""
    initialise: bool = False
    """The first start of the deployment: this node may begin its groups."""
    record: Path | None = None
    """Where everything is recorded for the lab's checkers."""
    boot_id: str | None = None
    """In the place of the kernel's, for the lab: another one is another boot of the machine."""
    clock_offset_ms: float = 0.0
    """How far this node's wall clock is off, for the lab."""
    flush_ms: float | None = None
    """After how long what need not be flushed at once is, for the lab: so that a loss of power bites."""
    flush_takes_ms: float = 0.0
    """How long a flush takes at least, for the lab: a slow disk."""
    api: Address | None = None
    """Where its HTTP interface listens; None: it has none."""
    api_cert: str | None = None
    """The file of its certificate, or `own`; None: no TLS, on loopback only."""
    api_key: str | None = None
    log: LogFormat = LogFormat.PEOPLE
    end_with_stdin: bool = False
    """Leave when standard input ends: whoever started it is gone."""


def node_command(options: NodeOptions) -> list[str]:
    """What starts the process of a node; without docstrings it is 2 MB smaller."""
    return [sys.executable, "-OO", "-m", "comesh.runtime.process", as_text(options)]


def as_text(options: NodeOptions) -> str:
    return msgspec.json.encode(options, enc_hook=str).decode()


def from_text(text: str) -> NodeOptions:
    return msgspec.json.decode(text, type=NodeOptions, dec_hook=lambda _, path: Path(path))


def parse_address(text: str) -> Address:
    """`host:port` or `[v6]:port`; raises ValueError that says what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise ValueError(f"{text!r} is no address: write host:port, such as 192.168.1.20:7440")
    return host.strip("[]") or "0.0.0.0", int(port)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
