"""The part of a serving group that carries out what people order.

Rules:
- an order is committed together with its entry in the audit log, and answered after that;
- the same request id is the same order: another one with it is refused;
- what is refused changes nothing and is not in the log. It is answered after a commit, too: perhaps another
  leads by now, and knows better;
- a routine that is paused fires for nobody, and what it still ran or had waiting ends with the reason. A
  command that is under way already is waited for, as ever;
- a group that is new while everything is paused begins paused: the pause of all is posted for it, and again
  by each new leader of a paused group, for an announcement does not outlive an outage of all nodes.
"""

from typing import Final, assert_never

from comesh.core.devices.part import Devices
from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.orders.audit import MAX_WHAT, remember, remembered
from comesh.core.orders.standing import ALL, longest_command_ms, maintained, standing
from comesh.core.records import Kind, Standing, standing_key
from comesh.core.routines.part import Routines
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.work_messages import (
    BreakLock,
    GroupMessage,
    Maintain,
    Order,
    Ordered,
    Pause,
    Reach,
    Remember,
    Restore,
    Resume,
    SetDevice,
)

MAX_NAMED: Final = 100
"""Characters of a run that somebody named."""
USED: Final = "the request id was used for another order; take another one. It was"
PAUSED: Final = "paused"
"""Key of the announcement that all routines are paused: by whom, or by nobody any more."""


class Orders:
    """devices and routines None: the group looks after none."""

    busy: Final = False
    in_flight: Final = False

    def __init__(self, serving: Serving, devices: Devices | None, routines: Routines | None) -> None:
        self._serving = serving
        self._devices = devices
        self._routines = routines

    def begin(self, step: Step) -> None:
        self._drop_removed()
        if self._routines is None:
            return
        order = standing(self._serving, Kind.PAUSED, ALL)
        if order is not None:
            self._post_paused(order.at_ms, order.by)
        announcement = self._serving.surroundings.announcement(PAUSED)
        if self._serving.next_entry == 1 and announcement is not None and announcement.value:
            by = announcement.value.decode("utf-8", "replace")
            self._serving.put(Standing(Kind.PAUSED, ALL, by, float(announcement.version)))

    def _drop_removed(self) -> None:
        """Orders about what the deployment has no more."""
        program = self._serving.program
        if program.version != self._serving.config.version:
            return  # it does not know what was removed
        known = {ALL, *program.routines_of(self._serving.group), *program.devices_of(self._serving.group)}
        for one in self._serving.all(Standing):
            if one.of not in known and one.kind is not Kind.BREAKING:
                self._serving.drop(one.key)

    def on_message(self, message: GroupMessage, sender: NodeId, step: Step) -> None:
        order = message.body
        if not isinstance(order, Order):
            return
        if isinstance(order.wish, Reach):
            self._serving.answer(message, sender, Ordered(order.request, None))
            return
        known = remembered(self._serving, order.request)
        run, why_not = (None, "") if known is None else (known.run, "")
        if known is None:
            run, why_not = self._carry_out(order, step)
        elif known.what != _words(order)[:MAX_WHAT]:
            run, why_not = None, f"{USED}: {known.what}, by {known.by}"
        if why_not:
            self._serving.prove()
        elif known is None:
            remember(self._serving, step.wall_ms, order.by, _words(order), request=order.request, run=run)
        self._serving.answer(message, sender, Ordered(order.request, run, why_not))

    def _carry_out(self, order: Order, step: Step) -> tuple[RunId | None, str]:
        """The run that it fired, if any; and why it is not done, if so."""
        match order.wish:
            case Pause(routine):
                return None, self._pause(routine, order, step)
            case Resume(routine):
                return None, self._resume(routine, order)
            case Maintain(device) | Restore(device):
                return None, self._maintain(device, order, step)
            case BreakLock():
                return None, self._break(order.wish, order, step)
            case SetDevice():
                return self._set(order.wish, order, step)
            case Remember():
                return None, ""
            case Reach():
                return None, ""
            case _:
                assert_never(order.wish)

    # -- routines ----------------------------------------------------------------------------------------

    def _pause(self, routine: RoutineId | None, order: Order, step: Step) -> str:
        if self._routines is None:
            return ""
        if routine is not None and not self._has_routine(routine):
            return f"{self._serving.group} has no routine {routine}"
        self._serving.put(Standing(Kind.PAUSED, routine or ALL, order.by, order.at_ms))
        self._routines.stop(routine, f"paused by {order.by}", step)
        if routine is None:
            self._post_paused(order.at_ms, order.by)
        return ""

    def _resume(self, routine: RoutineId | None, order: Order) -> str:
        """Resumes routines. A resumption of all also resumes those that were paused one by one."""
        if routine is None:
            for one in self._serving.all(Standing):
                if one.kind is Kind.PAUSED:
                    self._serving.drop(one.key)
            self._post_paused(order.at_ms, "")
            return ""
        if not self._has_routine(routine):
            return f"{self._serving.group} has no routine {routine}"
        if standing(self._serving, Kind.PAUSED, ALL) is not None:
            return f"all routines of {self._serving.group} are paused: resume all (comesh resume --all)"
        self._serving.drop(standing_key(Kind.PAUSED, routine))
        return ""

    def _post_paused(self, at_ms: float, by: str) -> None:
        post, version, value = self._serving.surroundings.post_announcement, int(at_ms), by.encode()[:200]
        self._serving.then(lambda step: post(PAUSED, version, value, step))

    def _has_routine(self, routine: RoutineId) -> bool:
        return routine in self._serving.program.routines_of(self._serving.group)

    # -- devices -----------------------------------------------------------------------------------------

    def _maintain(self, device: DeviceId, order: Order, step: Step) -> str:
        if self._devices is None or not self._devices.has(device):
            return f"{self._serving.group} has no device {device}"
        before = maintained(self._serving, device)
        if isinstance(order.wish, Maintain):
            self._serving.put(Standing(Kind.MAINTAINED, device, order.by, step.wall_ms))
        elif before is None:
            return f"{device} is not in maintenance"
        else:
            self._serving.drop(before.key)
            self._devices.restore(device, step)
        return ""

    def _break(self, wish: BreakLock, order: Order, step: Step) -> str:
        holder = None if self._devices is None else self._devices.holder(wish.device)
        if self._devices is None or holder is None:
            return f"nobody holds {wish.device}"
        if wish.run is not None and wish.run != str(holder):
            return f"{wish.device} is held by {holder}, and not by {wish.run[:MAX_NAMED]}"
        self._serving.put(Standing(Kind.BREAKING, wish.device, order.by, step.wall_ms, holder))
        self._devices.break_lock(wish.device, step)
        return ""

    def _set(self, wish: SetDevice, order: Order, step: Step) -> tuple[RunId | None, str]:
        if self._devices is None or self._routines is None or not self._devices.has(wish.device):
            return None, f"{self._serving.group} has no device {wish.device}"
        max_ms = longest_command_ms(self._serving.program, wish.device)
        if not 0 < wish.action.timeout_ms <= max_ms:
            return None, f"a command by hand to {wish.device} may take {max_ms / 1000:g} s at most"
        return self._routines.command_by_hand(wish, order.by, step)

    # -- nothing else concerns it ------------------------------------------------------------------------

    def on_timer(self, what: str, of: str | int, step: Step) -> None:
        """It has none."""

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        """Devices answer the part that looks after them."""

    def on_report(self, event: DeviceReported, step: Step) -> None:
        """Likewise."""

    def on_reached(self, group: GroupId, step: Step) -> None:
        """It waits for nobody."""


def _words(order: Order) -> str:
    match order.wish:
        case Pause(routine):
            return f"pause {routine or 'all routines'}"
        case Resume(routine):
            return f"resume {routine or 'all routines'}"
        case Maintain(device):
            return f"begin maintenance of {device}"
        case Restore(device):
            return f"end maintenance of {device}"
        case BreakLock(device):
            return f"break the lock of {device}"
        case SetDevice(device, action):
            return f"set {device}: {action}"
        case Remember(what):
            return what
        case Reach(version):
            return f"reach version {version}"
        case _:
            assert_never(order.wish)
