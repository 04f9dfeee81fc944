"""Who comes and who goes: of a share of the nodes each crashes or joins once, half of them each.

A node that is down takes the device at its place with it. Experiments about the control plane leave the
devices out that are at the places of nodes that could be chosen (`spared`), with churn and without.
"""

from collections.abc import Sequence
from typing import NamedTuple

from comesh.core.ids import DeviceId, NodeId
from comesh.core.streams import stream
from comesh.sim.topology import Topology


class Churn(NamedTuple):
    crash: tuple[NodeId, ...]
    join: tuple[NodeId, ...]


def drawn(nodes: Sequence[NodeId], share: float, seed: int) -> Churn:
    chosen = stream(seed, "churn").sample(sorted(nodes), round(share * len(nodes)))
    half = len(chosen) // 2
    return Churn(tuple(chosen[:half]), tuple(chosen[half:]))


def spared(topology: Topology, share: float, seed: int) -> list[DeviceId]:
    """The devices that stay, whoever of that share comes or goes."""
    churning = drawn(sorted(topology.nodes), share, seed)
    gone = {topology.nodes[node] for node in (*churning.crash, *churning.join)}
    return sorted(device for device, station in topology.devices.items() if station not in gone)
