"""Times, paths, losses, cuts and counts of the radio, against figures worked out by hand."""

import itertools

import numpy as np
import pytest
from toys import line

from comesh.core.streams import stream
from comesh.sim.radio import Radio, RadioSettings
from comesh.sim.routes import UNREACHABLE, Routes
from comesh.sim.topology import Shape, make_topology
from comesh.sim.traffic import Amount, Lost, Parcel

MANY = 10_000


def radio(stations: int = 4, seed: int = 1, **settings: float) -> Radio:
    return Radio(line(stations), RadioSettings(**settings), seed)


def parcel(source: int, destination: int, size_bytes: int = 1250) -> Parcel:
    return Parcel(0, source, destination, size_bytes)


def named(radio: Radio) -> Radio:
    assert radio.traffic.kind("Test") == 0
    return radio


def test_one_hop_by_hand() -> None:
    """1250 B at 625 kB/s are 2 ms; an end of the line has one neighbour, an inner station two."""
    assert named(radio()).transmit(parcel(0, 1)) == (pytest.approx(10 + 2 * 1),)
    assert named(radio()).transmit(parcel(1, 0)) == (pytest.approx(10 + 2 * 2),)


def test_three_hops_by_hand() -> None:
    """0 -> 1 -> 2 -> 3: the senders 0, 1, 2 have 1 + 2 + 2 neighbours."""
    assert named(radio()).transmit(parcel(0, 3)) == (pytest.approx(3 * 10 + 2 * 5),)
    assert named(radio(hop_ms=1000.0)).transmit(parcel(0, 3, 625)) == (pytest.approx(3005.0),)
    slow = named(radio(bandwidth_bytes_per_s=1250.0))
    assert slow.transmit(parcel(0, 3)) == (pytest.approx(30 + 1000 * 5),)


def test_a_message_to_the_own_station_costs_nothing() -> None:
    mesh = named(radio())
    assert mesh.transmit(parcel(2, 2)) == (0.0,)
    assert mesh.traffic.total().sent == Amount()


def test_dead_neighbours_do_not_share_the_air() -> None:
    mesh = named(radio())
    mesh.set_up(0, False)
    assert mesh.transmit(parcel(1, 2)) == (pytest.approx(10 + 2 * 1),)


def test_a_station_that_is_down_does_not_relay_but_is_a_destination() -> None:
    mesh = named(radio())
    mesh.set_up(2, False)
    assert mesh.transmit(parcel(0, 3)) == ()
    assert len(mesh.transmit(parcel(0, 2))) == 1
    mesh.set_up(2, True)
    assert len(mesh.transmit(parcel(0, 3))) == 1
    assert mesh.traffic.losses() == {("Test", Lost.NO_ROUTE): 1}


def test_routes_go_around_the_dead_and_are_shortest() -> None:
    topology = make_topology(Shape.GRID, devices=64, seed=1)
    routes = Routes(topology, stream(1, "test"))
    alive = np.ones(64, dtype=np.bool_)
    alive[[5, 17, 33]] = False
    for up in (np.ones(64, dtype=np.bool_), alive):
        routes.change(up, np.ones(64, dtype=np.bool_), [])
        shortest = floyd(topology.neighbours, up)
        for source, destination in itertools.product(range(0, 64, 3), range(64)):
            if source == destination or not up[source]:
                continue
            path = routes.path(source, destination)
            assert path is not None
            assert len(path) - 1 == shortest[source, destination] == routes.length(source, destination) >> 16
            assert all(up[station] for station in path[1:-1])
            assert all(there in topology.neighbours[here] for here, there in itertools.pairwise(path))
            load = sum(sum(up[other] for other in topology.neighbours[here]) for here in path[:-1])
            assert load == routes.length(source, destination) & 0xFFFF


def floyd(neighbours: tuple[tuple[int, ...], ...], up: np.ndarray) -> np.ndarray:
    """Returns all shortest paths by the slow method; only stations that are up relay."""
    count = len(neighbours)
    hops = np.full((count, count), 10_000)
    for station in range(count):
        hops[station, station] = 0
        for other in neighbours[station]:
            hops[station, other] = 1
    for via in np.flatnonzero(up):
        hops = np.minimum(hops, hops[:, via : via + 1] + hops[via : via + 1, :])
    return hops


def test_routes_of_more_stations_than_one_search_takes() -> None:
    topology = make_topology(Shape.LINE, devices=1100, seed=1)
    routes = Routes(topology, stream(1, "test"))
    first, last = 0, 1099
    far = abs(topology.places[first].x_mm - topology.places[last].x_mm) // 1000
    assert routes.length(first, last) >> 16 == far == routes.length(last, first) >> 16


def test_cuts_are_directed_and_end() -> None:
    mesh = named(radio())
    mesh.cut(1, {0, 1}, {2, 3})
    assert mesh.transmit(parcel(0, 3)) == mesh.transmit(parcel(1, 2)) == ()
    assert len(mesh.transmit(parcel(3, 0))) == len(mesh.transmit(parcel(0, 1))) == 1
    mesh.heal(1)
    assert len(mesh.transmit(parcel(0, 3))) == 1


def test_a_cut_holds_around_third_parties_too() -> None:
    """0 and 2 do not hear each other: what 1 relays between them is cut as well, but 1 hears both."""
    mesh = named(radio(3))
    mesh.cut(1, {0}, {2})
    assert mesh.transmit(parcel(0, 2)) == ()
    assert len(mesh.transmit(parcel(0, 1))) == len(mesh.transmit(parcel(1, 2))) == 1
    assert len(mesh.transmit(parcel(2, 0))) == 1


def test_a_cut_link_makes_others_go_around() -> None:
    """On a ring of places the link 0 -> 1 is cut: others that would have used it take the long way."""
    topology = make_topology(Shape.GRID, devices=9, seed=1, reach=1.0)
    routes = Routes(topology, stream(1, "test"))
    here, there = 0, topology.neighbours[0][0]
    ones = np.ones(9, dtype=np.bool_)
    routes.change(ones, ones, [(np.arange(9) == here, np.arange(9) == there)])
    assert routes.length(here, there) >> 16 == 3
    assert routes.length(there, here) >> 16 == 1


@pytest.mark.parametrize(
    ("settings", "arrive"),
    [
        ({"loss_per_hop": 0.1}, 0.9**3),
        ({"loss_per_message": 0.1}, 0.9),
        ({"loss_per_hop": 0.1, "loss_per_message": 0.1}, 0.9**4),
    ],
)
def test_loss_rates(settings: dict[str, float], arrive: float) -> None:
    mesh = named(radio(**settings))
    arrived = sum(len(mesh.transmit(parcel(0, 3))) for _ in range(MANY))
    assert arrived / MANY == pytest.approx(arrive, abs=0.015)
    assert sum(mesh.traffic.losses().values()) == MANY - arrived


def test_a_lost_message_counts_on_the_hops_before_the_loss() -> None:
    """Hop h of a message is transmitted with probability 0.8^(h-1)."""
    mesh = named(radio(loss_per_hop=0.2))
    for _ in range(MANY):
        mesh.transmit(parcel(0, 3))
    relayed = [mesh.traffic.total(station=station).relayed.messages / MANY for station in range(4)]
    assert relayed == [0, pytest.approx(0.8, abs=0.015), pytest.approx(0.64, abs=0.015), 0]
    assert mesh.traffic.total().sent.messages == MANY


def test_duplicates_and_reordering() -> None:
    mesh = named(radio(duplicate=0.3, reorder=0.5, reorder_ms=50.0))
    plain_ms = named(radio()).transmit(parcel(0, 1))[0]
    arrivals = [mesh.transmit(parcel(0, 1)) for _ in range(MANY)]
    assert sum(len(copies) == 2 for copies in arrivals) / MANY == pytest.approx(0.3, abs=0.015)
    firsts = [copies[0] for copies in arrivals]
    assert sum(first > plain_ms for first in firsts) / MANY == pytest.approx(0.5, abs=0.015)
    assert all(plain_ms <= first <= plain_ms + 50 for first in firsts)


def test_concerns_do_not_disturb_each_other() -> None:
    """Which messages are lost does not depend on whether some are held up as well."""

    def lost(**more: float) -> list[bool]:
        mesh = named(radio(loss_per_message=0.2, **more))
        return [not mesh.transmit(parcel(0, 1)) for _ in range(500)]

    assert lost() == lost(reorder=0.5)


def test_traffic_is_conserved() -> None:
    """Transmissions add up to hops, relays to hops - 1, for every kind and in all."""
    topology = make_topology(Shape.GRID, devices=60, seed=2)
    mesh = Radio(topology, RadioSettings(), 1)
    draws = stream(5, "pairs")
    hops = {"A": 0, "B": 0}
    sizes = {"A": 0, "B": 0}
    count = {"A": 0, "B": 0}
    for number in range(500):
        kind = "AB"[number % 2]
        source, destination = draws.sample(range(60), 2)
        sent = Parcel(mesh.traffic.kind(kind), source, destination, 100 + number)
        mesh.transmit(sent)
        mesh.traffic.received(sent)
        length = mesh.routes.length(source, destination) >> 16
        hops[kind] += length
        sizes[kind] += length * (100 + number)
        count[kind] += 1
        if number % 100 == 99:
            mesh.set_up(draws.below(60), number % 200 == 99)
    for kind in "AB":
        total = mesh.traffic.total(kind=kind)
        assert total.sent.messages == total.received.messages == count[kind]
        assert total.transmitted == Amount(hops[kind], sizes[kind])
        assert total.relayed.messages == hops[kind] - count[kind]
    by_station = [mesh.traffic.total(station=station).transmitted.messages for station in range(60)]
    assert sum(by_station) == sum(hops.values())


def test_many_kinds() -> None:
    mesh = radio()
    for number in range(20):
        mesh.transmit(Parcel(mesh.traffic.kind(f"kind{number}"), 0, 3, 10 + number))
    assert mesh.traffic.total(kind="kind19").transmitted == Amount(3, 3 * 29)
    assert mesh.traffic.total().sent.messages == 20
    assert mesh.traffic.total(kind="unheard of").sent == Amount()


def test_reachability_agrees_with_the_packed_length() -> None:
    mesh = radio()
    mesh.cut(1, {0}, {1})
    mesh.transmit(parcel(0, 3))
    assert mesh.routes.length(0, 3) == UNREACHABLE
    assert mesh.routes.path(0, 3) is None


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="loss_per_hop must be from 0 to 1"):
        RadioSettings(loss_per_hop=1.5)
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        RadioSettings(bandwidth_bytes_per_s=0)
