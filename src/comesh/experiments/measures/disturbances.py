"""A mesh at work whose air is bad, or that is cut in two for a while.

Told of it: for how much of the time its groups have a majority and are served (looked at once a second, as
`comesh sim` does), how many firings come to their end, and the client delay: the clause becomes true at the
device -> the first command leaves, the wait for the next poll included. A firing is a time at which a
clause becomes true; it has come to its end if a run of it finished before the simulation ended. What the
mesh did not hear of, because nobody could read the device while the clause was true, is a firing that has
not. A routine that fires more often than its clause becomes true is counted, too.

The cut is a plane through the middle of the mesh: nothing gets from one side to the other.
"""

from typing import NamedTuple

from comesh.core.ids import GroupId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.stamps import RunId
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.mesh_operations import work_of
from comesh.experiments.measures.running import Running
from comesh.experiments.table import Row, percentile
from comesh.sim.faults import Loss, Partition, Schedule
from comesh.sim.group_watch import GroupWatch, LiveGroups, Span
from comesh.sim.injection import inject
from comesh.sim.topology import Topology
from comesh.sim.workloads import Workload

ROUTINES = 10
FIRED_EVERY_S = 20.0
"""Each routine; its clause is true for a quarter of that. Few enough that runs hardly ever want the same."""
CUT_AT_S = 20.0
AFTER_S = 40.0
"""From the end of the cut on; as long as that the mesh runs where nothing is cut."""
END_S = 10.0
"""What fires in the last seconds need not have come to its end."""

Spans = dict[GroupId, tuple[Span, ...]]


class Firing(NamedTuple):
    routine: RoutineId
    at_ms: float
    runs: tuple[RunId, ...]
    """Those that began from then on until the next firing of the routine."""


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
    topology: Topology, setup: Running, *, seed: int, loss_per_hop: float = 0.0, cut_s: float = 0.0
) -> list[Row]:
    """Rows by when: before, during and after the cut, or `all` where nothing was cut."""
    seconds = CUT_AT_S + cut_s + AFTER_S
    work = work_of(topology, setup, seed=seed, seconds=seconds, routines=ROUTINES, every_s=FIRED_EVERY_S)
    mesh = Mesh(
        topology,
        work.program,
        work.devices,
        seed=seed,
        radio=setup.radio,
        membership=setup.membership,
        keep_messages=False,
    )
    faults: list[Loss | Partition] = []
    if loss_per_hop:
        faults.append(Loss(at_ms=0.0, rate=loss_per_hop))
    if cut_s:
        cut = Partition(at_ms=1000 * CUT_AT_S, sources=one_side(topology), for_ms=1000 * cut_s)
        faults.append(cut)
    inject(mesh.world, Schedule(tuple(faults)))
    watch = GroupWatch(mesh.world, LiveGroups(mesh.world, work.program.plan))
    for _ in range(round(seconds)):
        mesh.run(1.0)
        watch.look()
    firings = firings_of(mesh, work, until_ms=1000 * (seconds - END_S))
    spans = {"all": (CUT_AT_S / 2, seconds)}
    if cut_s:
        healed_s = CUT_AT_S + cut_s
        spans = {"cut": (CUT_AT_S, healed_s), "healed": (healed_s, seconds)}
    weak, unserved = watch.without_majority(), watch.unserved()
    assert weak is not None and unserved is not None
    return [
        {
            "when": name,
            "majority": 1 - _share(weak, begin_s, end_s),
            "served": 1 - _share(unserved, begin_s, end_s),
            **_told(mesh, [one for one in firings if begin_s <= one.at_ms / 1000 < end_s], setup),
        }
        for name, (begin_s, end_s) in spans.items()
    ]


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


def _told(mesh: Mesh, firings: list[Firing], setup: Running) -> Row:
    left_ms: dict[RunId, float] = {}
    for act in mesh.world.devices.log:
        if act.run is not None:
            left_ms[act.run] = min(act.sent_ms, left_ms.get(act.run, act.sent_ms))
    finished = {traced.run for traced in mesh.traces if traced.what == "finished"}
    failed = {traced.run for traced in mesh.traces if traced.what == "failed"} - finished
    delays = [
        (min(left_ms[run] for run in one.runs if run in left_ms) - one.at_ms) / setup.radio.hop_ms
        for one in firings
        if any(run in left_ms for run in one.runs)
    ]
    return {
        "firings": len(firings),
        "heard": sum(bool(one.runs) for one in firings),
        "finished": sum(any(run in finished for run in one.runs) for one in firings),
        "failed": sum(bool(one.runs) and failed.issuperset(one.runs) for one in firings),
        "again": sum(max(0, len(one.runs) - 1) for one in firings),
        "delay": percentile(delays, 50) if delays else None,
        "delay_p90": percentile(delays, 90) if delays else None,
    }


def _share(spans: Spans, begin_s: float, end_s: float) -> float:
    """Of the time from begin to end, over all groups with a cluster."""
    groups = [group for group in spans if group != DEPLOYMENT]
    total_s = 0.0
    for group in groups:
        for span in spans[group]:
            until_s = end_s if span.to_s is None else min(end_s, span.to_s)
            total_s += max(0.0, until_s - max(begin_s, span.from_s))
    return total_s / (end_s - begin_s) / len(groups)
