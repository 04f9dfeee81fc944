"""One device, several runs, and everything late, lost, repeated or landing when nobody expects it any more.

The runs are simple: ask until granted, command, wait for the outcome, release until acknowledged; now and
then one gives its attempt back and begins the next. Leaders change, and lose what they had not committed.
Checked from the device's own view: nobody else holds the lock when a command acts, and two runs never hold
it at once. In the end, with the faults over, every run has finished.
"""

from collections.abc import Callable

import pytest
from device_bench import FENCE, FLIGHT_MS, LAMP, R1, R2, R3, TIMEOUT_MS, Bench, run_of

from comesh.core.actions import Action, Origin
from comesh.core.draws import Draws
from comesh.core.effects import CommandDevice
from comesh.core.records import Outcome
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.core.work_messages import (
    Command,
    CommandState,
    LockRequest,
    LockState,
    Release,
    Released,
    ToDevices,
    Work,
    Wound,
)

FAULTS_MS = 60_000.0
PEACE_MS = 240_000.0
TICK_MS = 100.0
RUNS_EACH = 20


class Run:
    """Plays the runs of a routine one after the other, as its group would."""

    def __init__(self, race: "Race", routine: int, strategy: Strategy) -> None:
        self.race = race
        self.routine = (R1, R2, R3)[routine]
        self.strategy = strategy
        self.number = 0
        self.next()

    def next(self) -> None:
        self.number += 1
        self.run: RunId = run_of(self.routine, self.number)
        self.fired_ms = self.race.bench.now_ms
        self.attempt = 1
        self.granted: Stamp | None = None
        self.releasing = 0
        """The attempt that is being given back; the run ends with it if it is the last."""
        self.over = False

    @property
    def finished(self) -> bool:
        return self.number > RUNS_EACH

    def speak(self) -> None:
        """Repeat unanswered messages."""
        if self.finished:
            return
        if self.releasing:
            self.race.to_devices(Release(self.run, self.releasing, (LAMP,)))
        elif self.granted is None:
            request = LockRequest(self.run, self.attempt, (LAMP,), self.fired_ms, self.strategy, FENCE)
            self.race.to_devices(request)
        else:
            command = Command(
                Origin(self.run, self.attempt), LAMP, Action("on", timeout_ms=TIMEOUT_MS), FENCE
            )
            self.race.to_devices(command)

    def give_back(self, *, over: bool) -> None:
        self.releasing = self.attempt
        self.granted = None
        self.attempt += 1
        self.over = over
        self.speak()

    def hear(self, body: Work) -> None:
        match body:
            case LockState() if (body.run, body.attempt) == (self.run, self.attempt) and not self.releasing:
                answer = body.answers[0]
                if answer.refused:
                    self.give_back(over=False)
                elif answer.granted is not None and self.granted is None:
                    self.granted = answer.granted
                    self.race.check_holders()
            case CommandState() if (body.run, body.attempt) == (self.run, self.attempt) and self.granted:
                assert body.state.outcome is not Outcome.REFUSED
                if body.state.outcome is not None:
                    self.give_back(over=True)
            case Released() if body.run == self.run and self.releasing and body.attempt >= self.releasing:
                self.releasing = 0
                if self.over:
                    self.next()
            case Wound() if body.run == self.run and self.granted and self.race.draws.chance(0.5):
                self.give_back(over=False)
            case _:
                pass


class Race:
    def __init__(self, seed: int, strategies: list[Strategy]) -> None:
        self.draws = Draws(seed)
        self.bench = Bench()
        self.round = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._said = 0
        self.acted = 0
        self.peaceful = False
        self.runs = [Run(self, number, strategy) for number, strategy in enumerate(strategies)]

    def to_devices(self, body: ToDevices) -> None:
        self._carry(lambda: self.bench.say(body))

    def _carry(self, arrive: Callable[[], None], max_ms: float = 4000.0) -> None:
        """Deliver a message never, once or twice; at once or much later."""
        copies = 1 if self.peaceful else self.draws.choice((0, 1, 1, 1, 2))
        for _ in range(copies):
            late = not self.peaceful and self.draws.chance(0.2)
            self._at(self.draws.between(1.0, max_ms if late else 80.0), arrive)

    def _at(self, after_ms: float, call: Callable[[], None]) -> None:
        self._said += 1
        self._later.append((self.bench.now_ms + after_ms, self._said, call))

    def check_holders(self) -> None:
        assert len([run for run in self.runs if run.granted is not None]) <= 1

    def _act(self, command: CommandDevice) -> None:
        self.acted += 1
        assert command.origin is not None
        acting = command.origin.run
        others = [run for run in self.runs if run.granted is not None and run.run != acting]
        assert not others, f"{acting} acts while {others[0].run} holds"
        if self.peaceful or self.draws.chance(0.7):
            self._at(20.0, lambda: self.bench.answer(command.call, LAMP, {"on": True}))

    def go_on(self) -> None:
        bench = self.bench
        bench.run(TICK_MS)
        due = sorted(one for one in self._later if one[0] <= bench.now_ms)
        self._later = [one for one in self._later if one[0] > bench.now_ms]
        for _, _, call in due:
            call()
        for command in bench.take_done(CommandDevice):
            if self.peaceful or self.draws.chance(0.9):
                slow = not self.peaceful and self.draws.chance(0.4)
                within_ms = TIMEOUT_MS + FLIGHT_MS if slow else 50.0
                self._at(self.draws.between(1.0, within_ms), lambda command=command: self._act(command))
        posted, bench.posted = bench.posted, []
        for message in posted:
            for run in self.runs:
                self._carry(lambda run=run, body=message.body: run.hear(body))
        for run in self.runs:
            if self.draws.chance(0.1):
                run.speak()

    def disturb(self) -> None:
        bench = self.bench
        if self.draws.chance(0.02):
            bench.commits = False
        if not bench.commits and self.draws.chance(0.3):
            bench.commit()
        if self.draws.chance(0.02):
            self.round += 1
            bench.commits = True
            bench.lead(Ballot(self.round, 0))
        if self.draws.chance(0.05):
            bench.serving.lease_until_ms = bench.now_ms + self.draws.between(-500.0, 1000.0)
        run = self.draws.choice(self.runs)
        if self.draws.chance(0.02) and not run.releasing and not run.finished:
            run.give_back(over=self.draws.chance(0.5))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("strategy", [None, *Strategy])
def test_no_two_hold_and_nothing_strays(seed: int, strategy: Strategy | None) -> None:
    """strategy None: they are mixed."""
    race = Race(seed, list(Strategy) if strategy is None else [strategy] * 3)
    while race.bench.now_ms < FAULTS_MS:
        race.disturb()
        race.go_on()
    race.peaceful = True
    race.bench.commit()
    race.bench.serving.lease_until_ms = float("inf")
    while race.bench.now_ms < FAULTS_MS + PEACE_MS and not all(run.finished for run in race.runs):
        race.go_on()
    assert [run.number for run in race.runs] == [RUNS_EACH + 1] * 3
    assert race.acted >= 1
