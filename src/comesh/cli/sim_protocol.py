"""Prints what groups and runs did in a simulation."""

from collections.abc import Sequence

from comesh.cli.terminal import number, out
from comesh.core.ids import DeviceId
from comesh.deployment.problems import printable
from comesh.queries.trace_text import Telling
from comesh.sim.protocol_watch import (
    DeviceChange,
    GroupCounts,
    LockWaits,
    ProtocolReport,
    RunCounts,
    TracedRun,
    TraceLine,
    Untold,
    Waits,
)

_MAX_LINES = 20
"""Maximum lines of one kind; --json has all."""
_MAX_VIOLATIONS = 5


def show_protocol(report: ProtocolReport, idle: Sequence[str]) -> None:
    """idle: which groups could not act, told right before the verdict, which would sound too good alone."""
    show_lines("what groups did", [_group(group) for group in report.groups])
    _show_runs(report.runs)
    _show_waits(report.lock_waits)
    told = without_repeats(report.changes)
    changes = number(report.device_changes - len(report.changes) + len(told), "change")
    out.print(f"devices: {report.devices_seen} answered; {changes} of status since")
    lines = [f"{change.at_ms / 1000:.3f} s  {change.device} {change.status}: {change.why}" for change in told]
    show_lines("went down or came back", lines)
    for trace in report.traces:
        _show_trace(trace)
    losses = [
        f"{loss.at_ms / 1000:.3f} s  {loss.group} lost {loss.entries} entries, with the runs "
        f"{', '.join(loss.runs) or 'none'}"
        for loss in report.losses
    ]
    show_lines("lossy elections, as the protocol reports them", losses)
    for line in idle:
        out.print(printable(line))
    _show_verdict(report)


def without_repeats(changes: Sequence[DeviceChange]) -> list[DeviceChange]:
    """Drops changes that repeat: a new leader reports again what it took over, such as a device that is down
    already."""
    latest: dict[DeviceId, str] = {}
    told = []
    for change in changes:
        if latest.get(change.device) != change.status:
            told.append(change)
        latest[change.device] = change.status
    return told


def _group(group: GroupCounts) -> str:
    lossy = f", {group.lossy} of them lossy" if group.lossy else ""
    leader = "nobody led it" if group.leader is None else f"last led by {group.leader}"
    return (
        f"{group.group}: {number(group.commits, 'commit')}, {number(group.handoffs, 'handoff')}, "
        f"{number(group.leader_changes, 'leader change')}, {number(group.elections, 'election')}{lossy}; "
        f"{leader}"
    )


def _show_runs(runs: RunCounts) -> None:
    more = [f"{runs.dropped} dropped"] if runs.dropped else []
    more += [f"{runs.ignored} ignored while cooling down"] if runs.ignored else []
    more += [f"{runs.untold} ended untold"] if runs.untold else []
    more += [f"{len(runs.going)} still going"] if runs.going else []
    counts = [f"{runs.fired} fired", f"{runs.finished} finished", f"{runs.failed} failed", *more]
    out.print(f"runs: {', '.join(counts)}")
    show_lines("why runs failed", [f"{number(count, 'time')}: {why}" for why, count in runs.reasons.items()])
    going = [f"{run.run}, since {run.last.at_ms / 1000:.3f} s: {_line(run.last)}" for run in runs.going]
    show_lines("still going", going)


def _show_waits(waits: LockWaits) -> None:
    if waits.acquired.count:
        out.print(f"until runs had all their locks: {_times(waits.acquired)}")
    if waits.queued.count or waits.given_up:
        longest = f" ({waits.longest})" if waits.longest else ""
        out.print(f"waits in queues for locks: {_times(waits.queued)}{longest}; {waits.given_up} gave up")


def _times(waits: Waits) -> str:
    return (
        f"{waits.count}, median {waits.median_ms:.0f} ms, 95 % within {waits.percentile_95_ms:.0f} ms, "
        f"longest {waits.longest_ms:.0f} ms"
    )


def _show_trace(trace: TracedRun) -> None:
    out.print(f"run {printable(trace.run)}: {trace.outcome}")
    telling = Telling(time_zone="UTC")
    for line in trace.lines:
        out.print(f"  {line.at_ms / 1000:.3f} s  {line.node}  {printable(_line(line, trace.run, telling))}")


def _line(line: TraceLine, run: str = "", telling: Telling | None = None) -> str:
    if isinstance(line.trace, Untold):
        return "ended, and the next leader does not know how"
    known = Telling(time_zone="UTC") if telling is None else telling
    held = "" if line.held_by is None else f", which {line.held_by} holds"
    return known.text(run, line.node, line.at_ms, line.trace) + held


def _show_verdict(report: ProtocolReport) -> None:
    if not report.checked:
        out.print("the promises of the protocol were not checked")
        return
    count = len(report.violations) + report.more_violations
    if not count:
        out.print("every promise of the protocol held")
        return
    out.print(f"BROKEN PROMISES: {count}", style="bold red")
    for violation in report.violations[:_MAX_VIOLATIONS]:
        for line in str(violation).splitlines():
            out.print(f"  {printable(line)}")
    if count > _MAX_VIOLATIONS:
        out.print(f"  ... and {count - _MAX_VIOLATIONS} more")


def show_lines(title: str, lines: list[str], count: int | None = None) -> None:
    """Prints a title and a few lines, or nothing where there are none."""
    if not lines:
        return
    out.print(f"{title}: {len(lines) if count is None else count}")
    for line in lines[:_MAX_LINES]:
        out.print(f"  {printable(line)}")
    if len(lines) > _MAX_LINES:
        out.print(f"  ... and {len(lines) - _MAX_LINES} more")
