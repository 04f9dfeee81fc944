"""Reads the devices and finds out which of them are up (protocol, section 6).

Rules:
- each device is read once per monitoring period; the reads of a group are spread over its ticks. When serving
  begins, devices that routines wait for are also read at once: nobody has read them since the last leader.
  So many reads may delay some: a device without an answer is not suspected before its regular turn;
- no answer within two estimated round trips: suspect, one probe through another member (or, where there is
  none, one more read); no answer to that within the same time: down. Any answer: up. Both are committed and
  gossiped;
- a changed reading, or status, of a watched device gets a new version and goes to its watchers. The first
  answer after serving began counts as a change, because the last leader may not have sent it;
- an unchanged answer costs a few comparisons: it is the most frequent case in a mesh.
"""

from msgspec.structs import replace

from comesh.core.devices.cluster import Cluster
from comesh.core.devices.readings import Readings
from comesh.core.devices.sensed import NEVER_MS, Sensed
from comesh.core.effects import DeviceChanged, ReadDevice
from comesh.core.events import DeviceAnswered
from comesh.core.ids import DeviceId, GroupId
from comesh.core.records import Status
from comesh.core.step import Step
from comesh.core.values import Value

TICKS = 10
"""Ticks per monitoring period."""
PROBE_CALL = -1
"""Call number of an answer to a probe through another member."""


class Sensing:
    def __init__(self, cluster: Cluster, readings: Readings) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        self._readings = readings
        self._tick = 0
        settings = self._serving.settings
        self._tick_ms = settings.monitoring_ms / TICKS
        self._sensed: dict[DeviceId, Sensed] = {}
        program = self._serving.program
        for device in cluster.devices:
            groups: dict[GroupId, None] = {}
            for routine in program.watchers.get(device, ()):
                groups[program.group_of_routine[routine]] = None
            self._sensed[device] = Sensed(program.devices[device], tuple(groups))
        self._slots = [list(self._sensed.values())[slot::TICKS] for slot in range(TICKS)]

    def begin(self, step: Step) -> None:
        if not self._sensed:
            return
        for sensed in self._sensed.values():
            record = self._cluster.find(sensed.device)
            if record is not None and record.status is Status.DOWN:
                self._readings.change(sensed, step)
        self.on_tick(step)
        for slot in self._slots[1:]:
            for sensed in slot:
                if sensed.watchers:
                    self._ask(sensed, step)

    def get(self, device: DeviceId) -> Sensed | None:
        return self._sensed.get(device)

    def tell(self, device: DeviceId, step: Step) -> None:
        """Send a device's current state to routines again, if it is known."""
        sensed = self._sensed.get(device)
        if sensed is not None and (sensed.up or self._is_down(sensed)):
            self._readings.change(sensed, step)

    # -- time --------------------------------------------------------------------------------------------

    def on_tick(self, step: Step) -> None:
        now_ms = step.now_ms
        for sensed in self._sensed.values():
            if sensed.due_ms <= now_ms:
                self._overdue(sensed, "no answer", step)
        for sensed in self._slots[self._tick % TICKS]:
            self._read(sensed, step)
        self._tick += 1
        self._cluster.set_timer("monitor", 0, self._tick_ms, step)

    def _read(self, sensed: Sensed, step: Step) -> None:
        if sensed.due_ms == NEVER_MS and not self._is_down(sensed):
            sensed.due_ms = step.now_ms + self._bound_ms(sensed)
        self._ask(sensed, step)

    def _ask(self, sensed: Sensed, step: Step) -> None:
        call = self._serving.next_call()
        sensed.asked(call, step.now_ms)
        step.do(ReadDevice(sensed.device, call))

    def _bound_ms(self, sensed: Sensed) -> float:
        settings = self._serving.settings
        if not settings.estimated_timeouts:
            return settings.monitoring_ms
        return max(2 * self._tick_ms, 2 * sensed.estimate_ms(settings.usual_round_trip_ms))

    def _overdue(self, sensed: Sensed, why: str, step: Step) -> None:
        if sensed.probing:
            self._become_down(sensed, why, step)
            return
        sensed.probing = True
        sensed.due_ms = step.now_ms + self._bound_ms(sensed)
        if not self._serving.surroundings.probe(self._serving, sensed.device, step):
            self._read(sensed, step)

    # -- answers -----------------------------------------------------------------------------------------

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        sensed = self._sensed.get(event.device)
        if sensed is None or (event.call == PROBE_CALL and not sensed.probing):
            return
        asked_ms = sensed.calls.pop(event.call, None)
        if event.error is not None:
            self._on_error(sensed, event, step)
            return
        if asked_ms is not None:
            sensed.sample(step.now_ms - asked_ms)
        if event.call >= 0:
            if event.call < sensed.answered:
                return
            sensed.answered = event.call
        self._take(sensed, event.readings, step)

    def on_spoken(self, device: DeviceId, readings: dict[str, Value], step: Step) -> None:
        """Handle readings that came with a report or with the answer to a command."""
        sensed = self._sensed.get(device)
        if sensed is not None and readings:
            sensed.overtake()
            self._take(sensed, readings, step)

    def _take(self, sensed: Sensed, answer: dict[str, Value], step: Step) -> None:
        sensed.due_ms = NEVER_MS
        sensed.probing = False
        readings = answer if sensed.fit is None else sensed.fit(answer)
        if sensed.up and readings == sensed.readings:
            return
        sensed.readings = readings
        if not sensed.up:
            self._become_up(sensed)
        self._readings.change(sensed, step)

    def _on_error(self, sensed: Sensed, event: DeviceAnswered, step: Step) -> None:
        """Handle an error of the driver, not of the device: it counts as no answer."""
        if sensed.due_ms == NEVER_MS or 0 <= event.call < sensed.answered:
            return
        if sensed.probing == (event.call == PROBE_CALL):
            self._overdue(sensed, event.error or "", step)

    # -- status ------------------------------------------------------------------------------------------

    def _is_down(self, sensed: Sensed) -> bool:
        record = self._cluster.find(sensed.device)
        return record is not None and record.status is Status.DOWN

    def _become_up(self, sensed: Sensed) -> None:
        sensed.up = True
        self._commit(sensed.device, Status.UP, "it answers")

    def _become_down(self, sensed: Sensed, why: str, step: Step) -> None:
        sensed.due_ms = NEVER_MS
        sensed.probing = False
        sensed.up = False
        sensed.readings = None
        self._commit(sensed.device, Status.DOWN, why)
        self._readings.change(sensed, step)

    def _commit(self, device: DeviceId, status: Status, why: str) -> None:
        record = self._cluster.find(device)
        if record is None or record.status is status:
            return
        version = record.status_version + 1
        self._cluster.put(replace(record, status=status, status_version=version))
        self._serving.tell(DeviceChanged(device, str(status), why))
        if status is Status.UP and record.status is Status.UNKNOWN:
            return  # nobody was told that it is down: a starting mesh need not gossip every device
        self.gossip(device, version, status)

    def gossip(self, device: DeviceId, version: int, status: Status) -> None:
        post = self._serving.surroundings.post_announcement
        value = str(status).encode()
        self._serving.then(lambda step: post(f"device/{device}", version, value, step))
