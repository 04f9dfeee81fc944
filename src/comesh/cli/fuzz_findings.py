"""The result of one seed of a swarm, and the CPU time it took; a crash of the code is a finding, too."""

import time
import traceback
from collections.abc import Callable
from enum import StrEnum

import msgspec

from comesh.sim import membership_swarm, operations_swarm, swarm
from comesh.sim.checks import Violation
from comesh.sim.swarm_case import Case

CRASH = "crash"
MEMBERSHIP = "membership"
MAX_BROKEN = 5
"""Maximum broken promises per seed: the first shows what happened, the others mostly follow from it."""


class SwarmKind(StrEnum):
    GROUPS = "groups"
    MEMBERSHIP = "membership"
    OPERATIONS = "operations"


class Broken(msgspec.Struct, frozen=True):
    """A promise that did not hold."""

    promise: str
    what: str
    at_ms: float | None = None
    history: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        when = "" if self.at_ms is None else f", at {self.at_ms / 1000:.3f} s"
        return f"{self.promise}{when}: {self.what}"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of one seed. quiet_s: seconds from the last fault until all was seen to be well again;
    None: never."""

    seed: int
    cpu_s: float
    nodes: int = 0
    faults: int = 0
    events: int = 0
    runs: int = 0
    commits: int = 0
    lossy: int = 0
    quiet_s: float | None = None
    simulated_s: float = 0.0
    done: dict[str, int] = {}
    """Actions of people, in the swarm of operations."""
    broken: tuple[Broken, ...] = ()


def run_groups(seed: int) -> Finding:
    return _measured(seed, lambda: _of_groups(swarm.Swarm(seed).run()))


def run_operations(seed: int) -> Finding:
    return _measured(seed, lambda: _of_groups(operations_swarm.OperationsSwarm(seed).run()))


def run_case(case: Case, kind: SwarmKind = SwarmKind.GROUPS) -> Finding:
    """Runs a seed with a changed case."""
    make = operations_swarm.OperationsSwarm if kind is SwarmKind.OPERATIONS else swarm.Swarm
    return _measured(case.seed, lambda: _of_groups(make(case.seed, case=case).run()))


def run_membership(seed: int) -> Finding:
    return _measured(seed, lambda: _of_membership(membership_swarm.run_seed(seed)))


RUN: dict[SwarmKind, Callable[[int], Finding]] = {
    SwarmKind.GROUPS: run_groups,
    SwarmKind.MEMBERSHIP: run_membership,
    SwarmKind.OPERATIONS: run_operations,
}


def replay_of(seed: int, kind: SwarmKind) -> str:
    of = "" if kind is SwarmKind.GROUPS else f" --{kind}"
    return f"comesh fuzz --seeds {seed}-{seed}{of} --verbose"


def _measured(seed: int, run: Callable[[], Finding]) -> Finding:
    began_s = time.process_time()
    try:
        finding = run()
    except Exception as wrong:
        told = traceback.format_exception(wrong)
        history = tuple(line.rstrip() for part in told for line in part.splitlines())
        what = f"{type(wrong).__name__}: {wrong}"
        finding = Finding(seed=seed, cpu_s=0.0, broken=(Broken(CRASH, what, history=history),))
    return msgspec.structs.replace(finding, cpu_s=round(time.process_time() - began_s, 4))


def _of_groups(verdict: swarm.Verdict) -> Finding:
    return Finding(
        seed=verdict.seed,
        cpu_s=0.0,
        nodes=verdict.nodes,
        faults=verdict.faults,
        events=verdict.events,
        runs=verdict.runs,
        commits=verdict.commits,
        lossy=verdict.lossy,
        quiet_s=verdict.quiet_s,
        simulated_s=verdict.simulated_s,
        done=verdict.done,
        broken=tuple(map(_of_violation, verdict.broken[:MAX_BROKEN])),
    )


def _of_violation(violation: Violation) -> Broken:
    return Broken(str(violation.promise), violation.what, violation.at_ms, violation.history)


def _of_membership(verdict: membership_swarm.Verdict) -> Finding:
    return Finding(
        seed=verdict.seed,
        cpu_s=0.0,
        nodes=verdict.nodes,
        faults=verdict.faults,
        events=verdict.events,
        quiet_s=verdict.recovered_after_s,
        simulated_s=verdict.simulated_s,
        broken=tuple(Broken(MEMBERSHIP, line) for line in verdict.broken[:MAX_BROKEN]),
    )
