"""Who could have acted: majorities, one-way cuts, parts."""

from comesh.core.ids import DeviceId, NodeId
from comesh.core.plan import Place, PlannedDevice, PlannedNode, SelectionSettings
from comesh.core.selection import make_plan
from comesh.sim import Schedule, Simulation, topology_of_plan
from comesh.sim.faults import Crash, Fault, Heal, Partition, Restart
from comesh.sim.group_watch import EpochGroups, GroupWatch, Span

A, B, C = map(NodeId, "abc")


def watched(*faults: Fault, epoch_ms: float = 1e9) -> tuple[Simulation, GroupWatch]:
    """Three nodes in a group of three, looked at for a minute."""
    nodes = [PlannedNode(id=node, place=Place(1000 * x, 0)) for x, node in enumerate((A, B, C))]
    devices = [PlannedDevice(id=DeviceId("lamp"), place=Place(0, 1000))]
    plan = make_plan(1, SelectionSettings(f=1), nodes, devices, [])
    simulation = Simulation(topology_of_plan(plan), seed=1, faults=Schedule(faults))
    watch = GroupWatch(simulation.world, EpochGroups(simulation.world, plan, epoch_ms))
    simulation.run(minutes=1, progress=lambda _: watch.look())
    return simulation, watch


def test_without_faults_all_groups_could_act() -> None:
    _, watch = watched()
    assert watch.without_majority() == {"c1": (), "deployment": ()}
    assert watch.splits() == ()


def test_a_group_waits_from_the_second_crash_to_the_first_restart() -> None:
    faults = (Crash(at_ms=10_000, node=A), Crash(at_ms=20_500, node=C), Restart(at_ms=30_500, node=A))
    _, watch = watched(*faults)
    assert watch.without_majority() == {"c1": (Span(21.0, 31.0),), "deployment": (Span(21.0, 31.0),)}
    assert watch.splits() == (), "who does not run is in no part"


def test_a_cut_in_one_direction_splits_too() -> None:
    faults = (
        Partition(at_ms=9_500, sources=(A,), both=False),
        Partition(at_ms=19_500, sources=(B,), destinations=(C,), both=False),
        Heal(at_ms=29_500),
    )
    _, watch = watched(*faults)
    one, two = watch.splits()
    assert (one.from_s, one.to_s, one.parts) == (10.0, 20.0, ((B, C), (A,)))
    assert (two.from_s, two.to_s, two.parts) == (20.0, 30.0, ((A,), (B,), (C,)))
    assert watch.without_majority() == {"c1": (Span(20.0, 30.0),), "deployment": (Span(20.0, 30.0),)}


def test_looking_changes_nothing() -> None:
    fault = Partition(at_ms=9_500, sources=(A,), for_ms=5_000)
    simulation, _ = watched(fault)
    alone = Simulation(simulation.world.topology, seed=1, faults=Schedule((fault,)))
    alone.run(minutes=1)
    assert alone.report().traffic == simulation.report().traffic
    assert alone.report().events == simulation.report().events
