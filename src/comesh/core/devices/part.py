"""`Devices`: routes events of a serving group's devices to the module concerned."""

from typing import assert_never

from comesh.core.devices.calls import Calls
from comesh.core.devices.cluster import Cluster
from comesh.core.devices.event_feeds import EventFeeds
from comesh.core.devices.readings import Readings
from comesh.core.devices.reconciliation import Reconciliation
from comesh.core.devices.sensed import Sensed
from comesh.core.devices.sensing import Sensing
from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.work_messages import (
    Command,
    EventsSeen,
    FenceAsked,
    GroupMessage,
    LockRequest,
    Release,
    RunState,
    Seen,
    ToDevices,
    Watch,
)


class Devices:
    """Looks after the devices of a group as long as one leadership lasts."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._cluster = Cluster(serving)
        self._readings = Readings(self._cluster)
        self._sensing = Sensing(self._cluster, self._readings)
        self._feeds = EventFeeds(self._cluster)
        self._calls = Calls(self._cluster)
        self._locks = self._calls.locks
        self._reconciliation = Reconciliation(self._cluster, self._calls, self._sensing)

    @property
    def busy(self) -> bool:
        return bool(self._cluster.occupied)

    @property
    def in_flight(self) -> bool:
        return self._cluster.is_in_flight

    def sensed(self, device: DeviceId) -> Sensed | None:
        """Returns the current state of a device, for people."""
        return self._sensing.get(device)

    def has(self, device: DeviceId) -> bool:
        return self._cluster.knows(device)

    def holder(self, device: DeviceId) -> RunId | None:
        record = self._cluster.find(device)
        return None if record is None or record.hold is None else record.hold.run

    def break_lock(self, device: DeviceId, step: Step) -> None:
        """Carry out a standing order to break a lock."""
        self._locks.break_hold(device, step)
        self._locks.tell_grants()

    def restore(self, device: DeviceId, step: Step) -> None:
        """End a device's maintenance: routines hear its current state."""
        self._sensing.tell(device, step)

    def begin(self, step: Step) -> None:
        self._cluster.forget_removed()
        self._calls.begin(step)
        self._reconciliation.begin(step)
        self._sensing.begin(step)
        self._feeds.begin(step)
        self._locks.tell_grants()

    def on_message(self, message: GroupMessage, sender: NodeId, step: Step) -> None:
        body = message.body
        if isinstance(body, ToDevices):
            self._on_body(body, message, sender, step)
            self._locks.tell_grants()

    def _on_body(self, body: ToDevices, message: GroupMessage, sender: NodeId, step: Step) -> None:
        match body:
            case LockRequest():
                self._locks.on_request(body, message, sender, step)
            case Release():
                self._locks.on_release(body, message, sender, step)
            case FenceAsked():
                self._calls.on_fence(body, message, sender)
            case Command():
                self._calls.on_command(body, message, sender, step)
            case Watch():
                self._on_watch(body, message, sender)
            case Seen():
                self._readings.on_seen(body, message, step)
            case EventsSeen():
                self._feeds.on_seen(body, message.sender, step)
            case RunState():
                if body.era is None:
                    self._locks.on_run_state(body, step)
                else:
                    self._reconciliation.on_run_state(body, step)
            case _:
                assert_never(body)

    def _on_watch(self, watch: Watch, message: GroupMessage, sender: NodeId) -> None:
        for device in watch.devices:
            sensed = self._sensing.get(device)
            if sensed is not None:
                self._readings.on_watch(sensed, message, sender)

    def on_timer(self, what: str, of: str | int, step: Step) -> None:
        if what == "monitor":
            self._sensing.on_tick(step)
            return
        name = str(of)
        match what:
            case "tell":
                self._readings.on_timer(GroupId(name), step)
            case "subscribe":
                self._feeds.subscribe(step)
            case "events":
                self._feeds.send(DeviceId(name), step)
            case "trim":
                self._feeds.trim(DeviceId(name))
            case "call":
                self._calls.look(DeviceId(name), step)
            case "wound":
                self._locks.on_wound_timer(DeviceId(name), step)
            case "stale":
                self._locks.on_stale_timer(DeviceId(name), step)
            case "reconcile":
                self._reconciliation.ask(step)
            case "clear":
                self._reconciliation.settle(DeviceId(name), step)
            case _:
                raise ValueError(f"no timer of devices is called {what!r}")
        self._locks.tell_grants()

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        if not self._calls.is_ours(event.call):
            self._sensing.on_answer(event, step)
            return
        sensed = self._sensing.get(event.device)
        fitted = event.readings if sensed is None or sensed.fit is None else sensed.fit(event.readings)
        if event.error is None:
            self._sensing.on_spoken(event.device, event.readings, step)
        self._calls.on_answer(event, fitted, step)
        self._locks.tell_grants()

    def on_report(self, event: DeviceReported, step: Step) -> None:
        if event.token is None:
            self._sensing.on_spoken(event.device, event.readings, step)
        else:
            self._feeds.on_report(event, event.token, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        self._readings.on_reached(group, step)
        self._feeds.on_reached(group, step)
        self._locks.on_reached(group, step)
        self._reconciliation.on_reached(group, step)
