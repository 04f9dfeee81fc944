"""Topologies: where everything stands and which stations hear each other; those of the paper, and a plan's
own.

A *station* is a place with a radio. Every one of the N devices has one; a share of them is smart and
runs a node at the same station (paper, section 5.1: 40 % of 250). Two stations hear each other when
they are at most `reach_mm` apart. Stations that run nodes are numbered first.

Who relays: every station, by default. The paper asks for "any mesh routing algorithm" under CoMesh and
counts N, not the smart share, as the size of its meshes; its quorum distances (paper, table 2) fit a
mesh of all N. `Relays.NODES` lets only the stations of nodes pass messages on, for radios that join a
mesh without serving it. Either way what relays is connected and reaches every station: a maker draws
again until that is so, or says that it can't be.

The grid is cut from a near-cube of unit spacing; random and clustered fill the same volume with the
same number of stations, so density is equal (paper, section 5.2). Places are whole millimetres.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.plan import Place, Plan, PlannedDevice, PlannedNode
from comesh.core.streams import stream

SMART_SHARE = 0.4
SPACING_MM = 1000
REACH_SPACINGS = math.sqrt(2)
"""Reach of the grid's neighbours: along the axes and diagonally within a plane; 1 leaves the axes only."""

_REDRAWS = 500
_STATIONS_PER_CLUSTER = 25
_SCATTERED_SHARE = 0.25
_CLUSTER_RADIUS_SPACINGS = 2.0


class Shape(StrEnum):
    GRID = "grid"
    RANDOM = "random"
    CLUSTERED = "clustered"
    LINE = "line"


class Relays(StrEnum):
    ALL = "all"
    NODES = "nodes"


class TopologyError(ValueError):
    """No mesh with these properties is possible; str() says why and what to change."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A mesh: stations are numbers from 0; the nodes and devices at them have names."""

    name: str
    places: tuple[Place, ...]
    reach_mm: int
    nodes: dict[NodeId, int]
    devices: dict[DeviceId, int]
    relays: tuple[bool, ...]
    power_domains: dict[str, tuple[NodeId, ...]] = field(default_factory=dict)
    neighbours: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", _neighbours(_coordinates(self.places), self.reach_mm))

    def station(self, name: str) -> int:
        """Returns the station of a node or device; KeyError if nothing has that name."""
        at_node = self.nodes.get(NodeId(name))
        return self.devices[DeviceId(name)] if at_node is None else at_node

    def planned_nodes(self) -> tuple[PlannedNode, ...]:
        """Returns the nodes as a plan has them."""
        domain_of = {node: domain for domain, nodes in self.power_domains.items() for node in nodes}
        return tuple(
            PlannedNode(id=node, place=self.places[station], power_domain=domain_of.get(node))
            for node, station in sorted(self.nodes.items())
        )

    def planned_devices(self) -> tuple[PlannedDevice, ...]:
        return tuple(
            PlannedDevice(id=device, place=self.places[station])
            for device, station in sorted(self.devices.items())
        )


def make_topology(
    shape: Shape,
    *,
    devices: int,
    smart: float = SMART_SHARE,
    seed: int = 0,
    spacing_mm: int = SPACING_MM,
    reach: float = REACH_SPACINGS,
    relays: Relays = Relays.ALL,
) -> Topology:
    """Make a mesh of that shape with that many devices; `reach` is in spacings."""
    if devices < 1:
        raise TopologyError("a mesh needs at least one device")
    if reach < 1:
        raise TopologyError(f"reach {reach} is below one spacing: nobody would hear anybody")
    draws = stream(seed, f"topology {shape}")
    reach_mm = math.ceil(reach * spacing_mm)
    match shape:
        case Shape.GRID:
            places = _grid_places(devices, spacing_mm)
        case Shape.LINE:
            places = [Place(index * spacing_mm, 0) for index in range(devices)]
        case Shape.RANDOM:
            draw = _anywhere(devices, spacing_mm, draws)
            places = _connected(devices, reach_mm, draw)
        case Shape.CLUSTERED:
            draw = _in_clusters(devices, spacing_mm, draws)
            places = _connected(devices, reach_mm, draw)
    drawing = stream(seed, "topology nodes")
    return _populate(shape, places, reach_mm=reach_mm, smart=smart, relays=relays, draws=drawing)


def topology_of_plan(
    plan: Plan, *, name: str = "plan", reach_mm: int | None = None, relays: Relays = Relays.ALL
) -> Topology:
    """Make the topology of a plan. Without a reach, the shortest that connects all stations is taken (at
    least 1 mm).

    A device at exactly the place of a node shares its station; every node has a station of its own.
    """
    places = [node.place for node in plan.nodes]
    nodes = {node.id: station for station, node in enumerate(plan.nodes)}
    station_at = {place: station for station, place in reversed(list(enumerate(places)))}
    devices: dict[DeviceId, int] = {}
    for device in plan.devices:
        if device.place not in station_at:
            station_at[device.place] = len(places)
            places.append(device.place)
        devices[device.id] = station_at[device.place]
    relaying = [relays is Relays.ALL or station < len(nodes) for station in range(len(places))]
    if reach_mm is None:
        reach_mm = _shortest_reach(_coordinates(places), np.array(relaying))
    domains: dict[str, list[NodeId]] = {}
    for node in plan.nodes:
        if node.power_domain is not None:
            domains.setdefault(node.power_domain, []).append(node.id)
    topology = Topology(
        name=name,
        places=tuple(places),
        reach_mm=reach_mm,
        nodes=nodes,
        devices=devices,
        relays=tuple(relaying),
        power_domains={domain: tuple(members) for domain, members in domains.items()},
    )
    if not _reaches_all(topology.neighbours, topology.relays):
        needed = _shortest_reach(_coordinates(places), np.array(relaying))
        raise TopologyError(
            f"a reach of {reach_mm} mm leaves parts of the mesh apart; {needed} mm would connect them"
        )
    return topology


def _populate(
    name: str, places: list[Place], *, reach_mm: int, smart: float, relays: Relays, draws: Draws
) -> Topology:
    """Draw which stations run nodes, and name everything by its number."""
    count = len(places)
    node_count = max(1, round(count * smart))
    digits = len(str(count - 1))
    smart_ones = set(draws.sample(range(count), node_count))
    if relays is Relays.NODES:
        neighbours = _neighbours(_coordinates(places), reach_mm)
        tries = 0
        while not _reaches_all(neighbours, tuple(index in smart_ones for index in range(count))):
            smart_ones = set(draws.sample(range(count), node_count))
            tries += 1
            if tries == _REDRAWS:
                raise TopologyError(
                    f"no draw of {node_count} nodes among {count} stations gave a connected mesh: "
                    "raise the smart share or the reach, or let all stations relay"
                )
    order = sorted(range(count), key=lambda index: (index not in smart_ones, index))
    return Topology(
        name=name,
        places=tuple(places[index] for index in order),
        reach_mm=reach_mm,
        nodes={NodeId(f"n{index:0{digits}}"): station for station, index in enumerate(order[:node_count])},
        devices={DeviceId(f"d{index:0{digits}}"): station for station, index in enumerate(order)},
        relays=tuple(relays is Relays.ALL or index in smart_ones for index in order),
    )


def _box(count: int) -> tuple[int, int, int]:
    """Returns the sides of a near-cube with room for count unit cells and little to spare."""
    wide = next(side for side in range(1, count + 1) if side**3 >= count)
    deep = next(side for side in range(1, count + 1) if side**2 * wide >= count)
    return (wide, deep, -(-count // (wide * deep)))


def _grid_places(count: int, spacing_mm: int) -> list[Place]:
    wide, deep, _ = _box(count)
    return [
        Place(
            index % wide * spacing_mm,
            index // wide % deep * spacing_mm,
            index // (wide * deep) * spacing_mm,
        )
        for index in range(count)
    ]


def _sides_mm(count: int, spacing_mm: int) -> tuple[int, int, int]:
    """Returns the sides of a box of the grid's shape with exactly count cubic spacings: equal density."""
    wide, deep, high = _box(count)
    scale = (count / (wide * deep * high)) ** (1 / 3) * spacing_mm
    return (round(wide * scale), round(deep * scale), round(high * scale))


def _anywhere(count: int, spacing_mm: int, draws: Draws) -> Callable[[], Place]:
    sides_mm = _sides_mm(count, spacing_mm)
    return lambda: Place(*(draws.below(side_mm) for side_mm in sides_mm))


def _in_clusters(count: int, spacing_mm: int, draws: Draws) -> Callable[[], Place]:
    """Draw places: most stations near one of the centres, one in four anywhere in the same box."""
    sides_mm = _sides_mm(count, spacing_mm)
    anywhere = _anywhere(count, spacing_mm, draws)
    centres = [anywhere() for _ in range(-(-count // _STATIONS_PER_CLUSTER))]
    radius_mm = _CLUSTER_RADIUS_SPACINGS * spacing_mm

    def near(middle_mm: int, side_mm: int) -> int:
        """Draw from a bell curve around the middle (a sum of three uniform draws), inside the box."""
        while True:
            away = (draws.unit() + draws.unit() + draws.unit()) / 1.5 - 1
            at_mm = middle_mm + round(away * radius_mm)
            if 0 <= at_mm < side_mm:
                return at_mm

    def draw() -> Place:
        if draws.chance(_SCATTERED_SHARE):
            return anywhere()
        centre = draws.choice(centres)
        return Place(*(near(middle, side) for middle, side in zip(centre_of(centre), sides_mm, strict=True)))

    def centre_of(centre: Place) -> tuple[int, int, int]:
        return (centre.x_mm, centre.y_mm, centre.z_mm)

    return draw


def _connected(count: int, reach_mm: int, draw: Callable[[], Place]) -> list[Place]:
    """Draw count places, and redraw those outside of the largest part until all are one part."""
    places = [draw() for _ in range(count)]
    for _ in range(_REDRAWS):
        neighbours = _neighbours(_coordinates(places), reach_mm)
        parts = _parts(neighbours, [True] * count)
        if len(parts) == 1:
            return places
        parts.sort(key=len)
        largest = set(parts[-1])
        for index in range(count):
            if index not in largest:
                places[index] = draw()
    raise TopologyError(f"{count} stations with a reach of {reach_mm} mm never became connected: raise it")


def _coordinates(places: Iterable[Place]) -> NDArray[np.int64]:
    rows = [(place.x_mm, place.y_mm, place.z_mm) for place in places]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _neighbours(coordinates: NDArray[np.int64], reach_mm: int) -> tuple[tuple[int, ...], ...]:
    """Returns the stations within reach of each station, in order of number.

    Walks along the x axis, a block of stations at a time against those that may be near enough.
    """
    order = np.argsort(coordinates[:, 0], kind="stable")
    along = coordinates[order]
    rows: list[tuple[int, ...]] = [()] * len(coordinates)
    for first in range(0, len(coordinates), 128):
        block = along[first : first + 128]
        low = int(np.searchsorted(along[:, 0], block[0, 0] - reach_mm, side="left"))
        high = int(np.searchsorted(along[:, 0], block[-1, 0] + reach_mm, side="right"))
        apart = block[:, None, :] - along[None, low:high, :]
        near = (apart * apart).sum(axis=2) <= reach_mm * reach_mm
        for offset, row in enumerate(near):
            row[first + offset - low] = False
            rows[order[first + offset]] = tuple(np.sort(order[low:high][row]).tolist())
    return tuple(rows)


def _parts(neighbours: tuple[tuple[int, ...], ...], member: list[bool]) -> list[list[int]]:
    """Returns the connected parts of the members, each in order from its lowest number."""
    seen = [not inside for inside in member]
    parts: list[list[int]] = []
    for start in range(len(neighbours)):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for station in part:
            for other in neighbours[station]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
        parts.append(part)
    return parts


def _reaches_all(neighbours: tuple[tuple[int, ...], ...], relaying: tuple[bool, ...]) -> bool:
    """True if the relays are one part and every other station hears a relay."""
    if len(_parts(neighbours, list(relaying))) > 1:
        return False
    return all(
        relays or any(relaying[other] for other in neighbours[station])
        for station, relays in enumerate(relaying)
    )


def _shortest_reach(coordinates: NDArray[np.int64], relaying: NDArray[np.bool_]) -> int:
    """Returns the longest edge of the shortest tree over all relays and, from each other station, to one
    (Prim)."""
    count = len(coordinates)
    joined = np.zeros(count, dtype=np.bool_)
    nearest = np.full(count, np.iinfo(np.int64).max)
    station = int(np.flatnonzero(relaying)[0])
    longest = 1
    while True:
        joined[station] = True
        if relaying[station]:
            apart = coordinates - coordinates[station]
            nearest = np.minimum(nearest, (apart * apart).sum(axis=1))
        left = np.flatnonzero(~joined)
        if not len(left):
            return math.isqrt(longest - 1) + 1
        station = int(left[np.argmin(nearest[left])])
        longest = max(longest, int(nearest[station]))
