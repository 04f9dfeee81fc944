"""Where nodes are: as the document says, or as a person says at the start of a node (`--addresses`).

The first node that cannot be found would be looked for in vain by all others, and nobody would know why: so
every node needs an address, and a node does not start where one is missing.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

from comesh.core.ids import NodeId
from comesh.deployment.model import Deployment
from comesh.runtime.documents import DocumentError
from comesh.runtime.options import DEFAULT_PORT, Address, parse_address

Book = Mapping[NodeId, tuple[Address, ...]]
ANYWHERE: Final = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}


def known_addresses(deployment: Deployment, given: Book) -> dict[NodeId, tuple[Address, ...]]:
    """What was given goes before what the document says."""
    written = {
        name: (parse_address(node.address),)
        for name, node in deployment.nodes.items()
        if node.address is not None
    }
    return written | dict(given)


def need_addresses(own: NodeId, deployment: Deployment, known: Book, *, listens: bool) -> None:
    """DocumentError: a node has none. listens: this node was told where to listen."""
    lacking = [
        name for name in sorted(deployment.nodes) if not known.get(name) and not (name == own and listens)
    ]
    if not lacking:
        return
    first = lacking[0]
    names = ", ".join(lacking)
    has = "has no address" if len(lacking) == 1 else "have no address"
    raise DocumentError(
        f"{names} {has}, so nodes cannot find each other. Write it into the document, as in\n"
        f'  nodes: {{{first}: {{address: "192.168.1.20:{DEFAULT_PORT}", ...}}}}\n'
        f"or give it to every node with --addresses FILE, a JSON file such as\n"
        f'  {{"{first}": "192.168.1.20:{DEFAULT_PORT}"}}'
    )


def listen_at(own: NodeId, known: Book) -> tuple[Address, ...]:
    """The ports of the own addresses, on all interfaces, of every family that a node is reached by."""
    families = {family for addresses in known.values() for family in _families(addresses)}
    here = [family for family in ANYWHERE if family in families and _is_here(family)] or list(families)
    ports = sorted({port for _, port in known.get(own, ())})
    return tuple((ANYWHERE[family], port) for port in ports for family in here)


def _families(addresses: Iterable[Address]) -> set[socket.AddressFamily]:
    """Of a host name: both, until it is looked up."""
    found: set[socket.AddressFamily] = set()
    for host, _ in addresses:
        if ":" in host:
            found.add(socket.AF_INET6)
        elif host.replace(".", "").isdigit():
            found.add(socket.AF_INET)
        else:
            found |= set(ANYWHERE)
    return found


def _is_here(family: socket.AddressFamily) -> bool:
    """A machine may have no IPv6."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.bind((ANYWHERE[family], 0))
    except OSError:
        return False
    return True
