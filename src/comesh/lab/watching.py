"""Recordings of a mesh that runs, read as they grow: which runs fired and ended, who led, what devices did.

For conditions that a scenario waits for. The judge reads the same files again, from their beginning.
"""

from collections import Counter
from pathlib import Path

from comesh.core.effects import Committed, LeaderChanged, RunTraced
from comesh.core.ids import GroupId, NodeId
from comesh.core.traces import Ending, Finished, Fired
from comesh.drivers.virtual.devices import Acted
from comesh.lab.merging import ENDING
from comesh.runtime.recording import DeviceActed, Line, Told, observation_of, read_from


class Watch:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read_bytes: Counter[Path] = Counter()
        self.fired: dict[str, int] = {}
        """Runs, and when they fired."""
        self.ended: dict[str, str] = {}
        """Runs, and how they ended: finished, or why not."""
        self.acts: list[Acted] = []
        self.leads: list[tuple[int, GroupId, NodeId, int]] = []
        """When, which group, who began to serve it, and in which epoch."""
        self.commits: dict[GroupId, list[int]] = {}
        """When the entries of each group were committed."""
        self.lossy: set[GroupId] = set()
        """Groups that went on from an older state, and said so."""

    def look(self) -> "Watch":
        """Read what came since the last time."""
        for path in sorted(self._directory.glob(f"*{ENDING}")):
            lines, self._read_bytes[path] = read_from(path, self._read_bytes[path])
            for line in lines:
                self._take(line)
        return self

    def firings_of(self, routine: str) -> list[str]:
        return [run for run in self.fired if run.split("#", maxsplit=1)[0] == routine]

    def _take(self, line: Line) -> None:
        match line.what:
            case DeviceActed():
                self.acts.append(line.what.acted)
            case Told(kind="RunTraced" | "LeaderChanged" | "Committed"):
                self._observe(line.at_us, NodeId(line.who), observation_of(line.what))
            case _:
                pass

    def _observe(self, at_us: int, node: NodeId, told: object) -> None:
        if isinstance(told, RunTraced):
            run, trace = str(told.run), told.trace
            if isinstance(trace, Fired):
                self.fired.setdefault(run, at_us)
            elif isinstance(trace, Ending):
                self.ended.setdefault(run, "finished" if isinstance(trace, Finished) else trace.reason)
        elif isinstance(told, Committed):
            self.commits.setdefault(told.group, []).append(at_us)
        elif isinstance(told, LeaderChanged):
            if told.state == "serving":
                self.leads.append((at_us, told.group, node, told.config.epoch))
            elif told.state == "lossy":
                self.lossy.add(told.group)
