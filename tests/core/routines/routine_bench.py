"""A serving group with its routines on a bench: commits at once, letters by hand, time by hand.

Group c1 is the one on the bench. It has the devices a1 and a2; c2 has b1 and b2, c3 has d1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from comesh.core.actions import Action, RoutineStep
from comesh.core.draws import Draws
from comesh.core.effects import CancelTimer, Observe, RunTraced, SetTimer
from comesh.core.events import Timer
from comesh.core.group.config import Config, Seat
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import put_all
from comesh.core.plan import Cluster, Plan, SelectionSettings
from comesh.core.program import (
    DeviceProgram,
    Predicate,
    Program,
    ProtocolSettings,
    ReadingName,
    RoutineProgram,
)
from comesh.core.records import Entry, GroupRecord, Outcome, Record, RoutineRecord, RunRecord, Stage
from comesh.core.routines import Routines
from comesh.core.stamps import FIRST_ERA, Ballot, Era, Fence, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Strategy
from comesh.core.values import Value
from comesh.core.work_messages import (
    CommandState,
    Fenced,
    FencedDevice,
    GroupMessage,
    LockAnswer,
    LockState,
    Reading,
    Released,
    StepState,
    ToRoutines,
    Work,
)

OWN = GroupId("c1")
DEVICES = {OWN: ("a1", "a2"), GroupId("c2"): ("b1", "b2"), GroupId("c3"): ("d1",)}
GROUP_OF = {device: group for group, devices in DEVICES.items() for device in devices}
SOMEBODY = NodeId("n9")
GRANTER = Fence(1, Ballot(0, 0))
"""Leader of the other groups, which made all grants unless a test says otherwise."""
START_MS = 1_700_000_000_000.0
_W = TypeVar("_W")

T = TypeVar("T")


class Clause:
    """A predicate of a test."""

    def __init__(
        self, reads: Sequence[ReadingName], truth: Callable[[Mapping[ReadingName, Value | None]], bool | None]
    ) -> None:
        self.reads = frozenset(reads)
        self._truth = truth

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        return self._truth(values)


def is_true(device: str, reading: str = "on") -> Predicate:
    """Returns the truth; unknown while the reading is missing."""

    def truth(values: Mapping[ReadingName, Value | None]) -> bool | None:
        value = values.get((device, reading))
        return None if value is None else bool(value)

    return Clause([(device, reading)], truth)


def command(device: str, *, best_effort: bool = False, together: bool = False) -> RoutineStep:
    return RoutineStep(DeviceId(device), Action("set", True), best_effort, together)


def routine(
    *devices: str, strategy: Strategy = Strategy.SEQUENTIAL, name: str = "r", **more: object
) -> RoutineProgram:
    steps = tuple(command(device) for device in devices)
    return RoutineProgram(id=RoutineId(name), strategy=strategy, **{"steps": steps, **more})


def program(
    *routines: RoutineProgram,
    version: int = 1,
    moment: Callable[[float], Mapping[ReadingName, Value | None]] = lambda _: {},
    **settings: object,
) -> Program:
    """All routines are anchored in c1."""
    plan = Plan(
        version=version,
        settings=SelectionSettings(),
        nodes=(),
        devices=(),
        routines=(),
        clusters=tuple(
            Cluster(
                group=group,
                devices=tuple(DeviceId(device) for device in devices),
                routines=tuple(one.id for one in routines) if group == OWN else (),
            )
            for group, devices in DEVICES.items()
        ),
        anchors={},
        genesis={},
        spacing_mm=1000,
        groups_made=3,
    )
    return Program(
        plan=plan,
        devices={DeviceId(device): DeviceProgram(id=DeviceId(device)) for device in GROUP_OF},
        routines={one.id: one for one in routines},
        settings=ProtocolSettings(**settings),
        moment=moment,
    )


class Around:
    """Collects announcements."""

    own = NodeId("n1")

    def __init__(self) -> None:
        self.posted: list[tuple[GroupMessage, NodeId | None]] = []

    def route(self, message: GroupMessage, to: NodeId | None, step: Step) -> None:
        self.posted.append((message, to))

    def next_call(self, serving: Serving) -> int:
        raise AssertionError("routines call no devices")

    def round_trip_ms(self, node: NodeId) -> float:
        return 10.0

    def probe(self, serving: Serving, device: DeviceId, step: Step) -> bool:
        raise AssertionError("routines probe no devices")

    def announcement(self, key: str) -> None:
        return None

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None:
        raise AssertionError("routines post no announcements")


class Bench:
    def __init__(self, made: Program, *, number: int = 1) -> None:
        self.now_ms = 0.0
        self.number = number
        self.ballot = Ballot(0, 0)
        self.records: dict[str, Record] = {}
        """The committed state."""
        self.entries: list[Entry] = []
        self.traces: list[RunTraced] = []
        self.timers: dict[Timer, float] = {}
        self.said: list[tuple[GroupId | NodeId, Work]] = []
        """Messages sent since the last `take`, including those to the own devices."""
        self.at_home: Callable[[Work], list[Work]] = lambda _: []
        """Answers of the own devices, in the same step."""
        self.commits = True
        """False: nothing is committed any more."""
        self._grants = 0
        self._open_entries: list[Entry] = []
        """Proposed and not committed."""
        self._serve(made)

    def _serve(self, made: Program) -> None:
        self.program = made
        self.around = Around()
        config = Config(OWN, self.number, 0, (Seat(NodeId("n1"), 0),), 1000, made.version)
        self.serving = Serving(
            config=config,
            ballot=self.ballot,
            records=self.records,
            committed=0,
            number=0,
            program=made,
            surroundings=self.around,
            draws=Draws(7),
        )
        self.serving.lease_until_ms = float("inf")
        self.part = Routines(self.serving)
        self.serving.parts = {"routines": self.part}
        self.step(self.serving.begin)

    # -- driving -----------------------------------------------------------------------------------------

    @property
    def wall_ms(self) -> float:
        return START_MS + self.now_ms

    def step(self, act: Callable[[Step], None]) -> None:
        step = Step(self.now_ms, self.wall_ms)
        act(step)
        while (message := self.serving.take_local()) is not None:
            if isinstance(message.body, ToRoutines):
                self.serving.parts["routines"].on_message(message, self.around.own, step)
                continue
            self.said.append((OWN, message.body))
            for body in self.at_home(message.body):
                answer = GroupMessage(OWN, OWN, self.serving.fence, 1, body)
                self.serving.parts["routines"].on_message(answer, self.around.own, step)
        entry = self.serving.seal()
        if entry is not None:
            self._open_entries.append(entry)
        if self.commits:
            number = self.serving.committed + len(self._open_entries)
            for one in self._open_entries:
                put_all(self.records, one)
            self.entries.extend(self._open_entries)
            self._open_entries.clear()
            self.serving.on_committed(number, step)
        self._perform(step)

    def _perform(self, step: Step) -> None:
        for effect in step.effects:
            match effect:
                case SetTimer():
                    self.timers[effect.timer] = self.now_ms + effect.after_ms
                case CancelTimer():
                    self.timers.pop(effect.timer, None)
                case Observe(observation=RunTraced() as traced):
                    self.traces.append(traced)
                case _:
                    raise AssertionError(effect)
        for message, to in self.around.posted:
            self.said.append((to or message.to, message.body))
        self.around.posted.clear()

    def hear(
        self, body: Work, group: str | None = None, *, by: Fence = GRANTER, version: int | None = None
    ) -> None:
        """Deliver a message from the leader of a group, or from a node."""
        if group is None:
            message = GroupMessage(OWN, None, None, self.program.version, body)
        else:
            message = GroupMessage(OWN, GroupId(group), by, version or self.program.version, body)
        self.step(lambda step: self.serving.parts["routines"].on_message(message, SOMEBODY, step))

    def reach(self, group: str) -> None:
        """A silent group is reachable again."""
        self.step(lambda step: self.serving.on_reached(GroupId(group), step))

    def wait(self, ms: float) -> None:
        """Let time pass; timers fire in order."""
        until_ms = self.now_ms + ms
        while self.timers and min(self.timers.values()) <= until_ms:
            timer = min(self.timers, key=lambda one: self.timers[one])
            self.now_ms = self.timers.pop(timer)
            self.step(lambda step, timer=timer: self.serving.on_timer(timer, step))
        self.now_ms = until_ms

    def new_leader(self, *, lossy: bool = False, made: Program | None = None, gap_ms: float = 0.0) -> None:
        """Let the next leader begin with the committed state; uncommitted entries are lost."""
        self.step(self.serving.end)
        self._open_entries.clear()
        self.timers.clear()
        self.said.clear()
        self.now_ms += gap_ms
        self.commits = True
        self.ballot = Ballot(self.ballot.round + 1, 0)
        if lossy:
            before = self.records.get("group")
            eras = before.eras if isinstance(before, GroupRecord) else {}
            self.records["group"] = GroupRecord(Era(self.number, self.ballot), eras)
        self._serve(made or self.program)

    # -- looking -----------------------------------------------------------------------------------------

    def take(self, kind: type[_W]) -> list[tuple[GroupId | NodeId, _W]]:
        """Returns and removes the messages of this kind."""
        found = [(to, body) for to, body in self.said if isinstance(body, kind)]
        self.said = [(to, body) for to, body in self.said if not isinstance(body, kind)]
        return found

    def run(self, name: str = "r") -> RunRecord:
        record = self.records["run/" + name]
        assert isinstance(record, RunRecord)
        return record

    @property
    def stage(self) -> Stage | None:
        record = self.records.get("run/r")
        return record.stage if isinstance(record, RunRecord) else None

    def routine(self, name: str = "r") -> RoutineRecord:
        record = self.records["routine/" + name]
        assert isinstance(record, RoutineRecord)
        return record

    @property
    def ended(self) -> str | None:
        """Returns why the last run failed; empty: it finished."""
        record = self.records.get("routine/r")
        return record.ended.reason if isinstance(record, RoutineRecord) and record.ended else None

    def told(self, kind: type[T]) -> list[T]:
        return [traced.trace for traced in self.traces if isinstance(traced.trace, kind)]

    # -- what devices say --------------------------------------------------------------------------------

    def stamp(self) -> Stamp:
        self._grants += 1
        return Stamp(1, Ballot(0, 0), self._grants)

    def grant(
        self,
        *devices: str,
        run: RunId | None = None,
        attempt: int | None = None,
        era: Era = FIRST_ERA,
        passed_on: str | None = None,
    ) -> None:
        run, attempt = run or self.run().run, attempt or self.run().attempt
        answers = tuple(LockAnswer(DeviceId(one), self.stamp(), era) for one in devices)
        to = None if passed_on is None else GroupId(passed_on)
        self.hear(LockState(run, attempt, answers, to), GROUP_OF[devices[0]])

    def refuse(self, device: str, why: str = "held", attempt: int | None = None) -> None:
        answer = LockAnswer(DeviceId(device), None, FIRST_ERA, why)
        self.hear(LockState(self.run().run, attempt or self.run().attempt, (answer,)), GROUP_OF[device])

    def queue(self, device: str) -> None:
        self.refuse(device, "")

    def release(self, *devices: str, attempt: int | None = None) -> None:
        body = Released(
            self.run().run, attempt or self.run().attempt, tuple(DeviceId(one) for one in devices)
        )
        self.hear(body, GROUP_OF[devices[0]])

    def outcome(
        self,
        number: int,
        outcome: Outcome | None = Outcome.DONE,
        detail: str = "",
        *,
        fence: Fence | None = None,
        attempt: int | None = None,
    ) -> None:
        run = self.run()
        device = run.steps[number].device
        state = StepState(number, outcome, detail)
        body = CommandState(run.run, attempt or run.attempt, device, fence or self.serving.fence, state)
        self.hear(body, GROUP_OF[device])

    def fenced(
        self, *devices: str, lost: Sequence[str] = (), steps: Sequence[StepState] = (), era: Era = FIRST_ERA
    ) -> None:
        run = self.run()
        stamps = {one.device: one.stamp for one in run.held}
        answers = tuple(
            FencedDevice(
                DeviceId(one),
                None if one in lost else stamps[DeviceId(one)],
                tuple(state for state in steps if run.steps[state.step].device == one),
            )
            for one in devices
        )
        self.hear(Fenced(run.run, run.attempt, self.serving.fence, answers, era), GROUP_OF[devices[0]])

    def reads(self, device: str, *, n: int, up: bool = True, **values: Value) -> None:
        version = Stamp(1, Ballot(0, 0), n)
        told = dict(values) if up else None
        self.hear(Reading(DeviceId(device), version, told, up, self.serving.fence), GROUP_OF[device])
