"""Entries of a group in words: what each record changes, compared with the state before it."""

from collections.abc import Iterator, Mapping
from datetime import UTC

from comesh.core.group.config import UNBOUND_STORE, Config
from comesh.core.records import (
    DeviceRecord,
    DocumentRecord,
    Entry,
    Gone,
    GroupRecord,
    HandoffRecord,
    Record,
    RoutineRecord,
    RunRecord,
    Stage,
    Status,
    Waiter,
)
from comesh.core.stamps import Era, RunId
from comesh.queries.trace_text import cause_text


class RunNames:
    """Runs by the order in which they were first heard of: `evening#1` instead of a stamp."""

    def __init__(self) -> None:
        self._names: dict[RunId, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, run: RunId | None) -> str:
        if run is None:
            return "nobody"
        if run not in self._names:
            self._counts[run.routine] = self._counts.get(run.routine, 0) + 1
            self._names[run] = f"{run.routine}#{self._counts[run.routine]}"
        return self._names[run]


def era_words(era: Era) -> str:
    return f"{era.config}:{era.ballot}"


def try_words(run: str, attempt: int) -> str:
    """A run with its attempt, unless it is the first."""
    return run if attempt <= 1 else f"{run} attempt {attempt}"


def config_words(config: Config) -> str:
    seats = " ".join(f"{seat.node}{'?' if seat.store == UNBOUND_STORE else ''}" for seat in config.seats)
    return f"{config_name(config.group, config.number)} = {seats}"


def config_name(group: str, number: int) -> str:
    """The first config of a group goes by the group's name."""
    return group if number <= 1 else f"{group}/{number}"


def entry_words(before: Mapping[str, Record], entry: Entry, runs: RunNames) -> list[str]:
    """What an entry changes; nothing where only a sensor's life is noted."""
    words: list[str] = []
    for record in entry:
        old = before.get(record.key)
        match record:
            case RunRecord():
                words += _run(old if isinstance(old, RunRecord) else None, record, runs)
            case DeviceRecord():
                words += _device(old if isinstance(old, DeviceRecord) else None, record, runs)
            case RoutineRecord():
                words += _routine(old if isinstance(old, RoutineRecord) else None, record, runs)
            case HandoffRecord():
                words.append(f"hands off to {config_words(record.successor)}")
            case GroupRecord():
                words += _group(old if isinstance(old, GroupRecord) else GroupRecord(), record)
            case DocumentRecord():
                words.append(f"deployment version {record.version}")
            case Gone():
                pass  # the routine's record says how its run ended
    return words


def _group(old: GroupRecord, new: GroupRecord) -> Iterator[str]:
    if new.era != old.era:
        yield f"era {era_words(new.era)} begins"
    for group, era in new.eras.items():
        if old.eras.get(group) != era:
            yield f"knows era {era_words(era)} of {group}"


def _run(old: RunRecord | None, new: RunRecord, runs: RunNames) -> Iterator[str]:
    changes = ", ".join(_run_changes(old if old is not None and old.run == new.run else None, new))
    if changes:
        yield f"{runs(new.run)} {changes}"


def _run_changes(old: RunRecord | None, new: RunRecord) -> Iterator[str]:
    if old is None:
        yield f"fires ({cause_text(new.cause, UTC)})"
    if old is None or old.stage is not new.stage:
        yield f"{new.stage.name}{f' ({new.reason})' if new.reason else ''}"
    if old is not None and new.attempt != old.attempt:
        yield f"begins attempt {new.attempt}"
    held = {one.device for one in old.held} if old is not None else set()
    more = [one.device for one in new.held if one.device not in held]
    if more:
        yield f"has {' and '.join(more)}"
    done = 0 if old is None else len(old.progress)
    for number, result in enumerate(new.progress[done:], start=done):
        yield f"step {number} {result.outcome}{f' ({result.detail})' if result.detail else ''}"
    owed = () if old is None else old.to_release
    if any(one not in owed for one in new.to_release):
        yield f"owes the release of {' and '.join(device for device, _, _ in new.to_release)}"
    elif len(new.to_release) < len(owed):
        yield f"has released {' and '.join(one[0] for one in owed if one not in new.to_release)}"
    if old is not None and new.era != old.era:
        yield f"stands in era {era_words(new.era)}"


def _routine(old: RoutineRecord | None, new: RoutineRecord, runs: RunNames) -> Iterator[str]:
    if new.ended is not None and (old is None or old.ended != new.ended):
        yield f"{runs(new.ended.run)} ends: {new.ended.reason or 'finished'}"
    if old is not None and old.truth != new.truth:
        yield f"{new.routine}'s clause is {str(new.truth).lower()}"
    for firing in new.waiting:
        if old is None or firing not in old.waiting:
            yield f"{runs(firing.run)} fires ({cause_text(firing.cause, UTC)}) and waits"


def _device(old: DeviceRecord | None, new: DeviceRecord, runs: RunNames) -> Iterator[str]:
    device = new.device
    old = old or DeviceRecord(device=device)
    if new.status is not old.status and new.status is Status.DOWN:
        yield f"{device} is down"
    if old.hold is not None and (new.hold is None or new.hold.run != old.hold.run):
        yield f"{device} freed by {runs(old.hold.run)}"
    yield from _calls(old, new, runs)
    waiting = [waiter for waiter in new.queue if waiter not in old.queue]
    if waiting:
        yield f"{device} wanted by {', '.join(_waiter(one, runs) for one in waiting)}"
    if new.hold is not None and (old.hold is None or old.hold.run != new.hold.run):
        yield f"{device} granted to {try_words(runs(new.hold.run), new.hold.attempt)}"
    elif new.hold is not None and old.hold is not None:
        if new.hold.attempt != old.hold.attempt:
            yield f"{device} granted again to {runs(new.hold.run)}, now attempt {new.hold.attempt}"
        if new.hold.fence != old.hold.fence and new.hold.fence is not None:
            yield f"{device} fenced at {new.hold.fence.config}:{new.hold.fence.ballot}"
    for routine, mark in new.released.items():
        if old.released.get(routine) != mark and (old.hold is None or old.hold.run != mark.run):
            yield f"{device} marks {try_words(runs(mark.run), mark.attempt)} released"
    if new.settled != old.settled:
        yield f"{device} is settled in era {era_words(new.settled)}"


def _waiter(waiter: Waiter, runs: RunNames) -> str:
    return try_words(runs(waiter.run), waiter.attempt)


def _calls(old: DeviceRecord, new: DeviceRecord, runs: RunNames) -> Iterator[str]:
    before = {call.origin: call for call in old.calls}
    for call in new.calls:
        was = before.get(call.origin)
        if was is None:
            yield f"{new.device} is to {call.action} for {runs(call.origin.run)} step {call.origin.step}"
        if call.outcome is not None and (was is None or was.outcome is not call.outcome):
            detail = f" ({call.detail})" if call.detail else ""
            yield f"{new.device} step {call.origin.step} {call.outcome}{detail}"
        elif call.landed and was is not None and not was.landed:
            yield f"{new.device} step {call.origin.step} cannot land any more"


def stage_words(stage: Stage | None) -> str:
    return "over" if stage is None else stage.name
