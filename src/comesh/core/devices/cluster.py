"""Shared state of this part: the records of the group's devices, and how to repeat.

Rules:
- a device without a record reads as one that was never settled in a later era, for its record may be lost;
- the record of a device that the deployment no longer has is dropped when nothing of it is open. For an event
  device, its number and tokens stay: if it is added again, it counts on, and earlier events are known. For
  everything else it does not exist.
"""

from comesh.core.devices.lock_queue import is_quiet
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.records import DeviceRecord, Hold, Waiter, device_key
from comesh.core.step import Step

PART = "devices"


class Cluster:
    """The devices of one group, as its leader sees them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.devices = serving.program.devices_of(serving.group)
        self._keys = {device: device_key(device) for device in self.devices}
        """Record keys of the devices at this deployment version."""
        self._sure = serving.program.version == serving.config.version
        """False if the leader lacks the document of its config, and so does not know which devices were
        removed."""
        self.occupied: dict[DeviceId, None] = {}
        """Devices with a hold, a waiter or a call that may still land."""
        for record in self.records():
            self._count(record)

    @property
    def is_in_flight(self) -> bool:
        """True if a command is under way, or may still land."""
        found = (self.find(device) for device in self.occupied)
        return any(record is not None and not is_quiet(record) for record in found)

    def knows(self, device: DeviceId) -> bool:
        """True if the group has this device at this deployment version."""
        return device in self._keys

    def records(self) -> list[DeviceRecord]:
        return sorted(self.serving.all(DeviceRecord), key=lambda record: record.device)

    def find(self, device: DeviceId) -> DeviceRecord | None:
        """Returns the device's record, an empty one if there is none yet; None: the device is not of this
        group."""
        key = self._keys.get(device)
        if key is not None:
            return self.serving.get(key, DeviceRecord) or DeviceRecord(device)
        return None if self._is_removed(device) else self.serving.get(device_key(device), DeviceRecord)

    def put(self, record: DeviceRecord) -> None:
        self._count(record)
        if record.device not in self._keys and self._is_removed(record.device):
            self._forget(record)
        else:
            self.serving.put(record)

    def forget_removed(self) -> None:
        """Forget removed devices of which nothing is open."""
        for record in self.records():
            if self._is_removed(record.device):
                self._forget(record)

    def is_settled(self, record: DeviceRecord) -> bool:
        return record.settled >= self.serving.era

    def home(self, of: Hold | Waiter) -> GroupId | None:
        """Returns the group to ask about a run; None: nobody knows any more."""
        return of.home or self.home_of(of.run.routine)

    def home_of(self, routine: RoutineId) -> GroupId | None:
        return self.serving.program.group_of_routine.get(routine)

    def fences(self, device: DeviceId) -> bool:
        program = self.serving.program.devices.get(device)
        return program is not None and program.fences

    def flight_ms(self, device: DeviceId) -> float:
        program = self.serving.program.devices.get(device)
        flight_ms = None if program is None else program.flight_ms
        return self.serving.settings.flight_limit_ms if flight_ms is None else flight_ms

    def set_timer(self, what: str, of: str | int, after_ms: float, step: Step) -> None:
        self.serving.set_timer(PART, what, of, max(0.0, after_ms), step)

    def cancel_timer(self, what: str, of: str | int, step: Step) -> None:
        self.serving.cancel_timer(PART, what, of, step)

    def resend_ms(self, times: int) -> float:
        """Returns the time until the next repetition: it doubles each time up to a maximum, plus up to a
        fifth so that many do not repeat at once."""
        settings = self.serving.settings
        usual_ms = settings.request_resend_ms * 2.0 ** min(times, 30)
        return min(usual_ms, settings.max_request_resend_ms) * self.serving.draws.between(1.0, 1.2)

    def _is_removed(self, device: DeviceId) -> bool:
        """True if the deployment has removed the device and nothing of it is open."""
        return self._sure and device not in self._keys and device not in self.occupied

    def _forget(self, record: DeviceRecord) -> None:
        """Forget all but its events: the device repeats those that were not acknowledged, also much later."""
        left = DeviceRecord(record.device, sequence=record.sequence, token=record.token, tokens=record.tokens)
        if not record.sequence:
            self.serving.drop(record.key)
        elif left != self.serving.get(record.key, DeviceRecord):
            self.serving.put(left)

    def _count(self, record: DeviceRecord) -> None:
        if record.hold is not None or record.queue or not is_quiet(record):
            self.occupied[record.device] = None
        else:
            self.occupied.pop(record.device, None)
