"""A bench for the devices of one serving group: real `Serving` and `Devices`, virtual time, a commit loop.

Group `home` looks after the devices; the routines r1 to r3 live in group `away`, `near` in `home` itself.
What is said to other groups or devices is collected, with nothing lost and nothing answered by itself.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from comesh.core.actions import Action, Origin, RoutineStep
from comesh.core.devices import Devices
from comesh.core.draws import Draws
from comesh.core.effects import CancelTimer, CommandDevice, Effect, Observe, ReadDevice, SetTimer
from comesh.core.events import DeviceAnswered, DeviceReported, Timer
from comesh.core.group.config import Config, Seat
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import put_all
from comesh.core.plan import Cluster, Place, PlannedDevice, PlannedNode, PlannedRoutine, SelectionSettings
from comesh.core.program import (
    DeviceProgram,
    Program,
    ProtocolSettings,
    ReadingName,
    RoutineProgram,
)
from comesh.core.records import DeviceRecord, GroupRecord, Record, device_key
from comesh.core.selection import make_plan
from comesh.core.stamps import OPENING, Ballot, Era, Fence, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Strategy
from comesh.core.values import Value
from comesh.core.work_messages import (
    Command,
    FenceAsked,
    GroupMessage,
    LockRequest,
    LockState,
    Release,
    ToDevices,
    Work,
)

HOME, AWAY = GroupId("home"), GroupId("away")
LAMP, FAN, BUTTON, SENSOR = DeviceId("lamp"), DeviceId("fan"), DeviceId("button"), DeviceId("sensor")
R1, R2, R3, NEAR = RoutineId("r1"), RoutineId("r2"), RoutineId("r3"), RoutineId("near")
OTHER = NodeId("n2")
FENCE = Fence(0, OPENING)
LATER_FENCE = Fence(0, Ballot(1, 1))
FLIGHT_MS = 2000.0
TIMEOUT_MS = 3000.0
LANDING_MS = (TIMEOUT_MS + FLIGHT_MS) * 1.02
"""Landing time by the clock of a leader that may be 1 % fast, after one that may have been 1 % slow."""

_W = TypeVar("_W", bound=Work)
_E = TypeVar("_E", bound=Effect)


class Reads:
    """A clause that names this reading and is never evaluated."""

    def __init__(self, *reads: ReadingName) -> None:
        self._reads = frozenset(reads)

    @property
    def reads(self) -> frozenset[ReadingName]:
        return self._reads

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        raise AssertionError("devices do not evaluate clauses")


def make_program(devices: tuple[DeviceId, ...] = (BUTTON, FAN, LAMP, SENSOR), **settings: object) -> Program:
    far = DeviceId("far")
    routines = {
        R1: RoutineProgram(id=R1, when=Reads((SENSOR, "value")), steps=_steps(devices, LAMP, FAN)),
        R2: RoutineProgram(id=R2, when=Reads((SENSOR, "value")), steps=_steps(devices, LAMP)),
        R3: RoutineProgram(id=R3, on_event=Reads((BUTTON, "pressed")), steps=_steps(devices, FAN)),
        NEAR: RoutineProgram(
            id=NEAR,
            when=Reads((LAMP, "on")),
            on_event=Reads((BUTTON, "pressed")),
            steps=_steps(devices, LAMP),
        ),
    }
    plan = make_plan(
        1,
        SelectionSettings(),
        [PlannedNode(id=NodeId(f"n{i}"), place=Place(i, 0)) for i in range(1, 4)],
        [PlannedDevice(id=device, place=Place(0, 0)) for device in (*devices, far)],
        [PlannedRoutine(id=routine, touches=(far,)) for routine in sorted(routines)],
    )
    clusters = (
        Cluster(group=HOME, devices=devices, routines=(NEAR,)),
        Cluster(group=AWAY, devices=(far,), routines=(R1, R2, R3)),
    )
    programs = {
        device: DeviceProgram(id=device, event=device == BUTTON, flight_ms=FLIGHT_MS) for device in devices
    }
    return Program(
        plan=replace(plan, clusters=clusters),
        devices=programs | {far: DeviceProgram(id=far)},
        routines=routines,
        settings=ProtocolSettings(**settings),
    )


def _steps(devices: tuple[DeviceId, ...], *wanted: DeviceId) -> tuple[RoutineStep, ...]:
    return tuple(RoutineStep(device, Action("on")) for device in wanted if device in devices)


def run_of(routine: RoutineId, n: int = 1) -> RunId:
    return RunId(routine, 1, Stamp(0, OPENING, n))


class _Surroundings:
    def __init__(self, bench: "Bench") -> None:
        self.own = NodeId("n1")
        self._bench = bench
        self._call = 0

    def route(self, message: GroupMessage, to: NodeId | None, step: Step) -> None:
        self._bench.posted.append(message)

    def next_call(self, serving: Serving) -> int:
        self._call += 1
        return self._call

    def round_trip_ms(self, node: NodeId) -> float:
        return 10.0

    def probe(self, serving: Serving, device: DeviceId, step: Step) -> bool:
        self._bench.probed.append(device)
        return self._bench.can_probe

    def announcement(self, key: str) -> None:
        return None

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None:
        self._bench.announcements.append((key, version, value))

    def learn_document(self, version: int, text: str, step: Step) -> None:
        raise AssertionError("devices commit no documents")


class Bench:
    """answering: devices that answer reads at once, and what; commands are answered by the test."""

    def __init__(
        self,
        program: Program | None = None,
        records: tuple[Record, ...] = (),
        answering: Mapping[DeviceId, dict[str, Value]] | None = None,
        silent: tuple[DeviceId, ...] = (),
    ) -> None:
        self.program = program or make_program()
        self.now_ms = 1000.0
        self.answering: dict[DeviceId, dict[str, Value]] = {
            LAMP: {"on": False},
            FAN: {"on": False},
            SENSOR: {"value": 1},
            BUTTON: {"pressed": False},
            **(answering or {}),
        }
        for device in silent:
            del self.answering[device]
        self.posted: list[GroupMessage] = []
        self.local: list[Work] = []
        self.done: list[Effect] = []
        self.probed: list[DeviceId] = []
        self.announcements: list[tuple[str, int, bytes]] = []
        self.can_probe = True
        self.commits = True
        self.entries = 0
        self.committed: dict[str, Record] = {record.key: record for record in records}
        self._timers: dict[Timer, float] = {}
        self._number = 0
        self._proposed: list[tuple[Record, ...]] = []
        self._surroundings = _Surroundings(self)
        self.lead(OPENING)

    def lead(self, ballot: Ballot, *, era: Era | None = None, program: Program | None = None) -> None:
        """Let a new leader begin with the committed state."""
        self.program = program or self.program
        if era is not None:
            self.committed["group"] = GroupRecord(era=era)
        self._timers.clear()
        self._proposed.clear()
        seats = tuple(Seat(NodeId(f"n{i}"), 0) for i in range(1, 4))
        self.serving = Serving(
            config=Config(HOME, 0, 0, seats, 1000, 1),
            ballot=ballot,
            records=self.committed,
            committed=self._number,
            number=self._number,
            program=self.program,
            surroundings=self._surroundings,
            draws=Draws(1),
        )
        self.serving.lease_until_ms = float("inf")
        self.devices = Devices(self.serving)
        self.serving.parts["devices"] = self.devices
        step = self._step()
        self.serving.begin(step)
        self._finish(step)

    # -- what happens ------------------------------------------------------------------------------------

    def say(self, body: ToDevices, sender: GroupId = AWAY) -> None:
        step = self._step()
        self.devices.on_message(GroupMessage(HOME, sender, FENCE, 1, body), OTHER, step)
        self._finish(step)

    def answer(
        self, call: int, device: DeviceId, readings: dict[str, Value] | None = None, error: str | None = None
    ) -> None:
        step = self._step()
        self.devices.on_answer(
            DeviceAnswered(device=device, call=call, readings=readings or {}, error=error), step
        )
        self._finish(step)

    def report(self, device: DeviceId, readings: dict[str, Value], token: str | None = None) -> None:
        step = self._step()
        self.devices.on_report(DeviceReported(device=device, readings=readings, token=token), step)
        self._finish(step)

    def reach(self, group: GroupId = AWAY) -> None:
        """A silent group is reachable again."""
        step = self._step()
        self.serving.on_reached(group, step)
        self._finish(step)

    def run(self, ms: float) -> None:
        end_ms = self.now_ms + ms
        while self._timers:
            timer, due_ms = min(self._timers.items(), key=lambda item: item[1])
            if due_ms > end_ms:
                break
            del self._timers[timer]
            self.now_ms = max(self.now_ms, due_ms)
            step = self._step()
            self.serving.on_timer(timer, step)
            self._finish(step)
        self.now_ms = end_ms

    def commit(self) -> None:
        """Commit waiting entries, and all later ones."""
        self.commits = True
        self._finish(self._step())

    # -- what was said and done --------------------------------------------------------------------------

    def take(self, kind: type[_W]) -> list[_W]:
        """Returns and removes the messages of this kind to other groups."""
        found = [message.body for message in self.posted if isinstance(message.body, kind)]
        self.posted = [message for message in self.posted if not isinstance(message.body, kind)]
        return found

    def take_local(self, kind: type[_W]) -> list[_W]:
        found = [body for body in self.local if isinstance(body, kind)]
        self.local = [body for body in self.local if not isinstance(body, kind)]
        return found

    def take_done(self, kind: type[_E]) -> list[_E]:
        found = [effect for effect in self.done if isinstance(effect, kind)]
        self.done = [effect for effect in self.done if not isinstance(effect, kind)]
        return found

    def observed(self) -> list[object]:
        return [effect.observation for effect in self.done if isinstance(effect, Observe)]

    def record(self, device: DeviceId) -> DeviceRecord:
        record = self.committed[device_key(device)]
        assert isinstance(record, DeviceRecord)
        return record

    # -- shorthand ---------------------------------------------------------------------------------------

    def lock(
        self,
        run: RunId,
        *devices: DeviceId,
        attempt: int = 1,
        strategy: Strategy = Strategy.SEQUENTIAL,
        fired_ms: float = 0.0,
        fence: Fence = FENCE,
    ) -> LockState:
        """Ask for locks, and return the answer."""
        self.take(LockState)
        self.say(LockRequest(run, attempt, devices or (LAMP,), fired_ms, strategy, fence))
        mine = [state for state in self.take(LockState) if (state.run, state.attempt) == (run, attempt)]
        assert len(mine) == 1
        return mine[0]

    def has(self, run: RunId, device: DeviceId = LAMP, attempt: int = 1) -> bool:
        hold = self.record(device).hold
        return hold is not None and (hold.run, hold.attempt) == (run, attempt)

    def release(self, run: RunId, *devices: DeviceId, attempt: int = 1) -> None:
        self.say(Release(run, attempt, devices or (LAMP,)))

    def command(
        self,
        run: RunId,
        *,
        step: int = 0,
        attempt: int = 1,
        fence: Fence = FENCE,
        idempotent: bool = True,
        expects: dict[str, Value] | None = None,
    ) -> None:
        action = Action("on", None, TIMEOUT_MS, idempotent, expects)
        self.say(Command(Origin(run, attempt, step), LAMP, action, fence))

    def fence(self, run: RunId, fence: Fence, attempt: int = 1) -> None:
        self.say(FenceAsked(run, attempt, fence, (LAMP,)))

    def sent_command(self) -> CommandDevice:
        """Returns the one command sent since the last call."""
        (command,) = self.take_done(CommandDevice)
        return command

    def sent_origin(self) -> Origin:
        """Returns the origin of the only command that was sent."""
        origin = self.sent_command().origin
        assert origin is not None
        return origin

    # -- the loop ----------------------------------------------------------------------------------------

    def _step(self) -> Step:
        return Step(self.now_ms, self.now_ms + 1e12)

    def _finish(self, step: Step) -> None:
        """Local mail, then seal, then (if commits go through) commit, until nothing is left to do."""
        while True:
            while (message := self.serving.take_local()) is not None:
                if isinstance(message.body, ToDevices):
                    self.devices.on_message(message, self._surroundings.own, step)
                else:
                    self.local.append(message.body)
            entry = self.serving.seal()
            if entry is not None:
                self._proposed.append(entry)
            if self.commits:
                for proposed in self._proposed:
                    put_all(self.committed, proposed)
                    self._number += 1
                    self.entries += 1
                self._proposed.clear()
                self.serving.on_committed(self._number, step)
            if self._perform(step) or self.serving.has_work:
                continue
            return

    def _perform(self, step: Step) -> bool:
        effects, step.effects = step.effects, []
        for effect in effects:
            match effect:
                case SetTimer():
                    self._timers[effect.timer] = self.now_ms + effect.after_ms
                case CancelTimer():
                    self._timers.pop(effect.timer, None)
                case ReadDevice() if effect.device in self.answering:
                    readings = self.answering[effect.device]
                    answered = DeviceAnswered(device=effect.device, call=effect.call, readings=readings)
                    self.devices.on_answer(answered, step)
                case _:
                    self.done.append(effect)
        return bool(effects)
