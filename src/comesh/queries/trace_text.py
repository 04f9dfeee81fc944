"""Traces in words: the one place that turns them into text.

    telling = Telling(verbose=False, time_zone="Europe/Zurich")
    for line in lines:
        print(telling.text(line.run, line.node, line.wall_ms, line.trace))

A `Telling` remembers when each run asked for a lock, sent a command and fired, so that what ends one of these
says how long it took: "took the lock of hall_lamp (0.2 ms)". It does so only where one node told both, since
clocks of nodes differ. Times of day are in the document's time zone, as clauses and schedules have them.
"""

from collections import OrderedDict
from datetime import tzinfo
from typing import Final, assert_never

from comesh.core.traces import (
    AttemptBegan,
    BecameTrue,
    ByHand,
    CameDue,
    Cause,
    CommandAnswered,
    CommandSent,
    Dropped,
    EventCame,
    Executing,
    Failed,
    Finished,
    Fired,
    Ignored,
    LeaderTookOver,
    LockAsked,
    LockGranted,
    LockPassedOn,
    LockQueued,
    LockRefused,
    Releasing,
    Seen,
    StayedTrue,
    Trace,
    Wounded,
)
from comesh.core.values import shown
from comesh.queries.times import clock, day_time, differs_here, duration_text, zone_named

MAX_RUNS: Final = 500
"""Runs whose beginnings are remembered, the latest."""
REFUSALS: Final = {
    "held": "another run holds it",
    "released": "this attempt was given back already",
    "unknown": "there is no such device",
}

_Began = dict[tuple[str, str], tuple[str, float]]
"""What a run began, by kind and device or step: the node that told it, and when."""


class Telling:
    """Traces of runs, in the order in which they were told."""

    def __init__(self, *, verbose: bool = False, time_zone: str = "") -> None:
        self._verbose = verbose
        self._zone = zone_named(time_zone)
        self._runs: OrderedDict[str, _Began] = OrderedDict()

    def clock(self, wall_ms: float) -> str:
        return clock(wall_ms, self._zone)

    def differs_here(self, wall_ms: float) -> bool:
        """Whether clocks of this machine show another time than the document's."""
        return differs_here(wall_ms, self._zone)

    def text(self, run: str, node: str, at_ms: float, trace: Trace) -> str:
        """What the run did, and how long that took."""
        began = self._runs.setdefault(run, {})
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        ends = None
        match trace:
            case Fired():
                began["run", ""] = (node, at_ms)
            case LockAsked(devices=devices) | LockPassedOn(devices=devices):
                began.update({("lock", device): (node, at_ms) for device in devices})
            case CommandSent(step=step):
                began["command", str(step)] = (node, at_ms)
            case LockGranted(device=device):
                ends = began.pop(("lock", device), None)
            case CommandAnswered(step=step):
                ends = began.pop(("command", str(step)), None)
            case Finished() | Failed():
                ends = began.pop(("run", ""), None)
            case _:
                pass
        took_ms = None if ends is None or ends[0] != node or at_ms < ends[1] else at_ms - ends[1]
        return text_of(trace, verbose=self._verbose, zone=self._zone, took_ms=took_ms)


def text_of(
    trace: Trace, *, verbose: bool = False, zone: tzinfo | None = None, took_ms: float | None = None
) -> str:
    """One trace by itself; verbose: with stamps, groups and numbers of attempts. took_ms: since what it ends
    began."""
    took = "" if took_ms is None else f" ({duration_text(took_ms)})"
    match trace:
        case Fired(cause=cause, waits_for=waits_for):
            waits = "" if waits_for is None else f"; waits for {waits_for} to end"
            return f"fired: {cause_text(cause, zone, verbose=verbose)}{waits}"
        case Ignored(cause=cause, paused_by=paused_by, cooldown_ms=cooldown_ms):
            why = f"cools down for {duration_text(cooldown_ms)} more"
            why = why if paused_by is None else f"paused by {paused_by}"
            return f"ignored: {cause_text(cause, zone, verbose=verbose)}; {why}"
        case Dropped(reason=reason, cause=cause):
            of = "" if cause is None else f"; it was to fire: {cause_text(cause, zone, verbose=verbose)}"
            return f"dropped: {reason}{of}"
        case Releasing(reason=reason):
            return "gives its locks back" + (f": {reason}" if reason else "")
        case Finished():
            return f"finished{took}"
        case Failed(reason=reason):
            return f"failed{took}: {reason}"
        case LeaderTookOver(leader=leader, ballot=ballot):
            return f"{leader} took over its lead" + (f", ballot {ballot}" if verbose else "")
        case CommandSent() | CommandAnswered() | Executing():
            return _command_text(trace, took, verbose=verbose)
        case _:
            return _lock_text(trace, took, verbose=verbose)


def _lock_text(
    trace: AttemptBegan | LockAsked | LockPassedOn | LockGranted | LockQueued | LockRefused | Wounded,
    took: str,
    *,
    verbose: bool,
) -> str:
    match trace:
        case AttemptBegan(attempt=attempt, strategy=strategy, why=why):
            how = f" ({strategy})" if verbose else ""
            return f"began attempt {attempt}{how}" + (f": {why}" if why else "")
        case LockAsked(devices=devices, group=group, attempt=attempt):
            more = f", of group {group}, attempt {attempt}" if verbose else ""
            return f"asked for {_locks(devices)}{more}"
        case LockPassedOn(devices=devices, group=group, attempt=attempt):
            more = f", of group {group}, attempt {attempt}" if verbose else ""
            return f"asked on for {_locks(devices)}{more}"
        case LockGranted(device=device, stamp=stamp):
            return f"took the lock of {device}{took}" + (f", stamp {stamp}" if verbose else "")
        case LockQueued(device=device):
            return f"waits for the lock of {device}"
        case LockRefused(device=device, why=why):
            return f"was refused the lock of {device}: {REFUSALS.get(why, why)}"
        case Wounded(device=device):
            return f"gives way to an older run, which waits for {device}"
        case _:
            assert_never(trace)


def _command_text(trace: CommandSent | CommandAnswered | Executing, took: str, *, verbose: bool) -> str:
    match trace:
        case Executing(attempt=attempt, steps=steps, next_step=next_step):
            more = f", attempt {attempt}" if verbose else ""
            if next_step:
                return f"executes: goes on with step {next_step + 1} of {steps}{more}"
            return f"executes: has all its locks, {steps} {'step' if steps == 1 else 'steps'}{more}"
        case CommandSent(step=step, device=device, command=command, argument=argument):
            what = command if argument is None else f"{command} {shown(argument)}"
            return f"step {step + 1}: tells {device} {what}"
        case CommandAnswered(step=step, device=device, outcome=outcome, detail=detail):
            why = f": {detail}" if detail else ""
            return f"step {step + 1}: {device} {_OUTCOMES.get(outcome, outcome)}{took}{why}"
        case _:
            assert_never(trace)


_OUTCOMES: Final = {
    "done": "did it",
    "failed": "did not do it",
    "unknown": "may have done it",
    "refused": "was not told",
}


def _locks(devices: tuple[str, ...]) -> str:
    return f"the lock{'' if len(devices) == 1 else 's'} of {', '.join(devices)}"


def cause_text(cause: Cause, zone: tzinfo | None = None, *, verbose: bool = False) -> str:
    """Why a run fired."""
    match cause:
        case BecameTrue(readings=readings):
            return f"its clause became true ({_readings(readings)})"
        case StayedTrue(for_ms=for_ms, readings=readings):
            return f"its clause was true for {duration_text(for_ms)} ({_readings(readings)})"
        case CameDue(at_ms=at_ms):
            return f"scheduled for {day_time(at_ms, zone)}"
        case EventCame(device=device, sequence=sequence, readings=readings):
            number = f", event {sequence}" if verbose else ""
            return f"{device} had an event ({_readings(dict(readings))}{number})"
        case ByHand(by=by):
            return f"by hand, {by}"
        case _:
            assert_never(cause)


def _readings(readings: Seen) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in sorted(readings.items()))
