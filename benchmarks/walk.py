"""How many calls one firing takes in the core, and which way they go.

    python benchmarks/walk.py [--functions]

Plays the scenario `clean-sequential-cluster` of tests/scenarios: a door opens, and a routine of one group
commands three devices of two groups. The steps of both leaders are profiled, from the one in which the door's
reading comes until the last commit of these groups. Left out are steps of membership and the monitor's timer,
which go on at rest too; what devices answer to the monitor is counted.

A call is one that Python's profiler sees enter a frame of a file in src/comesh/core: a function, a
comprehension, or a generator each time that it is resumed. What is written in C, msgspec's constructors among
it, does not count. An empty wake-up is a step of a group's timer that has no effect but timers. --functions
names the functions of each stage, in the order in which they are first called. Calls are not speed:
`benchmarks/nodes.py` judges that.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import comesh.core
from comesh.core.effects import CancelTimer, Committed, Effect, Observe, SetTimer
from comesh.core.events import DeviceAnswered, MessageReceived, TimerFired
from comesh.core.group_messages import InConfig
from comesh.core.node import AnyEvent
from comesh.core.work_messages import (
    Command,
    CommandState,
    GroupMessage,
    LockRequest,
    LockState,
    Release,
    Released,
)
from protocol_rows import at_most, show

sys.path.append(str(Path(__file__).parent.parent / "tests" / "scenarios"))

import clean_firings
import staging

CORE: Final = str(Path(comesh.core.__file__).parent) + "/"
LEADERS: Final = {staging.KITCHEN: "n1", staging.HALL: "n4"}
DOOR: Final = "door"
MAX_CALLS: Final = 3000

READ: Final = "the monitor's reads are answered"
STAGES: Final = {
    "door": "the door is read: the routine fires",
    LockRequest: "the other group is asked for its locks",
    LockState: "its locks are granted: the run executes",
    Command: "a command reaches the leader of a device",
    "acted": "a device has acted",
    CommandState: "the outcome comes back",
    Release: "the locks are released",
    Released: "the release is confirmed: the run ends",
    "acked": "a member acknowledges",
    "due": "a group's timer is due",
    "read": READ,
}
"""What happens in a step, as ARCHITECTURE.md tells it."""


class Function(NamedTuple):
    file: str
    """From src/comesh/core."""
    name: str


class Step(NamedTuple):
    at_ms: float
    stage: str
    calls: Counter[Function]
    """In the order of the first call."""
    effects: list[Effect]

    @property
    def is_empty(self) -> bool:
        """A wake-up that did nothing."""
        timers_only = all(isinstance(effect, SetTimer | CancelTimer) for effect in self.effects)
        return self.stage == STAGES["due"] and timers_only


class Walk(NamedTuple):
    steps: list[Step]

    @property
    def calls(self) -> Counter[Function]:
        return sum((step.calls for step in self.steps), Counter())

    @property
    def empty_wake_ups(self) -> int:
        return sum(step.is_empty for step in self.steps)

    def stages(self) -> Iterator[tuple[str, "Walk"]]:
        for stage in STAGES.values():
            steps = [step for step in self.steps if step.stage == stage]
            if steps:
                yield stage, Walk(steps)


def measure() -> Walk:
    """Play the scenario and profile its firing."""
    steps: list[Step] = []
    began = False
    last = 0

    class Profiled(staging.Actor):
        def steps(self, events: Sequence[AnyEvent], now_ms: float, wall_ms: float) -> list[Effect]:
            nonlocal began, last
            if self.name not in LEADERS.values():
                return super().steps(events, now_ms, wall_ms)
            began = began or any(map(_is_door, events))
            with _Profile() as profile:
                effects = self.node.steps(events, now_ms, wall_ms)
            stage = _stage(events[0])
            if began and stage is not None:
                steps.append(Step(now_ms, stage, profile.calls, effects))
                if any(map(_is_commit, effects)):
                    last = len(steps)
            return self._stage.overhear(self.name, effects)

    unprofiled, staging.Actor = staging.Actor, Profiled
    try:
        clean_firings.clean_sequential_cluster()
    finally:
        staging.Actor = unprofiled
    return Walk(steps[:last])


class _Profile:
    """Counts calls into the core until it is left."""

    def __init__(self) -> None:
        self.calls: Counter[Function] = Counter()

    def __enter__(self) -> "_Profile":
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *ignored: object) -> None:
        sys.setprofile(None)

    def _on_event(self, frame: FrameType, what: str, argument: object) -> None:
        code = frame.f_code
        if what == "call" and code.co_filename.startswith(CORE):
            self.calls[Function(code.co_filename.removeprefix(CORE), code.co_qualname)] += 1


def _is_door(event: AnyEvent) -> bool:
    return isinstance(event, DeviceAnswered) and event.device == DOOR and event.readings.get("open") is True


def _is_commit(effect: Effect) -> bool:
    return isinstance(effect, Observe) and (
        isinstance(effect.observation, Committed) and effect.observation.group in LEADERS
    )


def _stage(event: AnyEvent) -> str | None:
    """None: it is not of the firing, but of membership or the monitor."""
    match event:
        case DeviceAnswered(device=device, readings=readings):
            if device == DOOR:
                return STAGES["door"]
            return STAGES["acted"] if readings.get("on") else READ
        case MessageReceived(message=GroupMessage() as message):
            return STAGES[type(message.body)]
        case MessageReceived(message=InConfig()):
            return STAGES["acked"]
        case TimerFired(timer=timer) if timer.part == "group":
            return STAGES["due"]
        case _:
            return None


def show_functions(stage: str, walk: Walk) -> None:
    print(f"\n{stage}")
    for function, calls in walk.calls.items():
        print(f"  {calls:4}  {function.file:32} {function.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="name the functions of each stage")
    options = parser.parse_args()
    walk = measure()
    print(f"{'':42} steps  calls  functions  files")
    for stage, part in (*walk.stages(), ("all", walk)):
        files = len({function.file for function in part.calls})
        print(f"{stage:42} {len(part.steps):5}  {part.calls.total():5}  {len(part.calls):9}  {files:5}")
    print()
    rows = (
        at_most("core calls of a firing over two groups and three devices", walk.calls.total(), MAX_CALLS),
        at_most("wake-ups of a group that did nothing", walk.empty_wake_ups, 0),
    )
    for row in rows:
        show(row)
    if options.functions:
        for stage, part in walk.stages():
            show_functions(stage, part)
    return int(not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
