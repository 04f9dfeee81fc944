"""Attaches all checks of the promises to a world: each observation is judged when it is made.

Not attaching them costs nothing and changes nothing: checks only listen. Acts of devices are judged in their
place among the commits, because the log is read up before each of them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from comesh.core.effects import CommitKnown, Committed, LeaderChanged, Observation, RunTraced
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.program import Program
from comesh.core.stamps import RunId
from comesh.drivers.virtual.devices import Acted
from comesh.sim.checks.chronicle import Chronicle
from comesh.sim.checks.disks import Disks, Lacking, nobody
from comesh.sim.checks.elections import Elections, Unfounded, nothing
from comesh.sim.checks.history import UNTOLD, Histories
from comesh.sim.checks.lives import Lives, RunsSince, always
from comesh.sim.checks.locks import Locks
from comesh.sim.checks.orders import Orders
from comesh.sim.checks.progress import Progress
from comesh.sim.checks.proposals import Proposals
from comesh.sim.checks.runs import Runs
from comesh.sim.checks.violation import BrokenPromiseError, Loss, Promise, Violation
from comesh.sim.world import World

MAX_VIOLATIONS: Final = 100
"""Maximum violations kept; further ones are only counted, because one fault shows in many ways."""


class Checks:
    """All checks of one run, with `violations` and `losses`. raises: the first violation ends the run, as an
    error."""

    def __init__(
        self,
        log: Sequence[Acted],
        programs: Iterable[Program] = (),
        *,
        runs_since: RunsSince = always,
        lacking: Lacking = nobody,
        unfounded: Unfounded = nothing,
        instant_ms: float = 0.0,
        raises: bool = False,
    ) -> None:
        self.violations: list[Violation] = []
        self.more_violations = 0
        self.losses: list[Loss] = []
        self.groups: tuple[GroupId, ...] = ()
        genesis: dict[GroupId, tuple[NodeId, ...]] = {}
        for program in programs:
            genesis |= program.plan.genesis
            self.groups = tuple(sorted(program.plan.genesis))
        self._raises = raises
        self._runs_since = runs_since
        self._log = log
        self._read = len(log)
        self._chronicle = Chronicle()
        self.runs = Runs(self, instant_ms=instant_ms)
        self.locks = Locks(self)
        self.proposals = Proposals(self)
        self.histories = Histories(
            self,
            self.proposals,
            (self.runs, self.locks, Orders(self)),
            genesis=genesis,
            runs_since=runs_since,
            lacking=lacking,
            unfounded=unfounded,
        )
        self._handlers: dict[type, Callable[[float, NodeId, Any], None]] = {
            Committed: self._on_committed,
            CommitKnown: self._on_known,
            LeaderChanged: self._on_leader,
            RunTraced: self.runs.on_traced,
        }

    @classmethod
    def attach(cls, world: World, *programs: Program, raises: bool = False) -> "Checks":
        """Attach to a world, before its first step."""
        elections = Elections(world.machines)
        checks = cls(
            world.devices.log,
            programs,
            runs_since=Lives(world).runs_since,
            lacking=Disks(world.machines).lacking,
            unfounded=elections.unfounded,
            raises=raises,
        )
        world.observers.append(checks.observe)
        world.writers.append(checks.proposals.on_written)
        world.writers.append(elections.on_written)
        return checks

    def observe(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        handler = self._handlers.get(type(observation))
        if handler is not None:
            handler(now_ms, node, observation)

    def progress(self, bound_ms: float) -> Progress:
        """Returns the check for a quiet phase, for the groups of the last program."""
        return Progress(
            self,
            self.histories,
            self.runs,
            self.locks,
            groups=self.groups,
            runs_since=self._runs_since,
            bound_ms=bound_ms,
        )

    def finish(self) -> None:
        """End the run: judge what was still pending."""
        self._read_log()
        self.runs.judge_missing(float("inf"))

    def _on_committed(self, now_ms: float, node: NodeId, told: Committed, *, known: bool = False) -> None:
        if len(self._log) > self._read:
            self._read_log()
        self._chronicle.note(now_ms, node, told)
        self.histories.on_committed(now_ms, node, told, known=known)

    def _on_known(self, now_ms: float, node: NodeId, told: CommitKnown) -> None:
        """A member says that an entry is committed; its leader may say so later, or never."""
        leader = told.config.nodes[told.ballot.rank]
        for number, entry in enumerate(told.entries, told.first):
            committed = Committed(told.group, told.config, told.ballot, number, entry, UNTOLD)
            self._on_committed(now_ms, leader, committed, known=True)

    def _on_leader(self, now_ms: float, node: NodeId, told: LeaderChanged) -> None:
        if len(self._log) > self._read:
            self._read_log()
        self._chronicle.note(now_ms, node, told)
        self.histories.on_leader(now_ms, node, told)

    def _read_log(self) -> None:
        while self._read < len(self._log):
            act = self._log[self._read]
            self._read += 1
            self._chronicle.note(act.at_ms, act.command.by, act)
            self.locks.on_act(act)

    # -- what the checkers say ---------------------------------------------------------------------------

    def broken(
        self,
        promise: Promise,
        at_ms: float,
        what: str,
        *,
        group: GroupId | None = None,
        runs: Collection[RunId] = (),
        devices: Collection[DeviceId] = (),
    ) -> None:
        if len(self.violations) >= MAX_VIOLATIONS:
            self.more_violations += 1
            return
        # Progress violations without a leader concern leaders alone.
        entries = promise is not Promise.PROGRESS
        history = self._chronicle.tell(group, runs, devices, entries=entries)
        violation = Violation(promise, at_ms, what, history)
        self.violations.append(violation)
        if self._raises:
            raise BrokenPromiseError(violation)

    def lost(self, loss: Loss) -> None:
        self.losses.append(loss)
