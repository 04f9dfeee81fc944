"""How long a run takes until its first command leaves, against the ideal; and whether anybody starves.

`comesh.experiments.measures.delays` says what is measured, and what the ideal is.
"""

from collections.abc import Iterable, Iterator
from statistics import mean, median
from typing import NamedTuple

from comesh.core.ids import RoutineId
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.stamps import RunId
from comesh.core.strategies import Strategy
from comesh.core.traces import AttemptBegan, Executing
from comesh.experiments.measures.delays import Delay, client_delays
from comesh.experiments.measures.mesh import EXACT, FOR_EVER_MS, HOP_MS, Mesh
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import contention_workload
from protocol_rows import Row, at_least, at_most, spread

DEVICES = 250
F = 2
BARS = {Strategy.OPTIMISTIC: 1.5, Strategy.PRIORITY: 1.5, Strategy.SEQUENTIAL: 2.5}
CALM = 1.1
"""Priority against optimistic, where nobody contends."""
CONTENDERS = 20
GROWTH = 2.0
"""The longest wait of the second half against that of the first: what is bounded does not grow."""


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
    return client_delays(
        make_topology(shape, devices=devices, seed=seed),
        SelectionSettings(f=F),
        ProtocolSettings() if paper else ProtocolSettings(epoch_ms=FOR_EVER_MS),
        strategy=strategy,
        routines=routines,
        seed=seed,
        radio=RadioSettings(hop_ms=HOP_MS) if paper else EXACT,
    )


def delay_rows(shapes: Iterable[Shape], routines: int, seed: int = 1) -> Iterator[Row]:
    for shape in shapes:
        means: dict[Strategy, float] = {}
        for strategy in Strategy:
            found = delays(shape, strategy, routines, seed)
            means[strategy] = mean(one.took for one in found)
            ideal = mean(one.ideal for one in found)
            ratios = [one.took / one.ideal for one in found]
            what = f"{shape}, {strategy}: delay against the ideal, means of {len(found)} runs"
            told = f"{means[strategy]:.1f} hops, ideal {ideal:.1f}; by run {spread(ratios)}"
            yield at_most(what, means[strategy] / ideal, BARS[strategy], told)
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
        if isinstance(traced.trace, AttemptBegan):
            began.setdefault(traced.run, traced.at_ms)
        elif isinstance(traced.trace, Executing) and traced.run in began:
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
