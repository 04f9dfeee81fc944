"""Tests of the report of what groups and runs did."""

from comesh.core.effects import Observation, RunTraced
from comesh.core.ids import NodeId, RoutineId
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.traces import BecameTrue, Failed, Finished, Fired, LockQueued, what_of
from comesh.sim import Schedule, Shape, Simulation, make_topology
from comesh.sim.checks import Checks
from comesh.sim.fault_model import Fault
from comesh.sim.faults import DeviceDown, DeviceUp, Kill
from comesh.sim.protocol_watch import ProtocolReport, ProtocolWatch, waits
from comesh.sim.workloads import Workload, contention_workload

TOPOLOGY = make_topology(Shape.GRID, devices=12, smart=0.6, seed=1)
FOLLOWED = RoutineId("r000")


def workload(epoch_ms: int = 60_000) -> Workload:
    settings = ProtocolSettings(epoch_ms=epoch_ms)
    return contention_workload(TOPOLOGY, SelectionSettings(), settings, seed=1, routines=6)


def watched(*faults: Fault, seconds: float = 60, epoch_ms: int = 60_000) -> ProtocolReport:
    work = workload(epoch_ms)
    simulation = Simulation(
        TOPOLOGY, seed=1, faults=Schedule(faults), program=work.program, devices=work.devices
    )
    checks = Checks.attach(simulation.world, work.program)
    watch = ProtocolWatch(simulation.world, work.program.plan.genesis, [FOLLOWED])
    simulation.run(seconds=seconds)
    checks.finish()
    return watch.report(checks)


def test_runs_add_up_and_wait_for_each_other() -> None:
    report = watched()
    runs = report.runs
    assert runs.fired > 30
    assert runs.fired == runs.finished + runs.failed + len(runs.going)
    assert report.lock_waits.queued.count > 0
    assert 0 < report.lock_waits.queued.median_ms <= report.lock_waits.queued.longest_ms
    assert " for d" in report.lock_waits.longest
    assert report.lock_waits.acquired.count > 0
    assert report.devices_seen == 12
    assert report.violations == ()
    assert report.checked


def test_a_followed_run_is_kept_from_its_firing_to_its_end() -> None:
    report = watched()
    assert {trace.routine for trace in report.traces} == {FOLLOWED}
    finished = [trace for trace in report.traces if trace.outcome == "finished"]
    assert finished
    for trace in finished:
        whats = [what_of(line.trace) for line in trace.lines]
        assert whats[0] == "fired"
        assert {
            "attempt_began",
            "lock_asked",
            "lock_granted",
            "executing",
            "command_sent",
            "finished",
        } <= set(whats)
        fired = trace.lines[0].trace
        assert isinstance(fired, Fired) and isinstance(fired.cause, BecameTrue)
    lines = [line for trace in report.traces for line in trace.lines]
    queued = [line.held_by for line in lines if isinstance(line.trace, LockQueued)]
    assert any(held_by is not None for held_by in queued), "who holds the lock is told"


def test_leaders_and_devices_that_change_are_counted() -> None:
    plan = workload().program.plan
    leader = plan.genesis["c1"][0]
    device = sorted(TOPOLOGY.devices)[0]
    report = watched(
        Kill(at_ms=20_000, node=leader),
        DeviceDown(at_ms=30_000, device=device),
        DeviceUp(at_ms=40_000, device=device),
        epoch_ms=3_600_000,
    )
    groups = {counts.group: counts for counts in report.groups}
    assert set(groups) == set(plan.genesis)
    assert groups["c1"].leader_changes >= 1
    assert groups["c1"].elections >= 1
    assert groups["c1"].leader != leader
    assert groups["c1"].commits > 0
    changed = [(change.device, change.status) for change in report.changes if change.device == device]
    assert changed == [(device, "down"), (device, "up")]
    assert report.device_changes >= 2


def test_handoffs_are_counted() -> None:
    report = watched(seconds=130)
    assert all(counts.handoffs >= 1 for counts in report.groups)


def test_waits_without_samples() -> None:
    assert waits([]).count == 0
    assert waits([3.0, 1.0, 2.0]).median_ms == 2.0


def test_ends_that_a_dead_leader_did_not_report_come_from_the_next() -> None:
    work = workload()
    simulation = Simulation(TOPOLOGY, seed=1, program=work.program, devices=work.devices)
    watch = ProtocolWatch(simulation.world, work.program.plan.genesis, [FOLLOWED])
    watch_traces, simulation.world.observers = simulation.world.observers, []

    def without_ends(now_ms: float, node: NodeId, told: Observation) -> None:
        """Drop the traces of ends, as if every leader died between committing and reporting them."""
        if not isinstance(told, RunTraced) or not isinstance(told.trace, Finished | Failed):
            for observer in watch_traces:
                observer(now_ms, node, told)

    simulation.world.observers.append(without_ends)
    simulation.run(seconds=200)
    runs = watch.runs
    assert runs.finished > 0, "the last run of a routine, by what the next leader begins with"
    assert runs.untold > 0, "those before it"
    assert runs.fired == runs.finished + runs.failed + runs.untold + len(runs.going)


def test_firings_that_a_dead_leader_did_not_report_come_from_the_next() -> None:
    work = workload()
    simulation = Simulation(TOPOLOGY, seed=1, program=work.program, devices=work.devices)
    watch = ProtocolWatch(simulation.world, work.program.plan.genesis)
    watch_traces, simulation.world.observers = simulation.world.observers, []

    def without_firings(now_ms: float, node: NodeId, told: Observation) -> None:
        if not isinstance(told, RunTraced) or not isinstance(told.trace, Fired):
            for observer in watch_traces:
                observer(now_ms, node, told)

    simulation.world.observers.append(without_firings)
    simulation.run(seconds=200)
    runs = watch.runs
    assert runs.fired >= runs.finished + runs.failed > 0
