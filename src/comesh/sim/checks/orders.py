"""Checks that people's orders are kept, by the committed history.

- No run of a paused routine begins, or executes after the entry that paused it; nor does it command a device
  of its own group after that entry (`paused.py` judges what it sends to others).
- No routine's command to a device in maintenance is let go: its intent is never committed as open.
- A request is carried out once in its group, as long as the audit log remembers it.
"""

from comesh.core.ids import GroupId
from comesh.core.orders.standing import ALL, is_by_hand
from comesh.core.records import (
    AuditRecord,
    DeviceRecord,
    Kind,
    Record,
    RunRecord,
    Stage,
    Standing,
    standing_key,
)
from comesh.core.stamps import RunId
from comesh.sim.checks.history import Change, State
from comesh.sim.checks.violation import Promise, Verdicts

Changed = tuple[Record | None, DeviceRecord]
"""The record of a device before and after an entry."""


class Orders:
    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts

    def on_entry(self, at_ms: float, group: GroupId, changes: list[Change], state: State) -> None:
        now = {after.key for _, _, after in changes if isinstance(after, Standing)}
        for _, before, after in changes:
            match after:
                case RunRecord():
                    self._on_run(at_ms, before, after, state, now)
                case DeviceRecord():
                    self._on_device(at_ms, before, after, state)
                    self._on_intents(at_ms, group, (before, after), state, now)
                case AuditRecord():
                    self._on_audit(at_ms, group, after, state)
                case Standing(kind=Kind.PAUSED):
                    self._on_paused(at_ms, after, state, _begun_by_hand(changes))
                case _:
                    pass

    def on_state(
        self, at_ms: float, group: GroupId, records: dict[str, Record], *, lossy: bool
    ) -> list[RunId]:
        """After a loss, the lost requests may be carried out again."""
        return []

    def _on_run(
        self, at_ms: float, before: Record | None, run: RunRecord, state: State, now: set[str]
    ) -> None:
        """Check the runs of an entry. now: orders of the same entry. A run that began just before one, and
        ends with it, is correct."""
        begins = not isinstance(before, RunRecord) or before.run != run.run
        if is_by_hand(run.run) or not (begins or run.stage is Stage.EXECUTING):
            return
        for of in (ALL, run.run.routine):
            order = state.records.get(standing_key(Kind.PAUSED, of))
            ends_at_once = run.stage is Stage.RELEASING_LOCKS
            if isinstance(order, Standing) and not (ends_at_once and order.key in now):
                what = f"{run.run} goes on, but its routine was paused by {order.by}"
                self._verdicts.broken(Promise.ORDERS, at_ms, what, runs=(run.run,))

    def _on_paused(self, at_ms: float, order: Standing, state: State, begun: set[RunId]) -> None:
        """Check that a pause ends the runs that it finds; it prevents no later ones by hand. begun: runs that
        were begun by hand in this entry."""
        for record in state.records.values():
            if (
                isinstance(record, RunRecord)
                and record.run not in begun
                and record.stage is not Stage.RELEASING_LOCKS
                and order.of in (ALL, record.run.routine)
            ):
                what = f"{record.run} goes on past the pause by {order.by}"
                self._verdicts.broken(Promise.ORDERS, at_ms, what, runs=(record.run,))

    def _on_device(self, at_ms: float, before: Record | None, device: DeviceRecord, state: State) -> None:
        if standing_key(Kind.MAINTAINED, device.device) in state.records:
            for run in _commanding(before, device):
                what = f"{run} commands {device.device}, which is in maintenance"
                self._verdicts.broken(Promise.ORDERS, at_ms, what, runs=(run,), devices=(device.device,))

    def _on_intents(
        self, at_ms: float, group: GroupId, changed: Changed, state: State, now: set[str]
    ) -> None:
        """Check intents. now: orders of the same entry; a command may have come before them."""
        before, device = changed
        hold = device.hold
        for run in _commanding(before, device):
            if hold is None or hold.run != run or hold.home not in (None, group):
                continue
            for of in (ALL, run.routine):
                order = state.records.get(standing_key(Kind.PAUSED, of))
                if isinstance(order, Standing) and order.key not in now:
                    what = f"{run} commands {device.device}, but its routine was paused by {order.by}"
                    self._verdicts.broken(Promise.ORDERS, at_ms, what, runs=(run,), devices=(device.device,))

    def _on_audit(self, at_ms: float, group: GroupId, entry: AuditRecord, state: State) -> None:
        for other in state.records.values():
            if isinstance(other, AuditRecord) and other != entry and other.request == entry.request:
                what = f"{entry.request!r} of {entry.by} was carried out twice: {entry.what}"
                self._verdicts.broken(Promise.ORDERS, at_ms, what, group=group)


def _commanding(before: Record | None, device: DeviceRecord) -> list[RunId]:
    """Returns the runs of routines for which an entry opens a new command."""
    known = before.calls if isinstance(before, DeviceRecord) else ()
    old = {call.origin for call in known}
    return [
        call.origin.run
        for call in device.calls
        if call.origin not in old and call.outcome is None and not is_by_hand(call.origin.run)
    ]


def _begun_by_hand(changes: list[Change]) -> set[RunId]:
    return {
        after.run
        for _, before, after in changes
        if isinstance(after, RunRecord)
        and is_by_hand(after.run)
        and not (isinstance(before, RunRecord) and before.run == after.run)
    }
