"""Finds the address of a node's HTTP interface in the document."""

from pathlib import Path

from comesh.cli.terminal import fail
from comesh.deployment.load import load
from comesh.deployment.problems import did_you_mean
from comesh.runtime.addresses import known_addresses
from comesh.runtime.remote import Target


def api_of(file: Path, node: str, port: int) -> Target:
    """Returns where a node's HTTP interface is. Ends the command where the document does not say."""
    deployment = load(file).deployment
    if deployment is None:
        fail(f"{file} cannot be read as a document; see: comesh validate {file}")
    if node not in deployment.nodes:
        hint = did_you_mean(node, deployment.nodes)
        fail(f"no node {node!r} runs here, and {file} has none" + (f"; {hint}" if hint else ""))
    addresses = {str(name): at for name, at in known_addresses(deployment, {}).items()}.get(node)
    if not addresses:
        fail(f"{file} has no address of {node}; add address: to it, or say where it is with --node HOST:PORT")
    return Target(host=addresses[0][0], port=port, tls=True, node=node)
