"""`Routines`: routes messages and timers of a serving group's routines to the module concerned.

It lives as long as the leadership. Its state besides the records (readings, pending requests, rests) can be
rebuilt by a new leader.
"""

from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.group.serving import Serving
from comesh.core.ids import GroupId, NodeId, RoutineId
from comesh.core.records import RunRecord
from comesh.core.routines.answers import Answers
from comesh.core.routines.pending_requests import RESEND, PendingRequests
from comesh.core.routines.runs import REST, Runs
from comesh.core.routines.triggers import Triggers
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.work_messages import (
    CommandState,
    DeviceEvents,
    Fenced,
    Fire,
    GroupMessage,
    LockState,
    Reading,
    Released,
    RunQuery,
    SetDevice,
    Wound,
)


class Routines:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._pending_requests = PendingRequests(serving)
        self._runs = Runs(serving, self._pending_requests)
        self._answers = Answers(self._runs)
        self._triggers = Triggers(serving, self._runs, self._pending_requests)

    def begin(self, step: Step) -> None:
        self._runs.begin(step)
        self._triggers.begin(step)

    def on_message(self, message: GroupMessage, sender: NodeId, step: Step) -> None:
        match message.body:
            case Reading() as body:
                self._triggers.on_reading(message, body, sender, step)
            case LockState() as body:
                self._answers.on_lock_state(message, body, step)
            case CommandState() as body:
                self._answers.on_command_state(message, body, step)
            case Released() as body:
                self._answers.on_released(body, step)
            case Fenced() as body:
                self._answers.on_fenced(message, body, step)
            case Wound() as body:
                self._answers.on_wound(message, body, step)
            case RunQuery() as body:
                self._answers.on_run_query(message, body, sender, step)
            case DeviceEvents() as body:
                self._triggers.on_events(message, body, sender, step)
            case Fire() as body:
                self._triggers.on_fire(message, body, sender, step)
            case _:
                pass  # Other answers are not for routines; bad input from outside is no assertion.

    def on_timer(self, what: str, of: str | int, step: Step) -> None:
        if what == RESEND:
            self._pending_requests.on_timer(str(of), step)
        elif what == REST:
            self._runs.on_rested(RoutineId(str(of)), step)
        else:
            self._triggers.on_timer(what, RoutineId(str(of)), step)

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        """Ignored: devices answer the part that looks after them."""

    def on_report(self, event: DeviceReported, step: Step) -> None:
        """Ignored, like answers."""

    def on_reached(self, group: GroupId, step: Step) -> None:
        self._pending_requests.on_reached(group, step)

    def stop(self, routine: RoutineId | None, why: str, step: Step) -> None:
        """End what the routine runs, or what all routines of the group run; waiting firings do not start."""
        self._runs.stop(routine, why, step)

    def command_by_hand(self, wish: SetDevice, by: str, step: Step) -> tuple[RunId | None, str]:
        """Returns the run that commands the device, or why there is none."""
        return self._runs.command_by_hand(wish, by, step)

    @property
    def busy(self) -> bool:
        return bool(self._serving.all(RunRecord))

    @property
    def in_flight(self) -> bool:
        return False
