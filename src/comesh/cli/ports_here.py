"""Finds out which process has the UDP ports of nodes that should run on this machine, without asking a
node."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from comesh.cli.checkup import Finding
from comesh.cli.terminal import fail
from comesh.deployment.load import load
from comesh.runtime.addresses import known_addresses
from comesh.runtime.options import Address


def findings(document: Path) -> list[Finding]:
    """Returns findings about the nodes of the document whose address is this machine's."""
    deployment = load(document).deployment
    if deployment is None:
        fail(f"{document} cannot be read as a document; see: comesh validate {document}")
    found: list[Finding] = []
    for node, addresses in known_addresses(deployment, {}).items():
        for address in addresses:
            found += _of(str(node), address, document)
    return found


def _of(node: str, address: Address, document: Path) -> Iterator[Finding]:
    host, port = address
    if _bind(host, 0) is not None:
        return  # it is the address of another machine
    wrong = _bind(host, port)
    if wrong is None:
        yield Finding(
            about="port",
            what=f"{node}: nothing listens on UDP port {port} of this machine",
            advice=f"start it: comesh node {document} --name {node}",
        )
    elif wrong == errno.EADDRINUSE:
        yield Finding(
            about="port",
            what=f"{node}: UDP port {port} is taken, and no node that you may ask is there",
            advice=f"see by whom: ss -ulpn 'sport = :{port}'. A node of another user answers that user only",
        )


def _bind(host: str, port: int) -> int | None:
    """Tries to bind a port. None: it could be bound; else why not."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as tried:
            tried.bind(where)
    except OSError as wrong:
        return wrong.errno or errno.EADDRNOTAVAIL
    return None
