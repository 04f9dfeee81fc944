"""The shapes of the paper: connected, of equal density, drawn from a seed."""

import math

import pytest

from comesh.core.ids import DeviceId, NodeId
from comesh.core.plan import Place, Plan, PlannedDevice, PlannedNode, SelectionSettings
from comesh.core.selection.planning import make_plan
from comesh.core.streams import stream
from comesh.sim.routes import UNREACHABLE, Routes
from comesh.sim.topology import Relays, Shape, Topology, TopologyError, make_topology, topology_of_plan

SHAPES = list(Shape)
SPATIAL = [Shape.GRID, Shape.RANDOM, Shape.CLUSTERED]


def reached(topology: Topology) -> bool:
    routes = Routes(topology, stream(0, "test"))
    return all(
        routes.length(source, destination) != UNREACHABLE
        for source in topology.nodes.values()
        for destination in range(len(topology.places))
        if source != destination
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("devices", [1, 2, 11, 120])
def test_connected_and_of_the_right_size(shape: Shape, devices: int) -> None:
    for seed in range(3):
        topology = make_topology(shape, devices=devices, seed=seed)
        assert len(topology.places) == len(topology.devices) == devices
        assert len(topology.nodes) == max(1, round(0.4 * devices))
        assert sorted(topology.nodes.values()) == list(range(len(topology.nodes)))
        assert reached(topology)


@pytest.mark.parametrize("shape", [Shape.GRID, Shape.RANDOM])
def test_connected_where_only_nodes_relay(shape: Shape) -> None:
    topology = make_topology(shape, devices=60, seed=1, relays=Relays.NODES, smart=0.6)
    assert sum(topology.relays) == len(topology.nodes)
    assert reached(topology)


@pytest.mark.parametrize("shape", SPATIAL)
def test_equal_density(shape: Shape) -> None:
    """N stations in N cubic spacings, give or take the half spacing around the grid's outer places."""
    devices = 1000
    places = make_topology(shape, devices=devices, seed=3).places
    spans = [
        max(getattr(place, axis) for place in places) - min(getattr(place, axis) for place in places)
        for axis in ("x_mm", "y_mm", "z_mm")
    ]
    margin_mm = 1000 if shape is Shape.GRID else 0
    volume = math.prod((span + margin_mm) / 1000 for span in spans)
    assert volume == pytest.approx(devices, rel=0.05)


def test_clustered_is_more_uneven_than_random() -> None:
    def unevenness(shape: Shape) -> float:
        degrees = [len(row) for row in make_topology(shape, devices=500, seed=1).neighbours]
        mean = sum(degrees) / len(degrees)
        return sum((degree - mean) ** 2 for degree in degrees) / len(degrees) / mean

    assert unevenness(Shape.CLUSTERED) > 2 * unevenness(Shape.RANDOM)


def test_neighbours_of_the_grid() -> None:
    def widest(reach: float) -> int:
        return max(map(len, make_topology(Shape.GRID, devices=125, reach=reach).neighbours))

    assert widest(1.0) == 6
    assert widest(math.sqrt(2)) == 18
    assert widest(math.sqrt(3)) == 26


def test_the_seed_decides() -> None:
    first = make_topology(Shape.RANDOM, devices=50, seed=1)
    assert first == make_topology(Shape.RANDOM, devices=50, seed=1)
    assert first.places != make_topology(Shape.RANDOM, devices=50, seed=2).places
    grids = [make_topology(Shape.GRID, devices=50, seed=seed) for seed in (1, 2)]
    assert set(grids[0].nodes) != set(grids[1].nodes)


def test_spacing_scales_everything() -> None:
    near = make_topology(Shape.GRID, devices=30, seed=1)
    far = make_topology(Shape.GRID, devices=30, seed=1, spacing_mm=5000)
    assert near.neighbours == far.neighbours
    assert far.places[-1].x_mm == 5 * near.places[-1].x_mm


def test_impossible_topologies_are_refused() -> None:
    with pytest.raises(TopologyError, match="at least one device"):
        make_topology(Shape.GRID, devices=0)
    with pytest.raises(TopologyError, match="below one spacing"):
        make_topology(Shape.GRID, devices=9, reach=0.5)
    with pytest.raises(TopologyError, match="let all stations relay"):
        make_topology(Shape.LINE, devices=50, smart=0.1, relays=Relays.NODES)


def plan(nodes: list[Place], devices: list[Place]) -> Plan:
    return make_plan(
        1,
        SelectionSettings(),
        [
            PlannedNode(id=NodeId(f"n{index}"), place=place, power_domain="a" if index else None)
            for index, place in enumerate(nodes)
        ],
        [PlannedDevice(id=DeviceId(f"d{index}"), place=place) for index, place in enumerate(devices)],
        [],
    )


def test_a_plan_gets_the_shortest_reach_that_connects_it() -> None:
    topology = topology_of_plan(plan([Place(0, 0), Place(3000, 4000)], [Place(3000, 5000), Place(0, 0)]))
    assert topology.reach_mm == 5000
    assert topology.devices == {"d0": 2, "d1": 0}, "a device in the place of a node shares its station"
    assert topology.power_domains == {"a": ("n1",)}
    assert topology.planned_nodes()[1].power_domain == "a"
    assert reached(topology)


def test_too_short_a_reach_is_refused_with_a_sufficient_one() -> None:
    places = [Place(0, 0), Place(3000, 4000)]
    with pytest.raises(TopologyError, match="5000 mm would connect"):
        topology_of_plan(plan(places, []), reach_mm=4999)
    relay_through_device = plan([Place(0, 0), Place(2000, 0)], [Place(1000, 0)])
    assert topology_of_plan(relay_through_device).reach_mm == 1000
    assert topology_of_plan(relay_through_device, relays=Relays.NODES).reach_mm == 2000


def test_nodes_in_one_place_have_stations_of_their_own() -> None:
    topology = topology_of_plan(plan([Place(0, 0), Place(0, 0)], []))
    assert topology.nodes == {"n0": 0, "n1": 1}
    assert reached(topology)
