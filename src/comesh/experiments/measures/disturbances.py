"""A mesh at work whose air is bad, or that is cut in two for a while.

Told of it:
- for how much of the time its groups are served, looked at once a second: somebody leads the group who
  reaches, both ways, so many of its members that with himself they are more than half;
- of each firing, a time at which a clause becomes true at its device: whether the mesh heard of it, what came
  of it before the simulation ended, and the client delay until its first command left for its device, the
  wait for the next poll included. A command that is lost on its way has left. Where none left, the delay is
  longer than what the firing had until the end.

What fires while nobody can read the device for as long as the clause is true is not heard of.

The cut is a plane through the middle of the mesh: nothing gets from one side to the other.
"""

from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.ids import NodeId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.stamps import RunId
from comesh.core.traces import Failed, Finished
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.mesh_operations import work_of
from comesh.experiments.measures.presets import Running
from comesh.experiments.stage import Row
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.faults import Loss, Partition
from comesh.sim.group_watch import GroupNow, LiveGroups
from comesh.sim.machine import Process
from comesh.sim.topology import Topology
from comesh.sim.workloads import Workload
from comesh.sim.world import World

BEGIN_S = 10.0
"""By then the groups are up: what fires before is not told."""
CUT_AT_S = 20.0
END_S = 10.0
"""What fires in the last seconds is not told: it need not have come to its end."""


class Firing(NamedTuple):
    routine: RoutineId
    at_ms: float
    runs: tuple[RunId, ...]
    """Those that began from then on until the next firing of the routine."""


class LeavingCommands:
    """When each run's first command left, whether it arrived or not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.first_ms: dict[RunId, float] = {}
        world.devices.watchers.append(self._on_asked)

    def _on_asked(self, process: Process, effect: ReadDevice | CommandDevice) -> None:
        if isinstance(effect, CommandDevice) and effect.origin is not None:
            self.first_ms.setdefault(effect.origin.run, self._world.now_ms)


class Service:
    """Which groups with a cluster are served, whenever it looks."""

    def __init__(self, mesh: Mesh) -> None:
        self._world = mesh.world
        self._groups = LiveGroups(mesh.world, mesh.program.plan)
        self._shares: list[tuple[float, float]] = []

    def look(self) -> None:
        self._groups.look()
        groups = [now for group, now in self._groups.now.items() if group != DEPLOYMENT]
        share = fmean(is_served(now, self._mutual) for now in groups)
        self._shares.append((self._world.now_ms / 1000, share))

    def share(self, begin_s: float, end_s: float) -> float:
        """Of the time, over all groups."""
        return fmean(share for at_s, share in self._shares if begin_s <= at_s < end_s)

    def _mutual(self, one: NodeId, other: NodeId) -> bool:
        radio, nodes = self._world.radio, self._world.topology.nodes
        here, there = nodes[one], nodes[other]
        return radio.reaches(here, there) and radio.reaches(there, here)


def is_served(group: GroupNow, mutual: Callable[[NodeId, NodeId], bool]) -> bool:
    leader = group.leader
    if leader is None:
        return False
    return 2 * sum(node == leader or mutual(leader, node) for node in group.members) > len(group.members)


def one_side(topology: Topology) -> tuple[str, ...]:
    """Half of the stations, by the first coordinate: the names of the devices there."""
    places = sorted(topology.places[station].x_mm for station in topology.devices.values())
    middle_mm = places[len(places) // 2]
    return tuple(
        sorted(
            device
            for device, station in topology.devices.items()
            if topology.places[station].x_mm < middle_mm
        )
    )


def disturbed(
    topology: Topology,
    setup: Running,
    *,
    seed: int,
    routines: int,
    every_s: float,
    after_s: float,
    loss_per_hop: float = 0.0,
    cut_s: float = 0.0,
) -> list[Row]:
    """A row for each span of time and one for each firing, by when: during and after the cut, or `all` where
    nothing is cut. every_s: each routine fires, and its clause is true for a quarter of that. after_s: from
    the end of the cut on; as long as that the mesh runs where nothing is cut."""
    seconds = CUT_AT_S + cut_s + after_s
    work = work_of(topology, setup, seed=seed, seconds=seconds, routines=routines, every_s=every_s)
    mesh = Mesh.of(topology, work.program, work.devices, setup, seed=seed, keep_messages=False)
    leaving = LeavingCommands(mesh.world)
    faults: list[Loss | Partition] = []
    if loss_per_hop:
        faults.append(Loss(at_ms=0.0, rate=loss_per_hop))
    if cut_s:
        cut = Partition(at_ms=1000 * CUT_AT_S, sources=one_side(topology), for_ms=1000 * cut_s)
        faults.append(cut)
    inject(mesh.world, Schedule(tuple(faults)))
    service = Service(mesh)
    for _ in range(round(seconds)):
        mesh.run(1.0)
        service.look()
    spans = {"all": (BEGIN_S, seconds)}
    if cut_s:
        healed_s = CUT_AT_S + cut_s
        spans = {"cut": (CUT_AT_S, healed_s), "healed": (healed_s, seconds)}
    firings = firings_of(mesh, work, until_ms=1000 * (seconds - END_S))
    rows: list[Row] = []
    for when, (begin_s, end_s) in spans.items():
        rows.append({"when": when, "served": service.share(begin_s, end_s)})
        rows += [
            {"when": when, **_told(one, mesh, leaving.first_ms, hop_ms=setup.radio.hop_ms)}
            for one in firings
            if begin_s <= one.at_ms / 1000 < end_s
        ]
    return rows


def firings_of(mesh: Mesh, work: Workload, *, until_ms: float) -> list[Firing]:
    """Each with the runs that it began."""
    began_ms: dict[RunId, float] = {}
    for traced in mesh.traces:
        began_ms.setdefault(traced.run, traced.at_ms)
    found: list[Firing] = []
    for routine in work.program.routines:
        times_ms = [at_ms for at_ms, fired in work.fires_ms if fired == routine]
        for at_ms, next_ms in zip(times_ms, [*times_ms[1:], float("inf")], strict=True):
            runs = [run for run, ms in began_ms.items() if run.routine == routine and at_ms <= ms < next_ms]
            found.append(Firing(routine, at_ms, tuple(runs)))
    return [one for one in found if one.at_ms < until_ms]


def _told(firing: Firing, mesh: Mesh, left_ms: dict[RunId, float], *, hop_ms: float) -> Row:
    """outcome: finished if one of its runs did, failed if all of them did, otherwise open."""
    ends = {
        traced.run: traced.trace
        for traced in mesh.traces
        if traced.run in firing.runs and isinstance(traced.trace, Finished | Failed)
    }
    outcome, reason = "open", None
    if any(isinstance(end, Finished) for end in ends.values()):
        outcome = "finished"
    elif ends and len(ends) == len(firing.runs):
        first = ends[firing.runs[0]]
        outcome, reason = "failed", first.reason if isinstance(first, Failed) else None
    left = [left_ms[run] for run in firing.runs if run in left_ms]
    return {
        "routine": firing.routine,
        "at_s": firing.at_ms / 1000,
        "heard": bool(firing.runs),
        "runs": len(firing.runs),
        "outcome": outcome,
        "reason": reason,
        "delay_hops": (min(left) - firing.at_ms) / hop_ms if left else None,
        "waited_hops": None if left else (mesh.now_ms - firing.at_ms) / hop_ms,
    }
