"""The current readings of the devices that clauses name, as far as this leader knows them.

Readings are not committed: a new leader asks for them with `Watch` until it has a first one of each device.
The first one counts only as an answer to `Watch`. One that was sent to an earlier leader and comes late may
be older than what that leader has evaluated, and an edge would fire twice; it is not confirmed, so its sender
repeats it as an answer. From then on the latest version of each counts, and each is confirmed with `Seen`.
"""

from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.program import ReadingName
from comesh.core.routines.pending_requests import PendingRequest, PendingRequests
from comesh.core.step import Step
from comesh.core.values import Value
from comesh.core.work_messages import GroupMessage, Reading, Seen, Watch

WATCHING = ""
"""Owner of the requests that watch devices: no routine has an empty id."""


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
        """Take a reading. True: it is new."""
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
        """Returns a reading; None: it is missing, or its device is down. `up` is known as soon as anything
        is."""
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
