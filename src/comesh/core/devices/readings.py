"""Sends the latest readings of each watched device to the groups whose clauses read it, until confirmed.

A reading that changes before it was confirmed or sent is replaced. The own group is sent each once: that
message cannot be lost. A device that has not answered since serving began has no readings: a `Watch` is left
unanswered and repeated, rather than answered with "down". While a device is in maintenance nothing is sent:
routines keep their last readings.
"""

from comesh.core.devices.cluster import Cluster
from comesh.core.devices.sensed import Sensed
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.orders.standing import maintained
from comesh.core.stamps import Fence, Stamp
from comesh.core.step import Step
from comesh.core.work_messages import GroupMessage, Reading, Seen


class _Unseen:
    """Readings that one group has not confirmed."""

    __slots__ = ("sensed", "times")

    def __init__(self) -> None:
        self.sensed: dict[DeviceId, Sensed] = {}
        self.times = 0


class Readings:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        self._unseen: dict[GroupId, _Unseen] = {}
        self._asked: dict[tuple[DeviceId, GroupId], Fence] = {}
        """Leaders of routines that asked and have confirmed nothing since. The next reading for their group
        answers them, also if there was no reading yet when they asked."""

    def change(self, sensed: Sensed, step: Step) -> None:
        """Record that readings or status have changed."""
        if maintained(self._serving, sensed.device) is not None:
            return
        sensed.version = version = self._serving.stamp()
        for group in sensed.watchers:
            reading = self._reading(sensed, version, group)
            self._serving.send(group, reading, still=lambda: sensed.version == version)
            if group != self._serving.group:
                unseen = self._unseen.setdefault(group, _Unseen())
                if not unseen.sensed:
                    unseen.times = 0
                    self._cluster.set_timer("tell", group, self._cluster.resend_ms(0), step)
                unseen.sensed[sensed.device] = sensed

    def on_watch(self, sensed: Sensed, message: GroupMessage, sender: NodeId) -> None:
        group = message.sender
        if group is not None and message.by is not None:
            before = self._asked.get((sensed.device, group), message.by)
            self._asked[sensed.device, group] = max(before, message.by)
        if sensed.version is not None and maintained(self._serving, sensed.device) is None:
            self._serving.answer(message, sender, self._reading(sensed, sensed.version, group))

    def on_seen(self, seen: Seen, message: GroupMessage, step: Step) -> None:
        group = message.sender
        if group is not None and self._asked.get((seen.device, group)) == message.by:
            self._asked.pop((seen.device, group), None)
        unseen = None if group is None else self._unseen.get(group)
        if unseen is None or group is None:
            return
        sensed = unseen.sensed.get(seen.device)
        if sensed is None or sensed.version is None or seen.version < sensed.version:
            return
        del unseen.sensed[seen.device]
        if not unseen.sensed:
            self._cluster.cancel_timer("tell", group, step)

    def on_timer(self, group: GroupId, step: Step) -> None:
        unseen = self._unseen.get(group)
        if unseen is None or not unseen.sensed:
            return
        for sensed in unseen.sensed.values():
            if sensed.version is not None and maintained(self._serving, sensed.device) is None:
                self._serving.send(group, self._reading(sensed, sensed.version, group))
        unseen.times += 1
        self._cluster.set_timer("tell", group, self._cluster.resend_ms(unseen.times), step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        unseen = self._unseen.get(group)
        if unseen is not None and unseen.times:
            unseen.times = 0
            self.on_timer(group, step)

    def _reading(self, sensed: Sensed, version: Stamp, group: GroupId | None) -> Reading:
        watched = None if group is None else self._asked.get((sensed.device, group))
        return Reading(sensed.device, version, sensed.readings if sensed.up else None, sensed.up, watched)
