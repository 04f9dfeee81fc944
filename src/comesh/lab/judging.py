"""The checkers of the simulator on what really happened: recordings in, a verdict out.

    verdict = judge(directory, deployment, quiet=Quiet(from_us, to_us, bound_ms))
    verdict.violations, verdict.losses, print(verdict)

The merged history (`merging`) is told to the same oracles that watch simulations: what leaders called
committed, what members wrote, which processes lived, what devices did. Nothing is asked of a node. Times are
milliseconds since the first line.

Progress is only promised while nothing is broken, so the caller says from when to when that was so.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from comesh.core.effects import Committed, LeaderChanged, RunTraced
from comesh.core.ids import GroupId, NodeId
from comesh.core.program import Program
from comesh.core.traces import Fired
from comesh.deployment.load import load
from comesh.deployment.program import program_of
from comesh.drivers.virtual.devices import Acted
from comesh.lab.merging import LifeEnded, Moment, merged, recordings
from comesh.lab.recorded import RecordedMachine, RecordedMachines
from comesh.runtime.recording import (
    Began,
    DeviceActed,
    DevicePressed,
    Disturbed,
    Ended,
    Flushed,
    Told,
    Wrote,
    observation_of,
    record_of,
)
from comesh.sim.checks import Checks, Loss, Progress, Violation
from comesh.sim.checks.disks import Disks
from comesh.sim.checks.elections import Elections

INSTANT_MS: Final = 1000.0
"""Maximum time after a commit at which the traces of the same step come: steps of several processes
overlap."""
STEP_MS: Final = 20.0
"""Time before its last line in which a process may have committed something without tracing it, because it
died."""
LOOK_US: Final = 1_000_000
"""Interval at which progress is checked within the quiet phase."""


class JudgeError(Exception):
    """There is nothing to judge by; str() says what is wrong and what to do."""


class Quiet(msgspec.Struct, frozen=True):
    """Nothing was broken from then to then, by CLOCK_BOOTTIME; what waits must go on within the bound."""

    from_us: int
    to_us: int
    bound_ms: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    violations: tuple[Violation, ...]
    more_violations: int
    losses: tuple[Loss, ...]
    seconds: float
    lines: int
    runs: int
    """Firings."""
    commits: int
    acts: int
    late_acts: int
    """Landed after their time, and so not judged by who held the lock then."""
    leader_changes: int
    lives: int
    """Processes of nodes that began."""
    events: int
    """Number of events that devices had."""
    untold_ends: int
    """Number of ended runs whose trace died with the process."""
    unsure: tuple[str, ...]
    """Disks of which not all was recorded: they were taken for ones that may have anything."""
    quiet_s: float = 0.0
    """Seconds in which nothing was broken; 0: promise 5 was not judged."""

    @property
    def kept(self) -> bool:
        """Says if all promises were kept, and something happened at all."""
        return not self.violations and self.commits > 0

    def __str__(self) -> str:
        verdict = "all promises kept" if self.kept else "nothing was committed"
        if self.violations:
            verdict = f"{len(self.violations) + self.more_violations} violations"
        counts = (
            f"{verdict} in {self.seconds:.1f} s: {self.runs} firings, {self.commits} commits, "
            f"{self.acts} acts ({self.late_acts} late), {self.leader_changes} leader changes, "
            f"{self.lives} processes, {len(self.losses)} reported losses"
        )
        told = [counts]
        told += [
            f"loss at {loss.at_ms / 1000:.3f} s: {loss.group} lost {loss.entries} entries, "
            f"runs {', '.join(map(str, loss.runs)) or 'none'}"
            for loss in self.losses
        ]
        if not self.quiet_s:
            told.append("promise 5 was not judged: nobody said when nothing was broken")
        if self.untold_ends:
            told.append(f"{self.untold_ends} runs ended whose last words died with their leader")
        if self.unsure:
            told.append(f"not all was recorded of what is on the disks of {', '.join(self.unsure)}")
        return "\n".join([*told, *map(str, self.violations)])


def judge(directory: Path, deployment: Path, *, quiet: Quiet | None = None) -> Verdict:
    """The recordings in a directory, of a mesh that ran this document."""
    outcome = load(deployment)
    if outcome.deployment is None:
        what = "\n".join(map(str, outcome.problems))
        raise JudgeError(f"{deployment}: not the document of a mesh that ran\n{what}")
    return judge_recordings(recordings(directory), [program_of(outcome.deployment)], quiet=quiet)


def judge_recordings(
    paths: list[Path], programs: Sequence[Program], *, quiet: Quiet | None = None
) -> Verdict:
    judging = Judging(programs, quiet)
    judging.hear(merged(paths))
    return judging.finish()


class Judging:
    """Tells the checks what was recorded, moment by moment."""

    def __init__(self, programs: Sequence[Program], quiet: Quiet | None = None) -> None:
        self._machines = RecordedMachines()
        self._log: list[Acted] = []
        self._elections = Elections(self._machines)
        self.checks = Checks(
            self._log,
            programs,
            runs_since=self._machines.runs_since,
            lacking=Disks(self._machines).lacking,
            unfounded=self._elections.unfounded,
            instant_ms=INSTANT_MS,
        )
        self._quiet = quiet
        self._progress: Progress | None = None
        self._looked_us = 0
        self._first_us: int | None = None
        self._last_us = 0
        self._leaders: dict[GroupId, tuple[NodeId, int]] = {}
        self._counts: Counter[str] = Counter()

    def hear(self, moments: Iterable[Moment]) -> None:
        for moment in moments:
            if self._first_us is None:
                self._first_us = moment.at_us
            self._look(moment.at_us)
            self._last_us = moment.at_us
            self._counts["lines"] += 1
            self._tell(self._ms(moment.at_us), moment)

    def finish(self) -> Verdict:
        if self._quiet is not None:
            self._look(self._quiet.to_us)
        self.checks.finish()
        checks, counts = self.checks, self._counts
        return Verdict(
            violations=tuple(checks.violations),
            more_violations=checks.more_violations,
            losses=tuple(checks.losses),
            seconds=self._ms(self._last_us) / 1000,
            lines=counts["lines"],
            runs=counts["runs"],
            commits=counts["commits"],
            acts=checks.locks.acts,
            late_acts=checks.locks.late_acts,
            leader_changes=counts["leader changes"],
            lives=counts["lives"],
            events=counts["events"],
            untold_ends=checks.runs.untold,
            unsure=tuple(sorted(name for name, one in self._machines.items() if one.disk.unsure)),
            quiet_s=0.0 if self._quiet is None else (self._quiet.to_us - self._quiet.from_us) / 1e6,
        )

    def _ms(self, at_us: int) -> float:
        return (at_us - (self._first_us or 0)) / 1000

    # -- what was recorded -------------------------------------------------------------------------------

    def _tell(self, at_ms: float, moment: Moment) -> None:
        node = NodeId(moment.who)
        match moment.what:
            case Told():
                self._told(at_ms, self._machines.of(moment.file, node), moment.what)
            case Wrote():
                record = record_of(moment.what)
                self._machines.of(moment.file, node).disk.write(record, moment.what.at_byte)
                self.checks.proposals.on_written(at_ms, node, record)
                self._elections.on_written(at_ms, node, record)
            case Flushed():
                self._machines.of(moment.file, node).disk.flush(moment.what.to_byte)
            case Began():
                self._counts["lives"] += 1
                self._machines.of(moment.file, node).begin(at_ms, moment.what)
            case LifeEnded():
                self._end(self._machines.of(moment.file, node), moment.what.following)
            case Ended():
                self._machines.of(moment.file, node).end(None)
            case Disturbed():
                self._disturbed(moment.what)
            case DeviceActed():
                self._log.append(self._since_first(moment.what.acted))
            case DevicePressed():
                self._counts["events"] += 1

    def _told(self, at_ms: float, machine: RecordedMachine, line: Told) -> None:
        observation = observation_of(line)
        machine.told_ms = at_ms
        if isinstance(observation, Committed):
            self._counts["commits"] += 1
        elif isinstance(observation, RunTraced):
            self._counts["runs"] += isinstance(observation.trace, Fired)
        elif isinstance(observation, LeaderChanged) and observation.state == "serving":
            claim = (machine.node_id, observation.config.mark)
            if self._leaders.get(observation.group) != claim:
                self._counts["leader changes"] += observation.group in self._leaders
                self._leaders[observation.group] = claim
        self.checks.observe(at_ms, machine.node_id, observation)

    def _disturbed(self, line: Disturbed) -> None:
        for name in line.nodes if line.ends else ():
            if self._machines[name].process is not None:
                self._end(self._machines[name], None)
        for name, kept_bytes in line.kept_bytes.items():
            self._machines[name].disk.cut(kept_bytes)

    def _end(self, machine: RecordedMachine, following: Began | None) -> None:
        """It died, and may have been about to trace what it had committed."""
        machine.end(following)
        led = [
            group
            for group, history in self.checks.histories.groups.items()
            if history.leader is not None and history.leader.node == machine.node_id
        ]
        self.checks.runs.excuse_missing(machine.told_ms - STEP_MS, led)

    def _since_first(self, acted: Acted) -> Acted:
        """Returns the time to the microsecond, as of commits: anything sent right after one was not sent
        before it."""
        command = acted.command
        return msgspec.structs.replace(
            acted,
            at_ms=self._ms(round(acted.at_ms * 1000)),
            command=msgspec.structs.replace(command, sent_ms=self._ms(round(command.sent_ms * 1000))),
            began_ms=self._ms(round(acted.began_ms * 1000)),
        )

    # -- progress ----------------------------------------------------------------------------------------

    def _look(self, now_us: int) -> None:
        """Progress, as of before what happens now."""
        quiet = self._quiet
        if quiet is None or now_us < quiet.from_us:
            return
        if self._progress is None:
            self._progress = self.checks.progress(quiet.bound_ms)
            self._progress.begin(self._ms(quiet.from_us))
            self._looked_us = quiet.from_us
        until_us = min(now_us, quiet.to_us)
        if until_us - self._looked_us >= LOOK_US or (self._looked_us < until_us == quiet.to_us):
            self._looked_us = until_us
            self._progress.judge(self._ms(until_us))
