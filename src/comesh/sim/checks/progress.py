"""Checks progress (promise 5): with faults over, every waiting run starts and every group serves within a
bound.

`begin` when the last fault is over, `judge` as often as one likes from then on. A run has the bound for
getting its locks, the time of its commands and the bound for executing, and the bound again for releasing. A
firing that waits for the run before it is judged from when its own turn comes: its routine has no run. An
optimistic run may be refused for as long as others want its devices; it is judged only once nobody else had
them for that time.
"""

from collections.abc import Iterable

from comesh.core.ids import GroupId
from comesh.core.records import Stage
from comesh.core.stamps import RunId
from comesh.core.strategies import AtDevices, strategy_of
from comesh.sim.checks.history import Histories
from comesh.sim.checks.lives import RunsSince
from comesh.sim.checks.locks import Locks
from comesh.sim.checks.runs import LiveRun, Runs
from comesh.sim.checks.violation import Promise, Verdicts


class Progress:
    def __init__(
        self,
        verdicts: Verdicts,
        histories: Histories,
        runs: Runs,
        locks: Locks,
        *,
        groups: Iterable[GroupId],
        runs_since: RunsSince,
        bound_ms: float,
    ) -> None:
        self._verdicts = verdicts
        self._histories = histories
        self._runs = runs
        self._locks = locks
        self._groups = tuple(groups)
        self._runs_since = runs_since
        self._bound_ms = bound_ms
        self._begun_ms = 0.0
        self._told: set[RunId | GroupId] = set()

    def begin(self, now_ms: float) -> None:
        self._begun_ms = now_ms
        self._told.clear()

    def judge(self, now_ms: float) -> bool:
        """Report overdue progress, once each; returns True if nothing is overdue."""
        before = len(self._told)
        for group in self._groups:
            since_ms = self._unserved_since_ms(group)
            if since_ms is not None and now_ms - max(since_ms, self._begun_ms) > self._bound_ms:
                self._tell(now_ms, group, f"nobody serves {group} since {since_ms / 1000:.3f} s")
        for of_group in self._runs.live.values():
            busy = {live.run.routine for live in of_group.values() if live.stage is not None}
            for live in of_group.values():
                waits = live.stage is None and live.run.routine in busy
                allowed_ms = None if waits else self._allowed_ms(live)
                if allowed_ms is None or now_ms - max(live.since_ms, self._begun_ms) <= allowed_ms:
                    continue
                if not self._may_be_refused(live, now_ms - allowed_ms):
                    self._tell_run(now_ms, live)
        return len(self._told) == before

    def _unserved_since_ms(self, group: GroupId) -> float | None:
        history = self._histories.groups.get(group)
        if history is None:
            return 0.0
        leader = history.leader
        if leader is None:
            return history.left_ms
        # Nothing dies in a quiet phase, so a node that is dead now was dead when the phase began.
        return None if self._runs_since(leader.node, leader.since_ms) else leader.since_ms

    def _allowed_ms(self, live: LiveRun) -> float:
        return self._bound_ms + (live.budget_ms if live.stage is Stage.EXECUTING else 0.0)

    def _may_be_refused(self, live: LiveRun, since_ms: float) -> bool:
        if live.stage is not Stage.ACQUIRING_LOCKS or live.strategy is None:
            return False
        refused = strategy_of(live.strategy).uses(AtDevices.REFUSE)
        return refused and self._locks.contended(live.devices, live.run, since_ms)

    def _tell(self, now_ms: float, group: GroupId, what: str) -> None:
        if group not in self._told:
            self._told.add(group)
            self._verdicts.broken(Promise.PROGRESS, now_ms, what, group=group)

    def _tell_run(self, now_ms: float, live: LiveRun) -> None:
        if live.run not in self._told:
            self._told.add(live.run)
            stage = "waiting" if live.stage is None else live.stage.name
            what = f"{live.run} is {stage} since {live.since_ms / 1000:.3f} s"
            self._verdicts.broken(Promise.PROGRESS, now_ms, what, runs=(live.run,), devices=live.devices)
