"""Tests that every promise, including progress, holds for any lock strategy, also after a crash."""

from collections.abc import Iterator, Sequence

import pytest

from comesh.core.ids import DeviceId
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.strategies import LOCK_STRATEGIES, AtDevices, Manner, Wanted, register_lock_strategy
from comesh.sim import Shape, Simulation, make_topology
from comesh.sim.checks import Checks
from comesh.sim.fault_schedules import Schedule
from comesh.sim.faults import Crash
from comesh.sim.protocol_watch import ProtocolWatch
from comesh.sim.workloads import contention_workload

TOPOLOGY = make_topology(Shape.GRID, devices=30, seed=3)


def by_last_letter(wanted: Sequence[Wanted]) -> list[list[DeviceId]]:
    """An order that is as far from the global one as another."""
    return [[one.device] for one in sorted(wanted, key=lambda one: one.device[::-1])]


def as_commanded(wanted: Sequence[Wanted]) -> list[list[DeviceId]]:
    return [[one.device] for one in wanted]


OWN = {
    "own-hopeful": (Manner(AtDevices.REFUSE), Manner(AtDevices.QUEUE)),
    "own-as-commanded": (Manner(AtDevices.BY_AGE, rounds=as_commanded),),
    "own-backwards": (Manner(AtDevices.REFUSE, rounds=by_last_letter), Manner(AtDevices.BY_AGE)),
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for name, manners in OWN.items():
        register_lock_strategy(name, *manners)
    yield
    for name in OWN:
        LOCK_STRATEGIES.remove(name)


@pytest.mark.parametrize("strategies", [*((name,) for name in OWN), (*OWN, "sequential", "optimistic")])
def test_promises_hold_with_registered_strategies(strategies: tuple[str, ...]) -> None:
    workload = contention_workload(
        TOPOLOGY,
        SelectionSettings(cluster_size=8),
        ProtocolSettings(epoch_ms=20_000),
        seed=5,
        routines=8,
        contended=6,
        period_ms=15_000.0,
        strategies=strategies,
    )
    victim = workload.program.plan.genesis[workload.program.plan.clusters[0].group][0]
    faults = Schedule((Crash(at_ms=25_000.0, node=victim),))
    simulation = Simulation(
        TOPOLOGY, seed=5, program=workload.program, devices=workload.devices, faults=faults, joined=True
    )
    checks = Checks.attach(simulation.world, workload.program)
    watch = ProtocolWatch(simulation.world, workload.program.plan.genesis)
    simulation.run(seconds=90)
    checks.finish()
    report = watch.report(checks)
    assert not report.violations
    assert report.runs.finished > 30
    assert report.runs.finished > 0.8 * report.runs.fired
