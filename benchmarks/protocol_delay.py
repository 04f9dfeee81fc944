"""How long a run takes until its first command leaves, against the ideal; and whether anybody starves.

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
    locks, sequential, batched:      sum over g != h of  2 D(h, g) + C(g),
                                     + C(h) where h comes neither first nor last in the order of groups:
                                     its own grants must be committed before later ones are asked for
"""

from collections.abc import Iterable, Iterator
from statistics import mean, median
from typing import NamedTuple

from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.journal import Appended, JournalRecord
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import RunRecord
from comesh.core.stamps import RunId
from comesh.core.strategies import Strategy
from comesh.core.work_messages import Reading
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import Timing, contention_workload, paper_workload, signal_of
from protocol_mesh import EXACT, FOR_EVER_MS, HOP_MS, Mesh
from protocol_rows import Row, at_least, at_most, spread

DEVICES = 250
F = 2
WINDOW_MS = 10_000.0
BARS = {Strategy.OPTIMISTIC: 1.5, Strategy.PRIORITY: 1.5, Strategy.SEQUENTIAL: 2.5}
CALM = 1.1
"""Priority against optimistic, where nobody contends."""
CONTENDERS = 20
GROWTH = 2.0
"""The longest wait of the second half against that of the first: what is bounded does not grow."""


class Delay(NamedTuple):
    routine: RoutineId
    took_ms: float
    ideal_ms: float


class Watch:
    """Notes when each routine's trigger was read, and when its firing was proposed."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.ideals: dict[RunId, float] = {}
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
                self.ideals[one.run] = ideal_hops(self._mesh, routine) * HOP_MS

    def _note_readings(self) -> None:
        for sent in self._mesh.sent:
            body = sent.letter
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
        hops += sum(locks)
        if home in groups[1:-1]:
            hops += mesh.commit_hops(home)
    else:
        hops += max(locks, default=0)
    if others:
        hops += mesh.commit_hops(home)
    first = program.group_of_device[routine.steps[0].device]
    return hops if first == home else hops + away(first) + mesh.commit_hops(first)


def delays(
    shape: Shape,
    strategy: Strategy,
    routines: int,
    seed: int,
    *,
    devices: int = DEVICES,
    paper: bool = True,
) -> list[Delay]:
    """Of each routine, fired once, alone; epochs and the radio as the paper has them, or neither."""
    topology = make_topology(shape, devices=devices, seed=seed)
    work = paper_workload(
        topology,
        SelectionSettings(f=F),
        ProtocolSettings() if paper else ProtocolSettings(epoch_ms=FOR_EVER_MS),
        routines=routines,
        seed=seed,
        strategies=(strategy,),
        timing=Timing(window_ms=WINDOW_MS),
    )
    mesh = Mesh(
        topology,
        work.program,
        work.devices,
        seed=seed,
        radio=RadioSettings(hop_ms=HOP_MS) if paper else EXACT,
    )
    watch = Watch(mesh)
    mesh.run((work.fires_ms[-1][0] + WINDOW_MS) / 1000)
    left_ms = {act.run: act.sent_ms for act in mesh.world.devices.log if act.step == 0}
    done = [
        Delay(run.routine, left_ms[run] - began_ms, watch.ideals[run])
        for run, began_ms in watch.began.items()
        if run in left_ms
    ]
    assert len(done) == len(work.fires_ms), f"{len(done)} of {len(work.fires_ms)} firings ran"
    return done


def delay_rows(shapes: Iterable[Shape], routines: int, seed: int = 1) -> Iterator[Row]:
    for shape in shapes:
        means: dict[Strategy, float] = {}
        for strategy in Strategy:
            found = delays(shape, strategy, routines, seed)
            means[strategy] = mean(one.took_ms for one in found)
            ideal_ms = mean(one.ideal_ms for one in found)
            ratios = [one.took_ms / one.ideal_ms for one in found]
            what = f"{shape}, {strategy}: delay against the ideal, means of {len(found)} runs"
            told = f"{means[strategy]:.0f} ms, ideal {ideal_ms:.0f} ms; by run {spread(ratios)}"
            yield at_most(what, means[strategy] / ideal_ms, BARS[strategy], told)
        calm = means[Strategy.PRIORITY] / means[Strategy.OPTIMISTIC]
        yield at_most(f"{shape}: priority against optimistic, nobody contends", calm, CALM)


# -- starvation --------------------------------------------------------------------------------------------


class Wait(NamedTuple):
    routine: RoutineId
    began_ms: float
    waited_ms: float


def waits(mesh: Mesh) -> list[Wait]:
    """Of every run that got its locks: from its first attempt to EXECUTING."""
    began: dict[RunId, float] = {}
    found: list[Wait] = []
    for traced in mesh.traces:
        if traced.what == "attempt":
            began.setdefault(traced.run, traced.at_ms)
        elif traced.what == "executing" and traced.run in began:
            began_ms = began.pop(traced.run)
            found.append(Wait(traced.run.routine, began_ms, traced.at_ms - began_ms))
    return found


def starvation_rows(minutes: float, seed: int = 1) -> Iterator[Row]:
    """Twenty routines want the same four devices for ever."""
    topology = make_topology(Shape.GRID, devices=DEVICES, seed=seed)
    work = contention_workload(
        topology,
        SelectionSettings(f=F),
        ProtocolSettings(),
        seed=seed,
        routines=CONTENDERS,
        strategies=(Strategy.PRIORITY,),
        toggles=0.0,
    )
    mesh = Mesh(topology, work.program, work.devices, seed=seed, keep_messages=False)
    mesh.run(60 * minutes)
    found = waits(mesh)
    waited = [one.waited_ms / 1000 for one in found]
    medians = max(waited) / median(waited)
    told = f"{len(found)} runs; waits {spread(waited)} s; the longest is {medians:.1f} medians"
    per_minute = [
        sum(one.routine == routine and int(one.began_ms // 60_000) == minute for one in found)
        for routine in work.program.routines
        for minute in range(int(minutes) - 1)
    ]
    yield at_least(f"{CONTENDERS} contenders: runs of the unluckiest in any minute", min(per_minute), 1, told)
    half_ms = 30_000 * minutes
    first = max(one.waited_ms for one in found if one.began_ms < half_ms)
    second = max(one.waited_ms for one in found if one.began_ms >= half_ms)
    what = f"{CONTENDERS} contenders: longest wait of the second half against the first"
    yield at_most(what, second / first, GROWTH, f"{first / 1000:.1f} s, then {second / 1000:.1f} s")
