"""Keeps recent observations, so that a violation comes with a short history that a person can read.

Noting costs one append; lines are only made when something broke.
"""

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from comesh.core.effects import Committed, LeaderChanged
from comesh.core.group.config import Config
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.records import (
    AuditRecord,
    DeviceRecord,
    DocumentRecord,
    Gone,
    GroupRecord,
    HandoffRecord,
    Record,
    RoutineRecord,
    RunRecord,
    Standing,
    VersionRecord,
)
from comesh.core.stamps import RunId
from comesh.drivers.virtual.devices import Acted

NOTES: Final = 20_000
"""Maximum observations kept: some minutes of a large mesh."""
LINES: Final = 40
"""Maximum lines of a history; the last ones are kept."""
LINE_CHARS: Final = 240

Note = Committed | LeaderChanged | Acted
"""An observation. An act needs no wrapper: it has its own time and sender."""


class Chronicle:
    def __init__(self) -> None:
        self._notes: deque[tuple[float, NodeId, Note]] = deque(maxlen=NOTES)

    def note(self, at_ms: float, node: NodeId, note: Note) -> None:
        self._notes.append((at_ms, node, note))

    def tell(
        self,
        group: GroupId | None,
        runs: Collection[RunId],
        devices: Collection[DeviceId],
        *,
        entries: bool = True,
    ) -> tuple[str, ...]:
        """Returns the history of a group (its leaders, and its entries if wanted), of runs, and of devices.
        Devices alone bring every run that touched them; with runs, only what concerns those."""
        lines: deque[str] = deque(maxlen=LINES)
        last: dict[str, str] = {}
        for at_ms, node, note in self._notes:
            if not entries and group is not None and isinstance(note, Committed):
                continue
            for key, text in _texts(note, group, runs, devices):
                if last.get(key) != text:
                    last[key] = text
                    lines.append(f"{at_ms / 1000:.3f} s {node} {text}"[:LINE_CHARS])
        return tuple(lines)


def _texts(
    note: Note, group: GroupId | None, runs: Collection[RunId], devices: Collection[DeviceId]
) -> Iterator[tuple[str, str]]:
    """Returns the lines of a note, each with its subject, so that repeated lines can be left out."""
    match note:
        case LeaderChanged():
            if note.group == group:
                text = f"{_claim(note)} is {note.state} at {note.number} ({note.digest:x})"
                yield "", f"{text}: {note.why}" if note.why else text
        case Acted():
            if note.device in devices and (not runs or note.run in runs):
                yield "", _act(note)
        case Committed():
            whole = note.group == group and not runs and not devices
            shown = [(one.key, _record(one)) for one in note.entry if whole or _concerns(one, runs, devices)]
            if whole:
                content = "; ".join(text for _, text in shown)
                yield "", f"{_claim(note)} committed {note.number} ({note.digest:x}): {content}"
            else:
                for key, text in shown:
                    yield key, f"{note.group} committed: {text}"


def _claim(note: LeaderChanged | Committed) -> str:
    return f"{note.group} config {note.config.number} ballot {note.ballot}"


def _concerns(record: Record, runs: Collection[RunId], devices: Collection[DeviceId]) -> bool:
    match record:
        case RunRecord():
            return record.run in runs
        case DeviceRecord():
            if record.device not in devices:
                return False
            waiting = any(waiter.run in runs for waiter in record.queue)
            return not runs or record.hold is None or record.hold.run in runs or waiting
        case RoutineRecord():
            ended = record.ended is not None and record.ended.run in runs
            return ended or any(firing.run in runs for firing in record.waiting)
        case Standing():
            return record.of in devices or record.run in runs or any(record.of == run.routine for run in runs)
        case Gone():
            return any(record.gone == "run/" + run.routine for run in runs)
        case _:
            return False


def _record(record: Record) -> str:
    match record:
        case RunRecord():
            held = ", ".join(one.device for one in record.held)
            return f"run {record.run} {record.stage.name} attempt {record.attempt}, holds {held or 'nothing'}"
        case DeviceRecord():
            hold = record.hold
            held = "free" if hold is None else f"held by {hold.run} attempt {hold.attempt}"
            queue = ", ".join(str(waiter.run) for waiter in record.queue)
            calls = ", ".join(
                f"{call.origin.run} step {call.origin.step} {call.outcome or 'open'}" for call in record.calls
            )
            return f"{record.device} {held}, waiting: {queue or 'nobody'}, calls: {calls or 'none'}"
        case RoutineRecord():
            ended = "nothing"
            if record.ended is not None:
                ended = f"{record.ended.run} ({record.ended.reason or 'finished'})"
            waiting = ", ".join(str(firing.run) for firing in record.waiting)
            return f"routine {record.routine}: last ended {ended}, waiting: {waiting or 'nothing'}"
        case HandoffRecord():
            return f"handoff to {name_of(record.successor)}"
        case GroupRecord():
            return f"era {record.era.config}:{record.era.ballot}"
        case DocumentRecord() | VersionRecord():
            return f"deployment version {record.version}"
        case Standing():
            return f"{record.kind} {record.of or 'all'}, by {record.by}"
        case AuditRecord():
            return f"{record.by}: {record.what}"
        case Gone():
            return f"{record.gone} is gone"


def _act(row: Acted) -> str:
    outcome = f"refused: {row.refused}" if row.refused is not None else "acted"
    command, origin = row.command, row.command.origin
    sent = f"sent {command.sent_ms / 1000:.3f} s by {command.by}"
    of = "no run" if origin is None else f"{origin.run} step {origin.step}"
    return f"{row.device} {outcome}: {command.action.command} of {of}, {sent}"


def name_of(config: Config) -> str:
    return f"{config.group} config {config.number} ({', '.join(config.nodes)})"
