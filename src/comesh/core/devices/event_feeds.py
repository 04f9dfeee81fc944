"""Takes every event of a device once and delivers it to every listening routine (protocol, section 6).

Rules:
- an event is committed before it is acknowledged to the device. An event with a known token is acknowledged
  again and not taken, also if the device was removed and added again meanwhile;
- each listening routine gets, in order, what it has not confirmed, repeated until it has. Confirmations are
  known to this leader only: a new one sends all that the record holds, and routines recognise by their marks
  what they have;
- an event of a device in maintenance is acknowledged and reaches no routine. It is committed, so that it is
  no new event if it is repeated after the maintenance, and a deposed leader cannot acknowledge it;
- events that every listener confirmed leave the record with its next change, or after a while.
"""

from msgspec.structs import replace

from comesh.core.devices.cluster import Cluster
from comesh.core.effects import AcknowledgeEvent, Refused, Subscribe
from comesh.core.events import DeviceReported
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.orders.standing import maintained
from comesh.core.records import DeviceRecord, EventRecord
from comesh.core.step import Step
from comesh.core.values import Value
from comesh.core.work_messages import DeviceEvents, EventsSeen, SequencedEvent

SUBSCRIBE_EVERY_MS = 5000.0
"""Interval of subscriptions: one may be lost on its way, and a device forgets its own when it restarts."""
TRIM_AFTER_MS = 3000.0
"""Maximum time that seen events stay in a record before an entry of their own removes them."""
MAX_EVENTS = 64
"""Maximum events kept per device; then the oldest is dropped, and reported."""
MAX_TOKENS = 16
"""Maximum tokens kept per device: it must not have more unacknowledged events than this."""


class EventFeeds:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        program = self._serving.program
        self._listeners: dict[DeviceId, tuple[RoutineId, ...]] = {
            device: program.listeners.get(device, ())
            for device in cluster.devices
            if program.devices[device].event
        }
        self._seen: dict[tuple[DeviceId, RoutineId], int] = {}
        self._times: dict[DeviceId, int] = {}
        self._trimming: dict[DeviceId, None] = {}

    def begin(self, step: Step) -> None:
        self.subscribe(step)
        for device in self._listeners:
            self.send(device, step)

    def subscribe(self, step: Step) -> None:
        for device in self._listeners:
            step.do(Subscribe(device))
        if self._listeners:
            self._cluster.set_timer("subscribe", 0, SUBSCRIBE_EVERY_MS, step)

    def on_report(self, event: DeviceReported, token: str, step: Step) -> None:
        device = event.device
        record = self._cluster.find(device) if device in self._listeners else None
        if record is None:
            return
        known = self._is_known(record, token)
        if not known and maintained(self._serving, device) is not None:
            self._cluster.put(_with_token(record, token))
        elif not known:
            values = self._fit(device, event.readings)
            taken = EventRecord(record.sequence + 1, values, step.wall_ms)
            self._cluster.put(self._with_event(record, taken, token))
            self._times.pop(device, None)
            self.send(device, step)
        self._serving.do(AcknowledgeEvent(device, token))

    def _is_known(self, record: DeviceRecord, token: str) -> bool:
        return bool(record.sequence) and (token == record.token or token in record.tokens)

    def send(self, device: DeviceId, step: Step) -> None:
        """Send every listener what it has not confirmed, and check again later."""
        record = self._cluster.find(device)
        if record is None or not record.events:
            return
        waiting = False
        for routine in self._listeners.get(device, ()):
            seen = self._seen.get((device, routine), 0)
            events = tuple(
                SequencedEvent(event.sequence, event.values, event.at_ms)
                for event in record.events
                if event.sequence > seen
            )
            if events:
                waiting = True
                group = self._serving.program.group_of_routine[routine]
                self._serving.send(group, DeviceEvents(device, routine, events))
        if waiting:
            times = self._times.get(device, 0)
            self._times[device] = times + 1
            self._cluster.set_timer("events", device, self._cluster.resend_ms(times), step)
        else:
            self._trim_later(device, step)

    def on_seen(self, seen: EventsSeen, group: GroupId | None, step: Step) -> None:
        if seen.routine not in self._listeners.get(seen.device, ()):
            return
        key = (seen.device, seen.routine)
        self._seen[key] = max(seen.sequence, self._seen.get(key, 0))
        if group == self._serving.group:
            self.trim(seen.device)  # it joins the entry in which the routine confirms
        else:
            self._trim_later(seen.device, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        for device, listeners in self._listeners.items():
            if any(self._serving.program.group_of_routine[one] == group for one in listeners):
                self._times.pop(device, None)
                self.send(device, step)

    def trim(self, device: DeviceId) -> None:
        """Remove the events that every listener confirmed."""
        self._trimming.pop(device, None)
        record = self._cluster.find(device)
        if record is not None:
            events = self._unseen(record)
            if len(events) < len(record.events):
                self._cluster.put(replace(record, events=events))

    def _trim_later(self, device: DeviceId, step: Step) -> None:
        record = self._cluster.find(device)
        if record is None or device in self._trimming or len(self._unseen(record)) == len(record.events):
            return
        self._trimming[device] = None
        self._cluster.set_timer("trim", device, TRIM_AFTER_MS, step)

    def _with_event(self, record: DeviceRecord, taken: EventRecord, token: str) -> DeviceRecord:
        events = self._unseen(record)
        if self._listeners[record.device]:
            events = (*events, taken)
        if len(events) > MAX_EVENTS:
            events = events[1:]
            why = f"{record.device}: more than {MAX_EVENTS} events wait for a routine; the oldest is dropped"
            self._serving.tell(Refused(self._serving.surroundings.own, why))
        return replace(_with_token(record, token), events=events)

    def _unseen(self, record: DeviceRecord) -> tuple[EventRecord, ...]:
        device = record.device
        seen = min(
            (self._seen.get((device, routine), 0) for routine in self._listeners.get(device, ())),
            default=record.sequence,
        )
        return tuple(event for event in record.events if event.sequence > seen)

    def _fit(self, device: DeviceId, values: dict[str, Value]) -> dict[str, Value]:
        fit = self._serving.program.devices[device].fit
        return values if fit is None else fit(values)


def _with_token(record: DeviceRecord, token: str) -> DeviceRecord:
    """Returns the record with a new event's number and token."""
    tokens = (*record.tokens, record.token)[-MAX_TOKENS:] if record.sequence else ()
    return replace(record, sequence=record.sequence + 1, token=token, tokens=tokens)
