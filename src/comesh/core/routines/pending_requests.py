"""What must be said until it is answered.

An owner (a run, or the watching of devices) says at any time what it wants said now, each under a key. What
is new is said at once, what is still wanted is repeated, what is wanted no more is forgotten. So a run need
not remember what it sent: its record says what it wants, also to the next leader. Between repetitions passes
more time each time, until there is reason to think that the group can be reached again.
"""

from collections.abc import Iterable

import msgspec

from comesh.core.group.serving import Serving
from comesh.core.ids import GroupId
from comesh.core.step import Step
from comesh.core.traces import Trace
from comesh.core.work_messages import Command, Work

PART = "routines"
"""The name of this part in the timers of a group."""
RESEND = "resend"
JITTER = 0.1
"""Repetitions of many runs spread by this fraction, so that they do not come in step."""


class PendingRequest(msgspec.Struct, frozen=True):
    key: tuple[str, str, int]
    """What for, of what, and which attempt or step. The body may change under one key without haste."""
    to: GroupId
    body: Work
    trace: Trace | None = None
    """What to tell of it when it is first said."""
    said: bool = False
    """By somebody else, on the owner's behalf: it is only repeated."""


class _Open:
    __slots__ = ("due_ms", "interval_ms", "pending")

    def __init__(self, pending: PendingRequest, due_ms: float, interval_ms: float) -> None:
        self.pending = pending
        self.due_ms = due_ms
        self.interval_ms = interval_ms


class PendingRequests:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._open: dict[str, dict[tuple[str, str, int], _Open]] = {}
        self._timers: dict[str, float] = {}
        """When the timer of an owner is due."""

    def keep(self, owner: str, wanted: Iterable[PendingRequest], step: Step) -> list[PendingRequest]:
        """From now on this owner wants these; those that are new are said, if nobody has, and returned."""
        before = self._open.pop(owner, {})
        after: dict[tuple[str, str, int], _Open] = {}
        fresh: list[PendingRequest] = []
        for pending in wanted:
            known = before.get(pending.key)
            if known is None:
                interval_ms = self._serving.settings.request_resend_ms
                after[pending.key] = _Open(pending, step.now_ms + self._jittered(interval_ms), interval_ms)
                if not pending.said:
                    self._say(owner, pending)
                fresh.append(pending)
            else:
                known.pending = pending
                after[pending.key] = known
        if after:
            self._open[owner] = after
        self._set_timer(owner, step)
        return fresh

    def on_timer(self, owner: str, step: Step) -> None:
        """Repeat what is due: request_resend_ms after the first time, then doubling to its maximum."""
        self._timers.pop(owner, None)
        for known in self._open.get(owner, {}).values():
            if known.due_ms <= step.now_ms:
                max_ms = self._serving.settings.max_request_resend_ms
                self._repeat(owner, known, min(2.0 * known.interval_ms, max_ms), step)
        self._set_timer(owner, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        """Repeat now what was repeated to this group before, and wait as after the first time."""
        first_ms = self._serving.settings.request_resend_ms
        for owner, of_owner in self._open.items():
            for known in of_owner.values():
                if known.pending.to == group and known.interval_ms > first_ms:
                    self._repeat(owner, known, first_ms, step)
            self._set_timer(owner, step)

    def _say(self, owner: str, pending: PendingRequest) -> None:
        """A command that is wanted no more when it may be said, for its run was stopped, is not."""
        if isinstance(pending.body, Command):
            self._serving.send(pending.to, pending.body, lambda: self._is_wanted(owner, pending))
        else:
            self._serving.send(pending.to, pending.body)

    def _is_wanted(self, owner: str, pending: PendingRequest) -> bool:
        known = self._open.get(owner, {}).get(pending.key)
        return known is not None and known.pending.body == pending.body

    def _repeat(self, owner: str, known: _Open, interval_ms: float, step: Step) -> None:
        known.interval_ms = interval_ms
        known.due_ms = step.now_ms + self._jittered(interval_ms)
        self._say(owner, known.pending)

    def _jittered(self, interval_ms: float) -> float:
        return interval_ms * self._serving.draws.between(1.0 - JITTER, 1.0 + JITTER)

    def _set_timer(self, owner: str, step: Step) -> None:
        known = self._open.get(owner)
        if not known:
            if self._timers.pop(owner, None) is not None:
                self._serving.cancel_timer(PART, RESEND, owner, step)
            return
        due_ms = min([one.due_ms for one in known.values()])
        if self._timers.get(owner) != due_ms:
            self._timers[owner] = due_ms
            self._serving.set_timer(PART, RESEND, owner, max(0.0, due_ms - step.now_ms), step)
