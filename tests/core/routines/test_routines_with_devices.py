"""Tests of routines and devices of several groups: a bad network, new leaders, deposed ones that go on.

Commits take a while, and what was not committed when the leader changes is lost, as in a real group; in an
outage, so is the end of what was. After every commit no two runs that share a device may be EXECUTING, and a
device acts only for who holds its lock. When the faults are over, every run ends.
"""

import heapq
from collections.abc import Callable

import pytest
from routine_bench import DEVICES, GROUP_OF, START_MS, program, routine

from comesh.core.devices import Devices
from comesh.core.draws import Draws
from comesh.core.effects import CancelTimer, CommandDevice, Observe, ReadDevice, RunTraced, SetTimer
from comesh.core.events import DeviceAnswered, Timer
from comesh.core.group.config import Config, Seat
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import put_all
from comesh.core.plan import Cluster, Plan
from comesh.core.program import Program, RoutineProgram
from comesh.core.records import DeviceRecord, Entry, GroupRecord, Record, RoutineRecord, RunRecord, Stage
from comesh.core.routines import Routines
from comesh.core.stamps import Ballot, Era
from comesh.core.step import Step
from comesh.core.strategies import Batch, LockOrder, Strategy
from comesh.core.traces import Failed, Finished
from comesh.core.work_messages import Fire, GroupMessage, ToDevices

SOMEBODY = NodeId("n9")
FAULTS_MS = 60_000.0
QUIET_MS = 400_000.0
OUTAGE_MS = 30_000.0
MAX_LOST = 3
"""Entries at the end of a group's history that an outage takes."""


class Town:
    """Three groups, a network between them, and devices that take a while."""

    def __init__(self, made: Program, seed: int) -> None:
        self.draws = Draws(seed)
        self.program = made
        self.now_ms = 0.0
        self.faulty = True
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.groups = {group: Group(self, group) for group in DEVICES}
        self.traces: list[RunTraced] = []
        self.acted: list[tuple[float, DeviceId]] = []

    def after(self, ms: float, call: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now_ms + ms, self.count, call))

    def until(self, ms: float) -> None:
        while self.queue and self.queue[0][0] <= ms:
            self.now_ms, _, call = heapq.heappop(self.queue)
            call()
        self.now_ms = ms

    def route(self, message: GroupMessage) -> None:
        if message.to is None:
            return
        copies = 1
        if self.faulty:
            copies = 0 if self.draws.chance(0.1) else 2 if self.draws.chance(0.1) else 1
        for _ in range(copies):
            late = self.faulty and self.draws.chance(0.05)
            delay_ms = self.draws.between(5, 4000 if late else 60)
            self.after(delay_ms, lambda group=message.to: self.groups[group].hear(message))

    def act(self, leader: "Leader", effect: CommandDevice | ReadDevice) -> None:
        if self.faulty and self.draws.chance(0.05):
            return
        self.after(self.draws.between(5, 300), lambda: self._answer(leader, effect))

    def _answer(self, leader: "Leader", effect: CommandDevice | ReadDevice) -> None:
        if isinstance(effect, CommandDevice):
            self._check_act(effect)
            self.acted.append((self.now_ms, effect.device))
        event = DeviceAnswered(device=effect.device, call=effect.call, readings={"on": True})
        self.after(
            self.draws.between(5, 300), lambda: leader.step(lambda step: leader.on_answer(event, step))
        )

    def _check_act(self, effect: CommandDevice) -> None:
        """Check that its run holds the lock, or left a call that delays the next grant."""
        group = self.groups[GROUP_OF[effect.device]]
        if group.leader.over:
            return  # What was committed when power was lost is not known here any more.
        record = group.records["device/" + effect.device]
        assert isinstance(record, DeviceRecord)
        assert effect.origin is not None
        acting = effect.origin.run
        left = any(call.origin.run == acting and not call.landed for call in record.calls)
        holder = None if record.hold is None else record.hold.run
        assert holder == acting or (holder is None and left), "no stray command"

    def check(self) -> None:
        """Safety, over the committed states."""
        taken: dict[DeviceId, RunRecord] = {}
        for group in self.groups.values():
            for record in group.records.values():
                # A run of an older era must be confirmed before it executes again.
                if (
                    isinstance(record, RunRecord)
                    and record.stage is Stage.EXECUTING
                    and record.era == group.era
                ):
                    for device in dict.fromkeys(step.device for step in record.steps):
                        assert device not in taken, f"{record.run} and {taken[device].run} both execute"
                        taken[device] = record

    @property
    def runs(self) -> list[RunRecord]:
        records = [one for group in self.groups.values() for one in group.records.values()]
        return [one for one in records if isinstance(one, RunRecord)]


class Group:
    def __init__(self, town: Town, name: GroupId) -> None:
        self.town = town
        self.name = name
        self.records: dict[str, Record] = {}
        self.history: list[dict[str, Record]] = []
        """The states before the last entries."""
        self.ballot = Ballot(0, 0)
        self.leader: Leader = Leader(self)
        self.deposed: Leader | None = None
        town.after(0, lambda: self.leader.step(self.leader.serving.begin))

    def hear(self, message: GroupMessage) -> None:
        leader = self.leader
        if self.deposed is not None and self.town.draws.chance(0.3):
            leader = self.deposed
        part = "devices" if isinstance(message.body, ToDevices) else "routines"
        leader.step(lambda step: leader.serving.parts[part].on_message(message, SOMEBODY, step))

    @property
    def era(self) -> Era:
        record = self.records.get("group", GroupRecord())
        assert isinstance(record, GroupRecord)
        return record.era

    def change(self) -> None:
        """Let the next leader begin with the committed state; its predecessor does not know for a while."""
        if self.leader.over:
            return
        self.settle()
        self.leader.serving.lease_until_ms = self.town.now_ms
        self.leader.commits = False
        self.deposed = self.leader
        self._begin()

    def lose_power(self) -> None:
        """All members lose power: they are silent for a while, and the last entries are lost."""
        if self.leader.over:
            return
        self.settle()
        self.leader.commits = False
        self.leader.end()
        lost = 1 + self.town.draws.below(MAX_LOST)
        self.records = dict(self.history[-min(lost, len(self.history))]) if self.history else {}
        self.history.clear()
        before = self.records.get("group", GroupRecord())
        assert isinstance(before, GroupRecord)
        self.records["group"] = GroupRecord(Era(1, Ballot(self.ballot.round + 1, 0)), before.eras)
        self.town.after(OUTAGE_MS, self._begin)

    def _begin(self) -> None:
        self.ballot = Ballot(self.ballot.round + 1, 0)
        self.leader = Leader(self)
        self.leader.step(self.leader.serving.begin)

    def settle(self) -> None:
        if self.deposed is not None:
            self.deposed.end()
            self.deposed = None


class Leader:
    """Commits one entry after the other, each after a round trip."""

    own = NodeId("n1")

    def __init__(self, group: Group) -> None:
        self.group, self.town = group, group.town
        self.commits = True
        self.over = False
        self.timers: dict[Timer, int] = {}
        self.calls = 0
        seats = (Seat(self.own, 0),)
        self.serving = Serving(
            config=Config(group.name, 1, 0, seats, 1000, 1),
            ballot=group.ballot,
            records=group.records,
            committed=0,
            number=0,
            program=self.town.program,
            surroundings=self,
            draws=self.town.draws.fork(1),
        )
        self.serving.lease_until_ms = float("inf")
        self.serving.parts = {"devices": Devices(self.serving), "routines": Routines(self.serving)}
        self.proposed = 0

    def step(self, act: Callable[[Step], None]) -> None:
        if self.over:
            return
        step = Step(self.town.now_ms, START_MS + self.town.now_ms)
        act(step)
        self._finish(step)

    def _finish(self, step: Step) -> None:
        while self.serving.has_work:
            while (message := self.serving.take_local()) is not None:
                part = "devices" if isinstance(message.body, ToDevices) else "routines"
                self.serving.parts[part].on_message(message, self.own, step)
            entry = self.serving.seal()
            if entry is not None:
                self.proposed += 1
                number = self.proposed
                self.town.after(20, lambda number=number, entry=entry: self._commit(number, entry))
            self.serving.on_committed(self.serving.committed, step)
        for effect in step.effects:
            self._perform(effect)

    def _commit(self, number: int, entry: Entry) -> None:
        if not self.commits:
            return
        self.group.history = [*self.group.history, dict(self.group.records)][-MAX_LOST:]
        put_all(self.group.records, entry)
        self.town.check()
        self.step(lambda step: self.serving.on_committed(number, step))

    def _perform(self, effect: object) -> None:
        match effect:
            case SetTimer():
                self.town.count += 1
                token = self.timers[effect.timer] = self.town.count
                self.town.after(effect.after_ms, lambda: self._fire(effect.timer, token))
            case CancelTimer():
                self.timers.pop(effect.timer, None)
            case ReadDevice() | CommandDevice():
                self.town.act(self, effect)
            case Observe(observation=RunTraced() as traced):
                self.town.traces.append(traced)
            case _:
                pass

    def _fire(self, timer: Timer, token: int) -> None:
        if self.timers.get(timer) == token:
            del self.timers[timer]
            self.step(lambda step: self.serving.on_timer(timer, step))

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        self.serving.parts["devices"].on_answer(event, step)

    def end(self) -> None:
        self.step(self.serving.end)
        self.over = True

    # -- what the group works with -----------------------------------------------------------------------

    def route(self, message: GroupMessage, to: NodeId | None, step: Step) -> None:
        self.town.route(message)

    def next_call(self, serving: Serving) -> int:
        self.calls += 1
        return self.calls

    def round_trip_ms(self, node: NodeId) -> float:
        return 50.0

    def probe(self, serving: Serving, device: DeviceId, step: Step) -> bool:
        return False

    def announcement(self, key: str) -> None:
        return None

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None:
        pass

    def learn_document(self, version: int, text: str, step: Step) -> None:
        pass


def everywhere(routines: list[RoutineProgram], **settings: object) -> Program:
    """Routines anchored by turns in all groups."""
    made = program(*routines, **settings)
    groups = list(DEVICES)
    clusters = tuple(
        Cluster(
            group=one.group,
            devices=one.devices,
            routines=tuple(routine.id for number, routine in enumerate(routines) if number % 3 == place),
        )
        for place, one in enumerate(made.plan.clusters)
    )
    assert len(groups) == 3
    plan = Plan(
        **{name: getattr(made.plan, name) for name in Plan.__struct_fields__} | {"clusters": clusters}
    )
    return Program(
        plan=plan, devices=made.devices, routines=made.routines, settings=made.settings, moment=made.moment
    )


def some_routines(draws: Draws, strategies: list[Strategy]) -> list[RoutineProgram]:
    devices = list(GROUP_OF)
    return [
        routine(
            *draws.sample(devices, 1 + draws.below(4)), name=f"r{number}", strategy=draws.choice(strategies)
        )
        for number in range(6)
    ]


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_every_run_ends_and_none_overlap(seed: int, lossy: bool) -> None:
    draws = Draws(100 + seed)
    strategies = list(Strategy) if seed % 2 else [draws.choice(list(Strategy))]
    made = everywhere(
        some_routines(draws, strategies),
        batch=draws.choice(list(Batch)),
        order=draws.choice(list(LockOrder)),
        flight_limit_ms=1000.0,
    )
    town = Town(made, seed)
    fired = 0
    while town.now_ms < FAULTS_MS:
        town.until(town.now_ms + draws.between(100, 2500))
        name = RoutineId(f"r{draws.below(6)}")
        group = town.groups[made.group_of_routine[name]]
        message = GroupMessage(group.name, None, None, 1, Fire(name, f"q{fired}"))
        group.leader.step(
            lambda step, group=group, message=message: group.leader.serving.parts["routines"].on_message(
                message, SOMEBODY, step
            )
        )
        fired += 1
        if draws.chance(0.15):
            group = draws.choice(list(town.groups.values()))
            if lossy and draws.chance(0.5):
                group.lose_power()
            else:
                group.change()
    town.faulty = False
    for group in town.groups.values():
        group.settle()
    town.until(FAULTS_MS + QUIET_MS)
    stuck = [(str(run.run), run.stage.name, run.to_release, run.held) for run in town.runs]
    assert stuck == []
    assert len(town.acted) > 5
    ends = [one.run for one in town.traces if isinstance(one.trace, Finished | Failed)]
    assert lossy or len(ends) == len(set(ends)), "a run ends once"
    records = [one for group in town.groups.values() for one in group.records.values()]
    assert [one for one in records if isinstance(one, RoutineRecord) and one.waiting] == []
    for one in records:
        if isinstance(one, DeviceRecord):
            assert one.hold is None and one.queue == (), f"{one.device} is locked by nobody that lives"
