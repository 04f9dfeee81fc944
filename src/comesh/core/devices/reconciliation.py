"""Finds out who holds which device after an outage that may have lost committed state (protocol, section 5).

A device whose record was settled in an older era than the group's is withheld: no grants and no commands,
while sensing goes on. Three kinds of routines are asked what they hold, with the new era, until they answer:
those that command the device, those that its record names, and removed ones whose last run may not have
ended. A lock that a routine holds is granted to it again. Of several claims the highest grant stamp wins, and
the others are refused later. A hold that its routine does not confirm is dropped: from its answer on, the
routine ignores grants of older eras.

Answers are kept in memory only: a new leader asks again. A claim that was released meanwhile is void.
"""

from msgspec.structs import replace

from comesh.core.devices.calls import Calls
from comesh.core.devices.cluster import Cluster
from comesh.core.devices.lock_queue import marks
from comesh.core.devices.sensing import Sensing
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.orders.standing import longest_command_ms
from comesh.core.records import DeviceRecord, Hold, Status
from comesh.core.step import Step
from comesh.core.work_messages import RunQuery, RunState

LOST_NUMBERS = 1000
"""Maximum changes of a device's status, or events, that may have been sent and lost: later ones count from
above."""


class Reconciliation:
    def __init__(self, cluster: Cluster, calls: Calls, sensing: Sensing) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        self._calls = calls
        self._sensing = sensing
        self._missing: dict[DeviceId, dict[RoutineId, GroupId | None]] = {}
        """Routines that have not answered, by device, and the group to ask."""
        self._claims: dict[DeviceId, list[Hold]] = {}
        self._times = 0
        self._clear_ms: dict[DeviceId, float] = {}
        """Time until which a command whose intent was lost may still land."""

    def begin(self, step: Step) -> None:
        for device in self._open_devices():
            record = self._cluster.find(device)
            if record is not None and not self._cluster.is_settled(record):
                self._count_on(record)
                self._missing[device] = self._to_ask(record)
                self._clear_ms[device] = step.now_ms + self._landing_ms(device)
                self.settle(device, step)
        self.ask(step)

    def _count_on(self, record: DeviceRecord) -> None:
        """Skip numbers that may have been lost: others would take a repeated number for known."""
        version = record.status_version + LOST_NUMBERS
        device = self._serving.program.devices.get(record.device)
        tells_events = record.sequence > 0 or (device is not None and device.event)
        sequence = record.sequence + LOST_NUMBERS if tells_events else 0
        self._cluster.put(replace(record, status_version=version, sequence=sequence))
        if record.status is not Status.UNKNOWN:
            self._sensing.gossip(record.device, version, record.status)

    def ask(self, step: Step) -> None:
        """Ask every routine that has not answered, and again later."""
        if not self._missing:
            return
        questions: dict[tuple[RoutineId, GroupId], list[DeviceId]] = {}
        for device, routines in self._missing.items():
            for routine, group in routines.items():
                if group is not None:
                    questions.setdefault((routine, group), []).append(device)
        self._cluster.set_timer("reconcile", 0, self._cluster.resend_ms(self._times), step)
        self._times += 1
        for (routine, group), devices in questions.items():
            self._serving.send(group, RunQuery(None, routine, tuple(devices), self._serving.era))

    def on_reached(self, group: GroupId, step: Step) -> None:
        if any(group in routines.values() for routines in self._missing.values()):
            self._times = 0
            self.ask(step)

    def on_run_state(self, state: RunState, step: Step) -> None:
        if state.era != self._serving.era:
            return
        stamps = {held.device: held.stamp for held in state.held}
        for device in state.devices:
            routines = self._missing.get(device)
            if routines is None or state.routine not in routines:
                continue
            home = routines.pop(state.routine)
            stamp = stamps.get(device)
            if stamp is not None and state.run is not None:
                claim = Hold(state.run, state.attempt, state.strategy, state.fired_ms, stamp, home=home)
                self._claims.setdefault(device, []).append(claim)
            self.settle(device, step)

    def _open_devices(self) -> list[DeviceId]:
        devices = dict.fromkeys(self._cluster.devices)
        devices.update(dict.fromkeys(record.device for record in self._cluster.records()))
        return list(devices)

    def _to_ask(self, record: DeviceRecord) -> dict[RoutineId, GroupId | None]:
        users = self._serving.program.users.get(record.device, ())
        asked: dict[RoutineId, GroupId | None] = {user: self._cluster.home_of(user) for user in users}
        for routine, former in self._serving.program.former.items():
            if record.device in former.commands and routine not in asked:
                asked[routine] = former.group
        for one in (record.hold, *record.queue):
            if one is not None:
                asked.setdefault(one.run.routine, self._cluster.home(one))
        return asked

    def _landing_ms(self, device: DeviceId) -> float:
        """Returns how long a command sent before the outage may still land. A node that lost power has waited
        for cold_wait_ms already, unless an operator ended the wait."""
        settings = self._serving.settings
        longest_ms = longest_command_ms(self._serving.program, device)
        landing_ms = (longest_ms + self._cluster.flight_ms(device)) * (1.0 + 2 * settings.drift)
        return max(0.0, landing_ms + settings.lease_ms - settings.cold_wait_ms)

    def settle(self, device: DeviceId, step: Step) -> None:
        """Allow grants again, once every routine has answered and no earlier command can land any more."""
        if self._missing.get(device):
            return
        if step.now_ms < self._clear_ms.get(device, 0.0):
            left_ms = self._clear_ms[device] - step.now_ms
            self._cluster.set_timer("clear", device, left_ms, step)
            return
        self._missing.pop(device, None)
        self._clear_ms.pop(device, None)
        claims = self._claims.pop(device, [])
        record = self._cluster.find(device)
        if record is None:
            return
        claims = [claim for claim in claims if not marks(record, claim.run, claim.attempt)]
        hold = max(claims, key=lambda claim: claim.stamp, default=None)
        if hold is not None and record.hold is not None and record.hold.run == hold.run:
            hold = replace(hold, fence=record.hold.fence)
        run = None if hold is None else hold.run
        attempt = 0 if hold is None else hold.attempt
        self._cluster.put(
            replace(
                record,
                hold=hold,
                queue=tuple(one for one in record.queue if one.run != run or one.attempt > attempt),
                calls=tuple(call for call in record.calls if call.origin.run == run or not call.landed),
                settled=self._serving.era,
            )
        )
        self._calls.look(device, step)
        self._calls.locks.advance(device, step)
