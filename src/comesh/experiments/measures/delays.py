"""How long a run takes until its first command leaves, against the ideal.

Delay: from the moment at which the leader of the trigger's device has read that the clause is true (polling
apart) until the first command leaves for its device. The ideal is the critical path of commits and messages
that no protocol of this kind can do without, at shortest-path distances between who led at the time. It is
hops only: what the size of messages adds, and handoffs that come in between, are delay and not ideal.

    C(g)     a commit in group g: a round trip from its leader to its f-th nearest member
    D(a, b)  a message from the leader of a to that of b
    h        the group of the routine; t that of its trigger; first, that of its first command

    ideal  =  D(t, h)  +  C(h)                   the reading; the firing (with own locks, where asked at once)
            + locks                              below
            + C(h), if any lock is not of h      EXECUTING; else it is part of the firing
            + D(h, first) + C(first),            the command; the intent. Of h: part of EXECUTING
              if first is not h

    locks, optimistic and priority:  max over g != h of  2 D(h, g) + C(g)
    locks, sequential, one by one:   sum over g != h of  2 D(h, g) + C(g)
    locks, sequential, batched:      the way from h over the groups in their order back to h (one way before
                                     h's own place in it and one after, where h has one),
                                     + sum over g != h of  C(g)
    both, sequential:                + C(h) where h comes neither first nor last in the order of groups: its
                                     own grants must be committed before later ones are asked for
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.journal import Appended, JournalRecord
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import RunRecord
from comesh.core.stamps import RunId
from comesh.core.strategies import Batch, LockOrder, Strategy
from comesh.core.work_messages import Reading
from comesh.experiments.measures.mesh import EXACT, Mesh
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Topology
from comesh.sim.workloads import Timing, paper_workload, signal_of

WINDOW_HOPS = 1000
"""Each firing has a window of its own, longer than a run."""


class Delay(NamedTuple):
    """In hops: a time divided by that of one hop."""

    routine: RoutineId
    took: float
    ideal: float
    polling: float = 0.0
    """Before it: from the change at the device until the leader of its group had read it."""


class Watch:
    """Notes when each routine's trigger was read, and when its firing was proposed."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.ideals: dict[RunId, int] = {}
        """In hops."""
        self.began: dict[RunId, float] = {}
        self._read_ms: dict[RoutineId, float] = {}
        self._triggers: dict[DeviceId, list[RoutineId]] = {}
        for routine in mesh.program.routines.values():
            if routine.when is not None:
                for device, _ in routine.when.reads:
                    self._triggers.setdefault(DeviceId(device), []).append(routine.id)
        mesh.world.writers.append(self._written)

    def _written(self, now_ms: float, node: object, record: JournalRecord) -> None:
        """The firing is written by its leader first, in the step that proposes it."""
        if not isinstance(record, Appended):
            return
        self._note_readings()
        for one in record.entry:
            if isinstance(one, RunRecord) and one.run not in self.began:
                routine = one.run.routine
                self.began[one.run] = self._read_ms.pop(routine, now_ms)
                self.ideals[one.run] = ideal_hops(self._mesh, routine)

    def _note_readings(self) -> None:
        for sent in self._mesh.sent:
            body = sent.work
            if isinstance(body, Reading) and body.values is not None:
                for routine in self._triggers.get(body.device, ()):
                    if body.values.get(signal_of(routine)) is True:
                        self._read_ms.setdefault(routine, sent.at_ms)
        self._mesh.sent.clear()


def ideal_hops(mesh: Mesh, routine_id: RoutineId) -> int:
    """The formula above, with who leads now."""
    program = mesh.program
    routine = program.routines[routine_id]
    home = program.group_of_routine[routine_id]
    assert routine.when is not None

    def away(group: GroupId) -> int:
        return mesh.hops(mesh.leader(home), mesh.leader(group))

    trigger = program.group_of_device[DeviceId(next(iter(routine.when.reads))[0])]
    groups = sorted({program.group_of_device[step.device] for step in routine.steps})
    others = [group for group in groups if group != home]
    locks = [2 * away(group) + mesh.commit_hops(group) for group in others]
    hops = away(trigger) + mesh.commit_hops(home)
    if routine.strategy is Strategy.SEQUENTIAL:
        if program.settings.batch is Batch.CLUSTER and program.settings.order is LockOrder.CLUSTER:
            ways = [others]
            if home in groups:
                ways = [[one for one in others if one < home], [one for one in others if one > home]]
            hops += sum(_way_hops(mesh, home, way) for way in ways) + sum(map(mesh.commit_hops, others))
        else:
            hops += sum(locks)
        if home in groups[1:-1]:
            hops += mesh.commit_hops(home)
    else:
        hops += max(locks, default=0)
    if others:
        hops += mesh.commit_hops(home)
    first = program.group_of_device[routine.steps[0].device]
    return hops if first == home else hops + away(first) + mesh.commit_hops(first)


def _way_hops(mesh: Mesh, home: GroupId, groups: Sequence[GroupId]) -> int:
    """From the leader of home to that of each of these, and back."""
    leaders = [mesh.leader(group) for group in (home, *groups, home)]
    return sum(mesh.hops(one, other) for one, other in itertools.pairwise(leaders))


def client_delays(
    topology: Topology,
    selection: SelectionSettings,
    protocol: ProtocolSettings,
    *,
    strategy: Strategy,
    routines: int,
    seed: int,
    radio: RadioSettings = EXACT,
) -> list[Delay]:
    """Of each routine, fired once, alone. AssertionError: a firing did not come to its first command."""
    window_ms = max(WINDOW_HOPS * radio.hop_ms, 4 * protocol.monitoring_ms)
    work = paper_workload(
        topology,
        selection,
        protocol,
        routines=routines,
        seed=seed,
        strategies=(strategy,),
        timing=Timing(window_ms=window_ms),
    )
    mesh = Mesh(topology, work.program, work.devices, seed=seed, radio=radio)
    watch = Watch(mesh)
    mesh.run((work.fires_ms[-1][0] + window_ms) / 1000)
    sent = [act.command for act in mesh.world.devices.log]
    left_ms = {one.origin.run: one.sent_ms for one in sent if one.origin is not None and one.origin.step == 0}
    done = [
        Delay(run.routine, (left_ms[run] - began_ms) / radio.hop_ms, watch.ideals[run])
        for run, began_ms in watch.began.items()
        if run in left_ms
    ]
    assert len(done) == len(work.fires_ms), f"{len(done)} of {len(work.fires_ms)} firings ran"
    return done
