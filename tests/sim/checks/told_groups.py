"""Scripted leaders of groups, with the observations that good and broken protocols make."""

from collections.abc import Sequence

from comesh.core.actions import Action, Origin, RoutineStep
from comesh.core.effects import Committed, LeaderChanged, RunTraced
from comesh.core.group.config import Config, Seat
from comesh.core.group.ledger import Ledger
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import Appended
from comesh.core.records import (
    Call,
    DeviceRecord,
    Ended,
    Entry,
    Firing,
    Gone,
    Hold,
    Record,
    RoutineRecord,
    RunRecord,
    Stage,
)
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot, Era, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.core.traces import ByHand, Trace
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.devices import Acted
from comesh.sim.checks import Checks, Promise

NODES = ("n1", "n2", "n3")


def config(group: str = "g", number: int = 1, nodes: Sequence[str] = NODES, epoch: int = 0) -> Config:
    seats = tuple(Seat(NodeId(node), 0) for node in nodes)
    return Config(GroupId(group), number, epoch, seats, 1000, 1)


ON = Action("on", timeout_ms=1000.0)


def run_id(routine: str, n: int = 1) -> RunId:
    return RunId(RoutineId(routine), 1, Stamp(1, OPENING, n))


def run(
    one: RunId, stage: Stage, devices: Sequence[str] = ("d1",), attempt: int = 1, group: str = "g"
) -> RunRecord:
    steps = tuple(RoutineStep(DeviceId(device), ON) for device in devices)
    groups = {step.device: GroupId(group) for step in steps}
    return RunRecord(one, stage, attempt, 0.0, ByHand("ann"), Strategy.SEQUENTIAL, steps, groups)


def ended(one: RunId, *waiting: RunId, reason: str = "") -> RoutineRecord:
    firings = tuple(Firing(waits, 0.0, ByHand("ann")) for waits in waiting)
    return RoutineRecord(one.routine, 1, waiting=firings, ended=Ended(one, reason))


def gone(one: RunId) -> Gone:
    return Gone("run/" + one.routine)


def held(device: str, by: RunId | None, *calls: Call) -> DeviceRecord:
    hold = None if by is None else Hold(by, 1, Strategy.SEQUENTIAL, 0.0, by.stamp)
    return DeviceRecord(DeviceId(device), hold=hold, calls=calls)


def call(by: RunId, step: int = 0, command: str = "on", *, idempotent: bool = True) -> Call:
    return Call(Origin(by, 1, step), Action(command, None, 1000.0, idempotent), 2000.0)


def act(
    device: str,
    by: RunId | None,
    sent_ms: float,
    at_ms: float,
    *,
    step: int = 0,
    action: Action = ON,
    refused: str | None = None,
) -> Acted:
    origin = None if by is None else Origin(by, 1, step)
    command = DeviceCommand(action, origin, NodeId("n1"), sent_ms)
    return Acted(at_ms, DeviceId(device), 1, command, {}, refused, sent_ms)


class Told:
    """Checks with scripted observations; each leader keeps a ledger per group, as good ones do."""

    def __init__(self, checks: Checks | None = None, log: list[Acted] | None = None) -> None:
        self.log: list[Acted] = [] if log is None else log
        self.checks = Checks(self.log) if checks is None else checks
        self.ledgers: dict[str, Ledger] = {}
        self.configs: dict[str, Config] = {}
        self.ballots: dict[str, Ballot] = {}

    def ledger(self, group: str) -> Ledger:
        return self.ledgers.setdefault(group, Ledger({}, 0))

    def lead(
        self,
        at_ms: float,
        node: str,
        of: Config | None = None,
        ballot: Ballot = OPENING,
        *,
        state: str = "serving",
        era: Era = FIRST_ERA,
        ledger: Ledger | None = None,
        alone: bool = False,
    ) -> None:
        """Report that a node leads, with the group's ledger or its own."""
        of = of or config()
        if ledger is not None:
            self.ledgers[of.group] = ledger
        has = self.ledger(of.group)
        self.configs[of.group], self.ballots[of.group] = of, ballot
        told = LeaderChanged(
            of.group,
            of,
            ballot,
            state,
            has.number,
            has.digest,
            era,
            records=has.snapshot(),
            alone=alone,
        )
        self.checks.observe(at_ms, NodeId(node), told)

    def commit(self, at_ms: float, *records: Record, node: str = "n1", group: str = "g") -> None:
        """Let the leader commit the next entry."""
        ledger = self.ledger(group)
        ledger.append(records)
        self.tell(at_ms, ledger.number, records, ledger.digest, node=node, group=group)

    def propose(self, at_ms: float, *records: Record, node: str = "n1", group: str = "g") -> None:
        """Let the leader journal the next entry without being able to count it."""
        ledger = self.ledger(group)
        ledger.append(records)
        self.write(at_ms, ledger.number, records, node=node, group=group)

    def write(self, at_ms: float, number: int, entry: Entry, *, node: str = "n1", group: str = "g") -> None:
        mark = self.configs[group].mark
        self.checks.proposals.on_written(
            at_ms, NodeId(node), Appended(mark, self.ballots[group], number, entry)
        )

    def tell(
        self, at_ms: float, number: int, entry: Entry, digest: int, *, node: str = "n1", group: str = "g"
    ) -> None:
        told = Committed(
            self.configs[group].group, self.configs[group], self.ballots[group], number, entry, digest
        )
        self.checks.observe(at_ms, NodeId(node), told)

    def trace(self, at_ms: float, one: RunId, trace: Trace) -> None:
        self.checks.observe(at_ms, NodeId("n1"), RunTraced(one, trace))

    @property
    def promises(self) -> list[Promise]:
        """End the run, and return the broken promises in order."""
        self.checks.finish()
        return [violation.promise for violation in self.checks.violations]
