"""Watches and counts what groups and runs do, for the report of a simulation.

It only listens. Runs are what their traces tell, which come after the commits that they tell of. A leader may
fall between a commit and its telling: then the state with which the next begins says what fired and ended.
Queues for locks and who holds them are what the devices' groups committed.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from comesh.core.effects import Committed, DeviceChanged, LeaderChanged, Observation, RunTraced
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.records import DeviceRecord, Record, RoutineRecord, RunRecord
from comesh.core.stamps import RunId
from comesh.core.traces import (
    AttemptBegan,
    Ending,
    Executing,
    Failed,
    Finished,
    Fired,
    Ignored,
    LockQueued,
    Trace,
    what_of,
)
from comesh.deployment.outlook import group_order
from comesh.sim.checks import Checks, Violation
from comesh.sim.world import World

MAX_TRACED: Final = 500
"""Maximum traces kept, of the latest runs."""
MAX_LINES: Final = 300
"""Maximum lines of one trace: later lines are left out, except for the end."""
MAX_CHANGES: Final = 1000
"""Maximum changes of devices kept, the latest."""


class GroupCounts(msgspec.Struct, frozen=True, kw_only=True):
    group: GroupId
    leader_changes: int
    """Number of times that another node began to serve, in the same config or in the next."""
    elections: int
    """Number of leader changes by election; the others were handoffs."""
    handoffs: int
    commits: int
    lossy: int
    """Elections that continued from an incomplete state."""
    leader: NodeId | None
    """The node that began to serve last."""


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    median_ms: float
    percentile_95_ms: float
    longest_ms: float


class LockWaits(msgspec.Struct, frozen=True, kw_only=True):
    queued: Waits
    """Waiting times in queues, until the lock was granted."""
    given_up: int
    """Requests that left a queue without the lock."""
    acquired: Waits
    """Waiting times of runs, from their firing (or their turn) until they had all locks."""
    longest: str = ""
    """The run that waited longest, and its queue."""


class DeviceChange(msgspec.Struct, frozen=True):
    at_ms: float
    device: DeviceId
    status: str
    why: str


class Untold(msgspec.Struct, frozen=True, tag_field="what", tag="untold"):
    """It ended, or was lost, and the next leader does not know how."""


class TraceLine(msgspec.Struct, frozen=True):
    at_ms: float
    node: NodeId
    trace: Trace | Untold
    held_by: str | None = None
    """The run that has the device, where this one is queued."""


class TracedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a routine that is followed."""

    run: str
    routine: RoutineId
    outcome: str
    """Result: finished, failed, dropped, or else the last traced event."""
    lines: tuple[TraceLine, ...]


class OpenRun(msgspec.Struct, frozen=True):
    run: str
    last: TraceLine
    """The last traced event."""


class LossTold(msgspec.Struct, frozen=True):
    at_ms: float
    group: GroupId
    entries: int
    runs: tuple[str, ...]


class RunCounts(msgspec.Struct, frozen=True, kw_only=True):
    fired: int
    finished: int
    failed: int
    reasons: dict[str, int]
    """Failed runs by reason."""
    dropped: int
    """Firings beyond the maximum that may wait, or of removed routines."""
    ignored: int
    """Firings that a cooldown suppressed."""
    untold: int
    """Runs that ended or were lost, where the next leader does not know how."""
    going: tuple[OpenRun, ...]
    """Runs still open at the end."""


class ProtocolReport(msgspec.Struct, frozen=True, kw_only=True):
    """What groups and runs did."""

    groups: tuple[GroupCounts, ...]
    runs: RunCounts
    lock_waits: LockWaits
    devices_seen: int
    """Devices that answered at least once."""
    device_changes: int
    """Changes of devices' status, after the first answer."""
    changes: tuple[DeviceChange, ...]
    """The latest changes of devices' status."""
    traces: tuple[TracedRun, ...]
    """Traces of the routines that are followed."""
    checked: bool
    """True if the promises were checked."""
    violations: tuple[Violation, ...] = ()
    more_violations: int = 0
    losses: tuple[LossTold, ...] = ()


class _Group:
    def __init__(self) -> None:
        self.leader: NodeId | None = None
        self.number = 0
        self.counts: Counter[str] = Counter()


class _Trace:
    def __init__(self, run: RunId) -> None:
        self.run = run
        self.lines: list[TraceLine] = []

    def add(self, line: TraceLine) -> None:
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
        elif isinstance(line.trace, Ending | Untold):
            self.lines[-1] = line


class ProtocolWatch:
    """Observes a world; make it before the world runs. follow: routines whose runs are kept in full."""

    def __init__(self, world: World, groups: Collection[GroupId], follow: Collection[RoutineId] = ()) -> None:
        self._groups = {group: _Group() for group in sorted(groups, key=group_order)}
        self._follow = frozenset(follow)
        self._traces: dict[RunId, _Trace] = {}
        self._open: dict[RunId, OpenRun] = {}
        self._fired_ms: dict[RunId, float] = {}
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._acquired_ms: list[float] = []
        self._holders: dict[DeviceId, RunId] = {}
        self._queues: dict[DeviceId, dict[RunId, float]] = {}
        self._queued_ms: list[float] = []
        self._longest = (0.0, "")
        self._seen: set[DeviceId] = set()
        self._changes: deque[DeviceChange] = deque(maxlen=MAX_CHANGES)
        self._handlers: dict[type, Callable[[float, NodeId, Any], None]] = {
            LeaderChanged: self._on_leader,
            Committed: self._on_committed,
            RunTraced: self._on_run_traced,
            DeviceChanged: self._on_device,
        }
        world.observers.append(self._on_observation)

    @property
    def runs(self) -> RunCounts:
        counts = self._counts
        return RunCounts(
            fired=counts["fired"],
            finished=counts["finished"],
            failed=counts["failed"],
            reasons=dict(self._reasons.most_common()),
            dropped=counts["dropped"],
            ignored=counts["ignored"],
            untold=counts["untold"],
            going=tuple(self._open.values()),
        )

    @property
    def commits(self) -> int:
        return sum(group.counts["commits"] for group in self._groups.values())

    def report(self, checks: Checks | None) -> ProtocolReport:
        """Returns the report so far, with the findings of the checks."""
        counts = self._counts
        return ProtocolReport(
            groups=tuple(_counts_of(name, group) for name, group in self._groups.items()),
            runs=self.runs,
            lock_waits=LockWaits(
                queued=waits(self._queued_ms),
                given_up=counts["given up"],
                acquired=waits(self._acquired_ms),
                longest=self._longest[1],
            ),
            devices_seen=len(self._seen),
            device_changes=counts["device"],
            changes=tuple(self._changes),
            traces=tuple(
                TracedRun(
                    run=str(trace.run),
                    routine=trace.run.routine,
                    outcome=what_of(trace.lines[-1].trace),
                    lines=tuple(trace.lines),
                )
                for trace in self._traces.values()
            ),
            checked=checks is not None,
            violations=() if checks is None else tuple(checks.violations),
            more_violations=0 if checks is None else checks.more_violations,
            losses=() if checks is None else _losses(checks),
        )

    def _on_observation(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        handler = self._handlers.get(type(observation))
        if handler is not None:
            handler(now_ms, node, observation)

    def _on_leader(self, now_ms: float, node: NodeId, told: LeaderChanged) -> None:
        group = self._groups.setdefault(told.group, _Group())
        if told.state == "lossy":
            group.counts["lossy"] += 1
        if told.state != "serving":
            return
        self._take_over(now_ms, node, told.records)
        if group.number and told.config.number > group.number:
            group.counts["handoffs"] += 1
        if group.leader is not None and group.leader != node:
            group.counts["leader changes"] += 1
        group.counts["elections"] += told.ballot.round > 0
        group.leader = node
        group.number = max(group.number, told.config.number)

    def _take_over(self, now_ms: float, node: NodeId, records: Sequence[Record]) -> None:
        """Catch up with what the leader before had committed and could not report."""
        routines = [record for record in records if isinstance(record, RoutineRecord)]
        live = {record.run: record.cause for record in records if isinstance(record, RunRecord)}
        live |= {firing.run: firing.cause for routine in routines for firing in routine.waiting}
        for run, cause in live.items():
            if run not in self._open:
                self._on_traced(now_ms, node, run, Fired(cause))
        ended = {routine.routine: routine.ended for routine in routines}
        for run in [run for run in self._open if run.routine in ended and run not in live]:
            last = ended[run.routine]
            if last is None or last.run != run:
                self._on_traced(now_ms, node, run, Untold())
            else:
                self._on_traced(now_ms, node, run, Failed(last.reason) if last.reason else Finished())

    def _on_committed(self, now_ms: float, node: NodeId, told: Committed) -> None:
        self._groups.setdefault(told.group, _Group()).counts["commits"] += 1
        for record in told.entry:
            if isinstance(record, DeviceRecord):
                self._on_queue(now_ms, record)

    def _on_queue(self, now_ms: float, record: DeviceRecord) -> None:
        """Count the changes of a queue: who joined it, and who left it, with the lock or not."""
        holder = None if record.hold is None else record.hold.run
        if holder is None:
            self._holders.pop(record.device, None)
        else:
            self._holders[record.device] = holder
        if not record.queue and record.device not in self._queues:
            return
        before = self._queues.pop(record.device, {})
        waiting = {waiter.run: before.get(waiter.run, now_ms) for waiter in record.queue}
        if waiting:
            self._queues[record.device] = waiting
        for run, since_ms in before.items():
            if run in waiting:
                continue
            if run != holder:
                self._counts["given up"] += 1
                continue
            waited_ms = now_ms - since_ms
            self._queued_ms.append(waited_ms)
            if waited_ms > self._longest[0]:
                self._longest = (waited_ms, f"{run} for {record.device}")

    def _on_run_traced(self, now_ms: float, node: NodeId, told: RunTraced) -> None:
        self._on_traced(now_ms, node, told.run, told.trace)

    def _on_traced(self, now_ms: float, node: NodeId, run: RunId, trace: Trace | Untold) -> None:
        if isinstance(trace, Finished | Failed) and run not in self._open:
            self._counts["fired"] += 1  # its leader died before it could report them
        holder = self._holders.get(trace.device) if isinstance(trace, LockQueued) else None
        line = TraceLine(now_ms, node, trace, None if holder is None else str(holder))
        if run.routine in self._follow:
            self._trace(run).add(line)
        self._counts[what_of(trace)] += 1
        if isinstance(trace, Ignored):
            return
        match trace:
            case Failed():
                self._reasons[trace.reason or "no reason given"] += 1
            case AttemptBegan():
                self._fired_ms.setdefault(run, now_ms)
            case Executing() if run in self._fired_ms:
                self._acquired_ms.append(now_ms - self._fired_ms.pop(run))
            case _:
                pass
        if isinstance(trace, Ending | Untold):
            self._open.pop(run, None)
            self._fired_ms.pop(run, None)
        elif isinstance(trace, Fired) or run in self._open:
            self._open[run] = OpenRun(str(run), line)

    def _trace(self, run: RunId) -> _Trace:
        known = self._traces.get(run)
        if known is None:
            known = self._traces[run] = _Trace(run)
            while len(self._traces) > MAX_TRACED:
                del self._traces[next(iter(self._traces))]
        return known

    def _on_device(self, now_ms: float, node: NodeId, told: DeviceChanged) -> None:
        if told.status == "up" and told.device not in self._seen:
            self._seen.add(told.device)
            return
        self._counts["device"] += 1
        self._changes.append(DeviceChange(now_ms, told.device, told.status, told.why))


def waits(times_ms: Sequence[float]) -> Waits:
    if not times_ms:
        return Waits(count=0, median_ms=0.0, percentile_95_ms=0.0, longest_ms=0.0)
    ordered = sorted(times_ms)
    return Waits(
        count=len(ordered),
        median_ms=ordered[len(ordered) // 2],
        percentile_95_ms=ordered[len(ordered) * 95 // 100],
        longest_ms=ordered[-1],
    )


def _counts_of(name: GroupId, group: _Group) -> GroupCounts:
    counts = group.counts
    return GroupCounts(
        group=name,
        leader_changes=counts["leader changes"],
        elections=counts["elections"],
        handoffs=counts["handoffs"],
        commits=counts["commits"],
        lossy=counts["lossy"],
        leader=group.leader,
    )


def _losses(checks: Checks) -> tuple[LossTold, ...]:
    return tuple(
        LossTold(loss.at_ms, loss.group, loss.entries, tuple(map(str, loss.runs))) for loss in checks.losses
    )
