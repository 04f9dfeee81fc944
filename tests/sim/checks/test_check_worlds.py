"""The checks on real nodes: a sound protocol breaks nothing, and each rule that is taken out of it shows."""

from collections.abc import Callable

import msgspec
import pytest

from comesh.core.devices import calls, locks
from comesh.core.effects import CommandDevice
from comesh.core.group.leadership import Leadership
from comesh.core.group.replica import Replica
from comesh.core.ids import NodeId
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import DeviceRecord, RoutineRecord, RunRecord, routine_key, run_key
from comesh.core.routines import runs
from comesh.core.routines.triggers import Triggers
from comesh.core.step import Step
from comesh.core.work_messages import Command, Fire, GroupMessage
from comesh.sim.checks import Checks, Promise
from comesh.sim.checks.lives import Lives
from comesh.sim.fault_model import Fault
from comesh.sim.fault_schedules import Schedule
from comesh.sim.faults import Kill, Partition, Pause, Restart
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import contention_workload, routine_name
from comesh.sim.world_settings import WorldSettings


def simulate(*faults: Fault, seconds: float = 20.0, seed: int = 1) -> Checks:
    """Eight nodes, and twelve routines that want the same five devices."""
    topology = make_topology(Shape.GRID, devices=12, smart=0.7, seed=seed)
    workload = contention_workload(
        topology,
        SelectionSettings(f=1, seed=seed, cluster_size=6),
        ProtocolSettings(epoch_ms=15_000),
        seed=seed,
        routines=12,
        contended=5,
    )
    simulation = Simulation(
        topology,
        seed=seed,
        devices=workload.devices,
        program=workload.program,
        faults=Schedule(faults),
        joined=True,
    )
    checks = Checks.attach(simulation.world, workload.program)
    progress = checks.progress(60_000.0)
    progress.begin(0.0)
    for node in list(topology.nodes)[:2]:
        simulation.run(seconds=5.0)
        simulation.world.fire(routine_name(0), "the same request", node)
    simulation.run(seconds=seconds - 10.0)
    progress.judge(simulation.world.now_ms)
    checks.finish()
    return checks


def told(checks: Checks) -> str:
    return "\n".join(str(violation) for violation in checks.violations[:2])


def test_a_sound_protocol_breaks_nothing() -> None:
    nodes = sorted(make_topology(Shape.GRID, devices=12, smart=0.7, seed=1).nodes)
    faults: list[Fault] = []
    for number, node in enumerate(nodes[:5]):
        at_ms = 6000.0 + 7000.0 * number
        faults += [Kill(at_ms=at_ms, node=node), Restart(at_ms=at_ms + 3000.0, node=node)]
        faults.append(Pause(at_ms=at_ms + 1000.0, node=nodes[-1], for_ms=2500.0))
    checks = simulate(*faults, seconds=50.0)
    assert checks.violations == [], told(checks)
    assert checks.losses == []
    assert checks.locks.acts > 50
    assert all(history.number > 0 for history in checks.histories.groups.values())
    assert any(len(history.known) > 2 for history in checks.histories.groups.values()), "handoffs"
    assert any(len(history.reigns) > len(history.known) for history in checks.histories.groups.values())


def _commits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader counts an update as committed when it has written it itself."""
    count = Leadership._count

    def alone(self: Leadership, step: Step) -> None:
        count(self, step)
        number = self.member.ledger.number
        if self.serving is not None and number > self.committed:
            self._commit(number, step)

    monkeypatch.setattr(Leadership, "_count", alone)


def _executes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not wait for its locks."""
    monkeypatch.setattr(runs, "holds_all", lambda run: True)


def _loses_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is over is forgotten."""

    def forget(self: runs.Runs, run: RunRecord, step: Step) -> None:
        self.serving.drop(run_key(run.run.routine))

    monkeypatch.setattr(runs.Runs, "_end", forget)


def _commands_without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs execute at once, and devices do not care who holds them."""
    _executes_at_once(monkeypatch)
    on_command = calls.Calls.on_command

    def careless(
        self: calls.Calls, command: Command, message: GroupMessage, sender: NodeId, step: Step
    ) -> None:
        number = self._serving.next_call()
        sent = CommandDevice(command.device, number, command.action, command.origin)
        self._serving.do(sent)
        on_command(self, command, message, sender, step)

    monkeypatch.setattr(calls.Calls, "on_command", careless)


def _fires_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are forgotten at once."""
    on_fire = Triggers.on_fire

    def forgetful(self: Triggers, message: GroupMessage, body: Fire, sender: NodeId, step: Step) -> None:
        record = self._serving.get(routine_key(body.routine), RoutineRecord)
        if record is not None:
            self._serving.put(msgspec.structs.replace(record, requests=()))
        on_fire(self, message, body, sender, step)

    monkeypatch.setattr(Triggers, "on_fire", forgetful)


def _never_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device is never taken to be quiet, so that nobody gets it."""

    def busy(record: DeviceRecord) -> bool:
        return False

    monkeypatch.setattr(locks, "is_quiet", busy)


@pytest.mark.parametrize(
    ("break_it", "promise", "seconds"),
    [
        (_commits_alone, Promise.QUORUM, 15.0),
        (_executes_at_once, Promise.SAFETY, 15.0),
        (_loses_ends, Promise.NO_LOSS, 15.0),
        (_commands_without_locks, Promise.NO_STRAY, 15.0),
        (_fires_again, Promise.FIRED_ONCE, 20.0),
        (_never_grants, Promise.PROGRESS, 80.0),
    ],
)
def test_a_missing_rule_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None],
    promise: Promise,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    checks = simulate(seconds=seconds)
    assert promise in {violation.promise for violation in checks.violations}


def test_lives_are_told_apart() -> None:
    topology = make_topology(Shape.GRID, devices=4, smart=1.0, seed=1)
    simulation = Simulation(topology, seed=1, settings=WorldSettings(start_spread_ms=0.0))
    world, node = simulation.world, sorted(topology.nodes)[0]
    lives = Lives(world)
    simulation.run(seconds=1.0)
    assert lives.runs_since(node, 500.0)
    world.kill(world.machines[node])
    assert not lives.runs_since(node, 500.0)
    world.start(world.machines[node])
    assert not lives.runs_since(node, 500.0)
    assert lives.runs_since(node, 1000.0)
    simulation.run(seconds=1.0)
    assert world.copy_card(node) is not None
    assert lives.runs_since(node, 1000.0)
    world.kill(world.machines[node])
    assert not lives.runs_since(node, 1000.0)
    assert lives.runs_since(node, 2000.0), "the copy goes on under its name"


def _forgets_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member follows whoever speaks, and keeps no lease."""
    monkeypatch.setattr(Replica, "_is_outdated", lambda self, ballot: False)
    monkeypatch.setattr(Replica, "lease_left_ms", lambda self, rank, step: 0.0)


def test_forgotten_promises_make_two_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    _forgets_promises(monkeypatch)
    broken: set[Promise] = set()
    for seed in (3, 4, 6):
        nodes = sorted(make_topology(Shape.GRID, devices=12, smart=0.7, seed=seed).nodes)
        faults: list[Fault] = []
        for number in range(12):
            at_ms, node = 5000.0 + 3500.0 * number, nodes[(3 * number + seed) % len(nodes)]
            faults.append(Partition(at_ms=at_ms, sources=(node,), for_ms=3000.0))
        checks = simulate(*faults, seconds=50.0, seed=seed)
        broken |= {violation.promise for violation in checks.violations}
    assert broken & {Promise.ONE_HISTORY, Promise.INHERITANCE}


def test_a_run_is_the_same_with_and_without_checks() -> None:
    """They only listen: what nodes do does not depend on them."""
    topology = make_topology(Shape.GRID, devices=12, smart=0.7, seed=3)
    selection = SelectionSettings(f=1, seed=3, cluster_size=6)
    workload = contention_workload(topology, selection, ProtocolSettings(), seed=3, routines=6)
    logs = []
    for attached in (True, False):
        simulation = Simulation(
            topology, seed=3, devices=workload.devices, program=workload.program, joined=True
        )
        if attached:
            Checks.attach(simulation.world, workload.program)
        simulation.run(seconds=15.0)
        logs.append((simulation.world.devices.log, simulation.world.engine.handled))
    assert logs[0] == logs[1]
    assert logs[0][0]
