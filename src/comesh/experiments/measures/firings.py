"""Routines as in the paper's simulations, each fired once in a window of its own, and how long they take.

All in hops: a time divided by that of one hop.
- polling: the clause is true at the device -> the leader of its group has read that;
- client delay: it has read that -> the first command leaves for its device (`delays.py` has the ideal);
- sync delay: the routine is fired once more as soon as it executes, so that the second run waits for all of
  the first one's devices. The last of these is free, committed by its group -> the second run's first
  command leaves.

Churn: of a share of the nodes each crashes or joins once, at a uniform time while routines are fired. Who
joins is down from the start, with an empty disk, and is not among the first members of a group. A node that
is down takes the device at its place with it. So routines touch only devices that are not at the place of
any node that could be chosen: what is measured is the control plane, not a device that is gone. They touch
the same devices without churn, so that the two can be compared.

A firing that is not seen while it lasts, or does not come to its first command before the end, has no delay
and is counted as lost. One that happens without a change at the device is counted as repeated.

Times of the preset `paper` are those of `running.py` with one exception: what the preset does not say
(monitoring, membership) stays at the default 100 hops. With 20 hops a device or node ten hops away could
not answer in time, and living ones would be taken for dead.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from comesh.core import traces
from comesh.core.effects import Observation, RunTraced
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.membership import MembershipSettings
from comesh.core.program import Program
from comesh.core.records import DeviceRecord
from comesh.core.selection import Selector
from comesh.core.stamps import RunId
from comesh.core.strategies import Strategy
from comesh.core.streams import stream
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.drivers.virtual.sources import SquareWave
from comesh.experiments.measures.churn import Churn, drawn, spared
from comesh.experiments.measures.delays import Watch
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.presets import Running, running
from comesh.experiments.measures.selections import Distances
from comesh.experiments.stage import Row, Table
from comesh.sim.engine import Priority
from comesh.sim.fault_model import Fault
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.faults import Crash, Restart
from comesh.sim.topology import Topology
from comesh.sim.workloads import Timing, Workload, paper_workload

WINDOW_HOPS = 800
"""Of each firing: in the first half of its window, so that a run has at least the other half."""
CALM_FIRST_MS = 5_000.0
"""Before it groups come up, and read each of their devices: rarely read ones take longer."""
CALM_READS = 3
FIRST_MS = 15_000.0
"""Before it, also, nodes that are down from the start are found dead."""
SOME_NODES = 40
"""Of which distances are taken."""
MAX_CHURN = 0.4
"""Of the nodes: the devices at their places are not touched by routines, whether they churn or not."""


def timed(preset: str, seed: int, **settings: Any) -> Running:
    """A preset for a mesh in which routines are fired."""
    made = running(preset, seed=seed, **{"monitoring": "1s", **settings})
    return msgspec.structs.replace(made, membership=MembershipSettings())


class Fired(NamedTuple):
    """One firing; None where it did not come so far."""

    routine: RoutineId
    window: float
    """How long it had to come to its first command."""
    polling: float | None
    client: float | None
    ideal: float | None
    sync: float | None


class Outcome(NamedTuple):
    fired: list[Fired]
    repeated: int
    """Firings without a change at the device."""
    mesh: Mesh

    def rows(self) -> list[Row]:
        """One for each firing; of all together, what was lost and repeated, in the first."""
        rows: list[Row] = [
            {
                "routine": one.routine,
                "window_hops": one.window,
                "polling_hops": one.polling,
                "client_hops": one.client,
                "ideal_hops": one.ideal,
                "sync_hops": one.sync,
                "lost": int(one.client is None),
                "repeated": 0,
            }
            for one in self.fired
        ]
        rows[0]["repeated"] = self.repeated
        return rows


def with_lost(table: Table) -> Table:
    """The same firings; one that was lost counts as long as it had, and waited for longer."""
    return table.adding(
        client_hops=lambda row: row["window_hops"] if row["client_hops"] is None else row["client_hops"]
    )


def _is_by_hand(trace: traces.Trace) -> bool:
    return isinstance(trace, traces.Fired) and isinstance(trace.cause, traces.ByHand)


class _Again:
    """Fires each routine once more when its first run executes, at the node that leads it."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.second: dict[RoutineId, RunId] = {}
        self.first: dict[RoutineId, RunId] = {}
        mesh.world.observers.append(self._observe)

    def _observe(self, now_ms: float, node: NodeId, told: Observation) -> None:
        if not isinstance(told, RunTraced):
            return
        routine = told.run.routine
        if isinstance(told.trace, traces.Executing) and routine not in self.first:
            self.first[routine] = told.run
            self._mesh.world.engine.at(now_ms, Priority.TIMER, self._fire, routine, node)
        elif routine in self.first and _is_by_hand(told.trace):
            self.second.setdefault(routine, told.run)

    def after(self, run: RunId) -> RunId | None:
        """The run that waited for this one."""
        routine = run.routine
        return self.second.get(routine) if self.first.get(routine) == run else None

    def _fire(self, routine: RoutineId, node: NodeId) -> None:
        self._mesh.world.fire(routine, f"again {routine}", node)


def measure(
    topology: Topology,
    made: Running,
    *,
    strategy: Strategy,
    routines: int,
    seed: int,
    churn: float = 0.0,
    twice: bool = False,
    push: bool = False,
    spare: bool = False,
    window_ms: float | None = None,
    restless_ms: float | None = None,
) -> Outcome:
    """spare: nodes churn, or are compared with nodes that do: routines leave out the devices of those that
    could. window_ms: of each firing, if not WINDOW_HOPS. restless_ms: about how often a reading changes of
    each device, that no routine names."""
    hop_ms = made.radio.hop_ms
    window_ms = max(window_ms or WINDOW_HOPS * hop_ms, 4 * made.protocol.monitoring_ms)
    calm_ms = max(CALM_FIRST_MS, CALM_READS * made.protocol.monitoring_ms)
    timing = Timing(first_ms=FIRST_MS if spare else calm_ms, window_ms=window_ms)
    work = paper_workload(
        topology,
        made.selection,
        made.protocol,
        routines=routines,
        seed=seed,
        strategies=(strategy,),
        timing=timing,
        among=spared(topology, MAX_CHURN, seed) if spare else None,
    )
    churning = drawn(sorted(topology.nodes), churn, seed)
    program = without_first(work.program, churning.join)
    mesh = Mesh(
        topology,
        program,
        work.devices if restless_ms is None else _restless(work.devices, restless_ms, seed),
        seed=seed,
        radio=made.radio,
        membership=made.membership,
        push=push,
    )
    end_ms = timing.first_ms + routines * window_ms
    inject(mesh.world, Schedule(tuple(_faults(churning, end_ms, seed))))
    watch = Watch(mesh)
    again = _Again(mesh) if twice else None
    mesh.run((end_ms + WINDOW_HOPS * hop_ms / 2) / 1000)
    return _outcome(mesh, work, watch, again, timing=timing, hop_ms=hop_ms)


def _restless(
    devices: Mapping[DeviceId, DeviceSpec], every_ms: float, seed: int
) -> dict[DeviceId, DeviceSpec]:
    draws = stream(seed, "restless devices")
    found: dict[DeviceId, DeviceSpec] = {}
    for name, spec in sorted(devices.items()):
        wave = SquareWave(period_ms=2 * every_ms * draws.between(0.75, 1.25))
        found[name] = msgspec.structs.replace(spec, sources={**spec.sources, "level": wave})
    return found


def without_first(program: Program, absent: Sequence[NodeId]) -> Program:
    """The same program with first members of groups that are there at the start."""
    if not absent:
        return program
    selector = Selector(program.plan)
    present = [node for node in selector.node_ids if node not in set(absent)]
    plan = msgspec.structs.replace(program.plan, genesis=selector.select_all(0, present, {}))
    return Program(plan=plan, devices=program.devices, routines=program.routines, settings=program.settings)


def _faults(churn: Churn, end_ms: float, seed: int) -> list[Fault]:
    draws = stream(seed, "churn times")
    faults: list[Fault] = []
    for node in churn.join:
        faults += [
            Crash(at_ms=0.0, node=node),
            Restart(at_ms=draws.between(FIRST_MS, end_ms), node=node, keep_disk=False),
        ]
    faults += [Crash(at_ms=draws.between(FIRST_MS, end_ms), node=node) for node in churn.crash]
    return faults


def mean_apart(topology: Topology) -> float:
    """The mean distance in hops between two nodes, of some of them."""
    some = sorted(topology.nodes)[:: max(1, len(topology.nodes) // SOME_NODES)]
    distances = Distances(topology)
    return fmean(distances.hops(one, other) for one in some for other in some if one != other)


# -- reading it off ----------------------------------------------------------------------------------------


def _outcome(
    mesh: Mesh, work: Workload, watch: Watch, again: _Again | None, *, timing: Timing, hop_ms: float
) -> Outcome:
    left_ms = first_commands(mesh)
    by_hand = set() if again is None else set(again.second.values())
    runs = [(began_ms, run) for run, began_ms in watch.began.items() if run not in by_hand]
    freed_ms = frees(mesh) if again is not None else {}
    fired: list[Fired] = []
    repeated = len(runs)
    for at_ms, routine in work.fires_ms:
        window = (timing.window_ms - (at_ms - timing.first_ms) % timing.window_ms) / hop_ms
        mine = sorted(
            (began_ms, run) for began_ms, run in runs if run.routine == routine and began_ms >= at_ms
        )
        repeated -= bool(mine)
        if not mine or mine[0][1] not in left_ms:
            fired.append(Fired(routine, window, None, None, None, None))
            continue
        began_ms, run = mine[0]
        second = None if again is None else again.after(run)
        sync = None
        if second in left_ms and run in freed_ms:
            sync = (left_ms[second] - freed_ms[run]) / hop_ms
        polling, client = (began_ms - at_ms) / hop_ms, (left_ms[run] - began_ms) / hop_ms
        fired.append(Fired(routine, window, polling, client, watch.ideals[run], sync))
    return Outcome(fired, repeated, mesh)


def first_commands(mesh: Mesh) -> dict[RunId, float]:
    """When each run's first command left for its device, of those that were carried out."""
    left_ms: dict[RunId, float] = {}
    for act in mesh.world.devices.log:
        origin, sent_ms = act.command.origin, act.command.sent_ms
        if origin is not None:
            left_ms[origin.run] = min(sent_ms, left_ms.get(origin.run, sent_ms))
    return left_ms


def frees(mesh: Mesh) -> dict[RunId, float]:
    """When the last device that each run held was free again, by the commits of the devices' groups."""
    holders: dict[DeviceId, RunId] = {}
    freed_ms: dict[RunId, float] = {}
    for commit in sorted(mesh.commits, key=lambda one: one.committed_ms):
        for record in commit.entry:
            if isinstance(record, DeviceRecord):
                holder = None if record.hold is None else record.hold.run
                before = holders.pop(record.device, None)
                if before is not None and before != holder:
                    freed_ms[before] = commit.committed_ms
                if holder is not None:
                    holders[record.device] = holder
    return freed_ms
