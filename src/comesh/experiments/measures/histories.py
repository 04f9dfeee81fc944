"""What nodes wrote and told, in order of time: of a simulation, or of real processes by their recordings.

Both are read the same way, so that what is measured means the same in both. Times are in milliseconds by one
clock: the simulation's, or that of the machine, which all its processes share.
"""

from pathlib import Path
from typing import NamedTuple

from comesh.core.effects import Observation
from comesh.core.ids import NodeId
from comesh.core.journal import JournalRecord
from comesh.runtime.recording import Told, Wrote, observation_of, read, record_of
from comesh.sim.world import World


class Moment(NamedTuple):
    at_ms: float
    who: str
    what: JournalRecord | Observation


class Sample(NamedTuple):
    """One measured delay, and when it ended."""

    at_ms: float
    took_ms: float


def recorded(directory: Path) -> list[Moment]:
    """Of all recordings in a directory."""
    found: list[Moment] = []
    for path in sorted(directory.glob("*.rec")):
        for line in read(path):
            if isinstance(line.what, Wrote):
                found.append(Moment(line.at_us / 1000, line.who, record_of(line.what)))
            elif isinstance(line.what, Told):
                found.append(Moment(line.at_us / 1000, line.who, observation_of(line.what)))
    return sorted(found, key=lambda moment: moment.at_ms)


class Watched:
    """Of a simulated world, from now on."""

    def __init__(self, world: World) -> None:
        self.moments: list[Moment] = []
        world.observers.append(self._note)
        world.writers.append(self._note)

    def _note(self, now_ms: float, node: NodeId, what: JournalRecord | Observation) -> None:
        self.moments.append(Moment(now_ms, node, what))
