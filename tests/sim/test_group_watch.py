"""Tests of which groups could act and which were served: majorities, one-way cuts, partitions."""

from comesh.core.ids import DeviceId, NodeId
from comesh.core.plan import Place, PlannedDevice, PlannedNode, SelectionSettings
from comesh.core.program import DeviceProgram, Program, ProtocolSettings
from comesh.core.selection import make_plan
from comesh.sim import Schedule, Simulation, topology_of_plan
from comesh.sim.fault_model import Fault
from comesh.sim.faults import Crash, Heal, Kill, Partition, Restart
from comesh.sim.group_watch import GroupWatch, LiveGroups, Span

A, B, C = map(NodeId, "abc")


def program_of_three() -> Program:
    nodes = [PlannedNode(id=node, place=Place(1000 * x, 0)) for x, node in enumerate((A, B, C))]
    lamp = DeviceId("lamp")
    plan = make_plan(1, SelectionSettings(f=1), nodes, [PlannedDevice(id=lamp, place=Place(0, 1000))], [])
    settings = ProtocolSettings(epoch_ms=1e9, cold_wait_ms=2000.0)
    return Program(plan=plan, devices={lamp: DeviceProgram(id=lamp)}, routines={}, settings=settings)


PROGRAM = program_of_three()


def watched(*faults: Fault) -> tuple[Simulation, GroupWatch, LiveGroups]:
    """Watch a group of three nodes for a minute."""
    plan = PROGRAM.plan
    simulation = Simulation(topology_of_plan(plan), seed=1, faults=Schedule(faults), program=PROGRAM)
    groups = LiveGroups(simulation.world, plan)
    watch = GroupWatch(simulation.world, groups)
    simulation.run(minutes=1, progress=lambda _: watch.look())
    return simulation, watch, groups


def test_without_faults_all_groups_act() -> None:
    _, watch, groups = watched()
    assert watch.without_majority() == {"c1": (), "deployment": ()}
    assert watch.unserved() == {"c1": (), "deployment": ()}
    assert groups.now["c1"].leader == groups.now["c1"].members[0]
    assert watch.splits() == ()


def test_a_group_waits_from_the_second_crash_to_the_first_restart() -> None:
    # A's journal is whole: with B it can go on without C.
    faults = (Kill(at_ms=10_000, node=A), Crash(at_ms=20_500, node=C), Restart(at_ms=30_500, node=A))
    _, watch, _ = watched(*faults)
    assert watch.without_majority() == {"c1": (Span(21.0, 31.0),), "deployment": (Span(21.0, 31.0),)}
    unserved = watch.unserved()
    assert unserved is not None
    for spans in unserved.values():
        last = spans[-1]
        assert last.from_s <= 30.0, "a leader without a majority gives up"
        assert last.to_s is not None, "and one of the two goes on"
        assert 31.0 < last.to_s < 45.0
    assert watch.splits() == (), "who does not run is in no part"


def test_the_leader_is_the_one_that_the_nodes_have() -> None:
    leader = PROGRAM.plan.genesis["c1"][0]
    _, watch, groups = watched(Kill(at_ms=10_500, node=leader))
    now = groups.now["c1"]
    assert now.leader in set(PROGRAM.plan.genesis["c1"]) - {leader}
    assert now.ballot.round > 0
    assert watch.without_majority() == {"c1": (), "deployment": ()}
    unserved = watch.unserved()
    assert unserved is not None
    (gap,) = unserved["c1"]
    assert gap.from_s == 11.0
    assert gap.to_s is not None
    assert gap.to_s <= 16.0


def test_a_cut_in_one_direction_splits_too() -> None:
    faults = (
        Partition(at_ms=9_500, sources=(A,), both=False),
        Partition(at_ms=19_500, sources=(B,), destinations=(C,), both=False),
        Heal(at_ms=29_500),
    )
    _, watch, _ = watched(*faults)
    one, two = watch.splits()
    assert (one.from_s, one.to_s, one.parts) == (10.0, 20.0, ((B, C), (A,)))
    assert (two.from_s, two.to_s, two.parts) == (20.0, 30.0, ((A,), (B,), (C,)))
    assert watch.without_majority() == {"c1": (Span(20.0, 30.0),), "deployment": (Span(20.0, 30.0),)}


def test_watching_changes_nothing() -> None:
    fault = Partition(at_ms=9_500, sources=(A,), for_ms=5_000)
    simulation, *_ = watched(fault)
    alone = Simulation(simulation.world.topology, seed=1, faults=Schedule((fault,)), program=PROGRAM)
    alone.run(minutes=1)
    assert alone.report().traffic == simulation.report().traffic
    assert alone.report().events == simulation.report().events
