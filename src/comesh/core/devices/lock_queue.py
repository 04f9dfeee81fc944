"""The lock of one device: pure changes of its record (protocol, section 7).

The order of the queue:
- without `priority` runs the queue is first come, first served. Sequential runs ask in one global order, so
  they never wait for each other in a circle;
- *by age*: as soon as the deployment has a `priority` routine, every queue goes by (firing time, run), and
  every older waiter asks a younger holder to give back (`Wound`), whatever their strategies. Wounding only
  where one of the two is `priority` leaves circles: an old sequential run waits for a young one, that for a
  priority run of an age between, and that for the old one. By age everybody waits for older runs only, a run
  keeps its firing time over all attempts, and so each becomes the oldest in the end;
- a group that lost updates goes by age too: the places of a batch in its queues may be lost one by one, and
  then first come, first served can close a circle inside the group.

One run of a routine is live at a time, so a queue has at most one waiter per routine: of two, the older is
left over from a run that has ended.
"""

from collections.abc import Container

from msgspec.structs import replace

from comesh.core.actions import Origin
from comesh.core.ids import RoutineId
from comesh.core.records import Call, DeviceRecord, Hold, ReleaseMark, Waiter
from comesh.core.stamps import Fence, RunId, Stamp
from comesh.core.strategies import Strategy

MAX_REMOVED_MARKS = 64
"""Maximum release marks kept per device for routines that the deployment no longer has."""

Age = tuple[float, RunId]


def age(of: Hold | Waiter) -> Age:
    """Returns the sort key of a run: lower is older."""
    return (of.fired_ms, of.run)


def marks(record: DeviceRecord, run: RunId, attempt: int) -> bool:
    """True if this attempt was released already."""
    mark = record.released.get(run.routine)
    return mark is not None and mark >= ReleaseMark(run, attempt)


def waiter_of(record: DeviceRecord, routine: RoutineId) -> Waiter | None:
    for waiter in record.queue:
        if waiter.run.routine == routine:
            return waiter
    return None


def enqueued(record: DeviceRecord, new: Waiter, *, by_age: bool) -> DeviceRecord:
    """Returns the queue with this request, in place of an older one of its routine or at its own place."""
    old = waiter_of(record, new.run.routine)
    if old is None:
        queue = (*record.queue, new)
    else:
        queue = tuple(new if waiter is old else waiter for waiter in record.queue)
    if by_age or any(waiter.strategy is Strategy.PRIORITY for waiter in queue):
        queue = tuple(sorted(queue, key=age))
    return replace(record, queue=queue)


def is_quiet(record: DeviceRecord) -> bool:
    """True if no command of a former holder may still land."""
    return all(call.landed for call in record.calls)


def granted_next(record: DeviceRecord, stamp: Stamp) -> DeviceRecord:
    """Returns the record with the lock granted to the first in the queue."""
    first = record.queue[0]
    hold = Hold(
        first.run, first.attempt, first.strategy, first.fired_ms, stamp, fence=first.fence, home=first.home
    )
    return replace(record, hold=hold, queue=record.queue[1:], calls=())


def renewed(record: DeviceRecord, hold: Hold, waiter: Waiter, stamp: Stamp) -> DeviceRecord:
    """Returns the record with the hold taken over by the holder's newer attempt."""
    fence = highest(hold.fence, waiter.fence)
    hold = replace(hold, attempt=waiter.attempt, stamp=stamp, fence=fence, home=waiter.home or hold.home)
    queue = tuple(other for other in record.queue if other.run != waiter.run)
    return replace(record, hold=hold, queue=queue)


def highest(one: Fence | None, other: Fence | None) -> Fence | None:
    if one is None or other is None:
        return one or other
    return max(one, other)


def released(
    record: DeviceRecord, run: RunId, attempt: int, left: tuple[Call, ...], known: Container[RoutineId]
) -> DeviceRecord:
    """Returns the record without this run's hold and request, for attempts up to this one. left: its calls
    that may land."""
    hold = record.hold
    if hold is not None and _is_of(hold, run, attempt):
        hold = None
    queue = tuple(one for one in record.queue if not _is_of(one, run, attempt))
    calls = tuple(call for call in record.calls if not _is_of(call.origin, run, attempt) or call in left)
    result = replace(record, hold=hold, queue=queue, calls=calls)
    return result if marks(record, run, attempt) else _marked(result, run, attempt, known)


def _is_of(one: Hold | Waiter | Origin, run: RunId, attempt: int) -> bool:
    """True for this run, unless it is a later attempt of it."""
    return one.run == run and one.attempt <= attempt


def _marked(record: DeviceRecord, run: RunId, attempt: int, known: Container[RoutineId]) -> DeviceRecord:
    kept = {routine: mark for routine, mark in record.released.items() if routine != run.routine}
    removed = [routine for routine in kept if routine not in known]
    for routine in removed[: max(0, len(removed) - MAX_REMOVED_MARKS)]:
        del kept[routine]
    kept[run.routine] = ReleaseMark(run, attempt)
    return replace(record, released=kept)


def to_wound(record: DeviceRecord, *, by_age: bool) -> bool:
    """True if the holder must give back, because an older run waits for it."""
    hold = record.hold
    if hold is None:
        return False
    return any(
        age(waiter) < age(hold) and (by_age or Strategy.PRIORITY in (waiter.strategy, hold.strategy))
        for waiter in record.queue
    )
