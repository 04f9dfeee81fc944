"""Routines that want some of the same devices, over and over: how long they wait for their locks.

Each routine wants WANTED devices. Each of these is with the probability `overlap` one of a few that all
draw from, and otherwise its own. A routine is fired by hand at the leader of its group, and again some time
after its run ended, so that nothing piles up: at most one run of each is under way, and what is slower is
fired less often. All in hops.
"""

from statistics import median
from typing import Final

from comesh.core.effects import Observation, RunTraced
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.stamps import RunId
from comesh.core.strategies import Strategy
from comesh.core.streams import stream
from comesh.core.traces import AttemptBegan, Executing, Failed, Finished, Fired
from comesh.experiments.measures.mesh import Mesh, by_hand, switches
from comesh.experiments.measures.presets import Running
from comesh.experiments.stage import Row, percentile
from comesh.sim.engine import Priority
from comesh.sim.topology import Topology

ROUTINES: Final = 16
WANTED: Final = 4
SHARED: Final = 4
PAUSE_HOPS: Final = (100.0, 300.0)
"""Between the end of a run and the next firing of its routine, drawn uniformly."""
FIRST_MS: Final = 5000.0
"""Before it, groups come up."""


def draw_routines(topology: Topology, overlap: float, seed: int) -> dict[str, tuple[DeviceId, ...]]:
    """The devices of each routine. Those that it shares at a lower overlap it shares at a higher one too."""
    draws = stream(seed, "contention")
    names = draws.sample(sorted(topology.devices), SHARED + ROUTINES * WANTED)
    shared, own = names[:SHARED], names[SHARED:]
    routines: dict[str, tuple[DeviceId, ...]] = {}
    for number in range(ROUTINES):
        wished = draws.sample(shared, WANTED)
        levels = [draws.unit() for _ in range(WANTED)]
        mine = own[number * WANTED : (number + 1) * WANTED]
        routines[f"r{number:02}"] = tuple(
            wished[at] if levels[at] < overlap else mine[at] for at in range(WANTED)
        )
    return routines


class Contenders:
    """Fires every routine again and again, and notes how its runs fare."""

    def __init__(self, mesh: Mesh, hop_ms: float, seed: int) -> None:
        self._mesh = mesh
        self._hop_ms = hop_ms
        self._draws = stream(seed, "pauses")
        self.fired_ms: dict[RunId, float] = {}
        self.waited_ms: dict[RunId, float] = {}
        self.attempts: dict[RunId, int] = {}
        self.finished: dict[RoutineId, int] = dict.fromkeys(mesh.program.routines, 0)
        mesh.world.observers.append(self._observe)
        for routine in mesh.program.routines:
            self._fire_later(routine, FIRST_MS)

    def _fire_later(self, routine: RoutineId, now_ms: float) -> None:
        at_ms = now_ms + self._draws.between(*PAUSE_HOPS) * self._hop_ms
        self._mesh.world.engine.at(at_ms, Priority.TIMER, self._mesh.fire, routine)

    def _observe(self, now_ms: float, node: NodeId, told: Observation) -> None:
        if not isinstance(told, RunTraced):
            return
        run = told.run
        match told.trace:
            case Fired():
                self.fired_ms[run] = now_ms
            case AttemptBegan():
                self.attempts[run] = self.attempts.get(run, 0) + 1
            case Executing():
                self.waited_ms.setdefault(run, now_ms - self.fired_ms[run])
            case Finished() | Failed():
                self.finished[run.routine] += isinstance(told.trace, Finished)
                self._fire_later(run.routine, now_ms)
            case _:
                pass

    def row(self) -> Row:
        """Of all runs. Who still waits at the end waited at least so long, and counts with that: without
        them whoever starves would make the others' waits look short."""
        now_ms = self._mesh.now_ms
        waits_ms = {
            run: self.waited_ms.get(run, now_ms - fired_ms) for run, fired_ms in self.fired_ms.items()
        }
        hops = [waited_ms / self._hop_ms for waited_ms in waits_ms.values()]
        thousands = (now_ms - FIRST_MS) / self._hop_ms / 1000
        return {
            "runs": len(hops),
            "still_waiting": len(hops) - len(self.waited_ms),
            "wait_median_hops": median(hops),
            "wait_p90_hops": percentile(hops, 90),
            "wait_longest_hops": max(hops),
            "runs_per_1000_hops": sum(self.finished.values()) / thousands,
            "runs_per_minute": sum(self.finished.values()) / ((now_ms - FIRST_MS) / 60_000),
            "fewest_runs": min(self.finished.values()),
            "attempts_mean": sum(self.attempts.values()) / len(self.attempts),
            "attempts_most": max(self.attempts.values()),
        }


def contend(
    topology: Topology, made: Running, *, strategy: Strategy, overlap: float, hops: float, seed: int
) -> Row:
    """For so many hops."""
    routines = draw_routines(topology, overlap, seed)
    program = by_hand(topology, made.selection, made.protocol, routines, strategy)
    mesh = Mesh.of(topology, program, switches(topology), made, seed=seed, keep_messages=False)
    contenders = Contenders(mesh, made.radio.hop_ms, seed)
    mesh.run((FIRST_MS + hops * made.radio.hop_ms) / 1000)
    return contenders.row()
