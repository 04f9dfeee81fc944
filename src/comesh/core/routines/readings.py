"""What the devices that clauses name read now, as far as this leader was told.

Readings are not committed: a new leader asks for them with `Watch` until each device had its first one. The
first one of a device counts only as an answer to that: what was told to an earlier leader, and comes late,
may be older than what that one has evaluated, and an edge would come twice. It is not answered, so that its
sender tells it again, then as an answer. From then on the latest version of each counts; every one is
answered with `Seen`, so that its sender stops.
"""

from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.program import ReadingName
from comesh.core.routines.pending_requests import PendingRequest, PendingRequests
from comesh.core.step import Step
from comesh.core.values import Value
from comesh.core.work_messages import GroupMessage, Reading, Seen, Watch

WATCHING = ""
"""The owner of pending requests that watch: no routine has an empty id."""


class Readings:
    def __init__(
        self, serving: Serving, pending_requests: PendingRequests, devices: tuple[DeviceId, ...]
    ) -> None:
        self._serving = serving
        self._pending_requests = pending_requests
        self._devices = devices
        self._latest: dict[DeviceId, Reading] = {}

    def begin(self, step: Step) -> None:
        self._watch(step)

    def on_reading(self, message: GroupMessage, body: Reading, sender: NodeId, step: Step) -> bool:
        """True: it says something new."""
        known = self._latest.get(body.device)
        is_watched = body.device in self._devices
        if is_watched and known is None and body.watched != self._serving.fence:
            return False
        self._serving.answer(message, sender, Seen(body.device, body.version))
        if not is_watched or (known is not None and body.version <= known.version):
            return False
        self._latest[body.device] = body
        if known is None:
            self._watch(step)
            return True
        return (known.values, known.up) != (body.values, body.up)

    def value(self, name: ReadingName) -> Value | None:
        """None: it is missing, or its device is down. `up` is known as soon as anything is."""
        device, reading = name
        known = self._latest.get(DeviceId(device))
        if known is None:
            return None
        if reading == "up":
            return known.up
        return known.values.get(reading) if known.up and known.values is not None else None

    def _watch(self, step: Step) -> None:
        lacking: dict[GroupId, list[DeviceId]] = {}
        for device in self._devices:
            group = self._serving.program.group_of_device.get(device)
            if device not in self._latest and group is not None:
                lacking.setdefault(group, []).append(device)
        wanted = [
            PendingRequest(("watch", group, 0), group, Watch(tuple(devices)))
            for group, devices in sorted(lacking.items())
        ]
        self._pending_requests.keep(WATCHING, wanted, step)
