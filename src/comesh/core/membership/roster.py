"""The nodes that a deployment names, and how near they are to each other.

Immutable and the same for all nodes of one deployment version; in simulation all nodes share one object.
Nodes are numbered in id order; the numbers never leave the process.

The *ring* orders nodes along a Z-shaped walk through space (Morton order), so that ring neighbours are
mostly near each other. Each node watches over the next living one in the ring, its *ward*.
"""

import math
from collections.abc import Sequence

from comesh.core.arithmetic import arithmetic_for, point_of
from comesh.core.ids import NodeId
from comesh.core.plan import Place, PlannedNode
from comesh.core.selection.hashing import id_hash

_AXIS_BITS = 21
MAX_NODES = 65_535
"""Node numbers fit two bytes in every table."""


class Roster:
    __slots__ = (
        "_arithmetic",
        "_places",
        "domains",
        "hashes",
        "ids",
        "index",
        "nodes",
        "ring",
        "ring_position",
    )

    def __init__(self, nodes: Sequence[PlannedNode]) -> None:
        if len(nodes) > MAX_NODES:
            raise ValueError(f"a deployment has at most {MAX_NODES} nodes, not {len(nodes)}")
        ordered = sorted(nodes, key=lambda node: node.id)
        self.nodes: tuple[PlannedNode, ...] = tuple(ordered)
        self.ids: tuple[NodeId, ...] = tuple(node.id for node in ordered)
        self.index: dict[NodeId, int] = {node_id: number for number, node_id in enumerate(self.ids)}
        self.hashes: tuple[int, ...] = tuple(id_hash("node", node_id) for node_id in self.ids)
        self.domains: tuple[str | None, ...] = tuple(node.power_domain for node in ordered)
        self._arithmetic = arithmetic_for(len(ordered))
        self._places = self._arithmetic.places([point_of(node.place) for node in ordered])
        self.ring: tuple[int, ...] = _ring([node.place for node in ordered])
        """Node numbers in ring order."""
        self.ring_position: dict[int, int] = {number: at for at, number in enumerate(self.ring)}

    def __len__(self) -> int:
        return len(self.ids)

    def numbers_in(self, other: "Roster") -> tuple[int | None, ...]:
        """Maps each number here to the number of the same node in another roster; None: it is not in
        there."""
        return tuple(map(other.index.get, self.ids))

    def same_power(self, number: int, most: int) -> list[int]:
        """Returns up to `most` other nodes of the same power domain."""
        domain = self.domains[number]
        if domain is None:
            return []
        return [other for other in self.ring if other != number and self.domains[other] == domain][:most]

    def weights(self, number: int, exponent: int) -> list[float]:
        """1 / distance^exponent from one node to each, in units of its nearest; 0 to itself."""
        return self._arithmetic.probe_weights(self._places, number, exponent)

    def probe_order(self, key: int, counts: Sequence[int]) -> list[int]:
        """Node numbers in the order of their slots: counts of each, at even distances from a drawn start."""
        return self._arithmetic.probe_order(key, counts)


def _ring(places: Sequence[Place]) -> tuple[int, ...]:
    """Node numbers in Morton order of their places; ties in id order."""
    if not places:
        return ()
    low = (
        min(place.x_mm for place in places),
        min(place.y_mm for place in places),
        min(place.z_mm for place in places),
    )
    span = max(max(place.x_mm - low[0], place.y_mm - low[1], place.z_mm - low[2]) for place in places)
    shift = max(0, math.frexp(span)[1] - _AXIS_BITS) if span else 0

    def code(place: Place) -> int:
        axes = (place.x_mm - low[0], place.y_mm - low[1], place.z_mm - low[2])
        word = 0
        for bit in range(_AXIS_BITS):
            for axis, value in enumerate(axes):
                word |= ((value >> shift >> bit) & 1) << (3 * bit + axis)
        return word

    return tuple(sorted(range(len(places)), key=lambda number: (code(places[number]), number)))
