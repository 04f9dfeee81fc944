"""Repeats requests to other groups until they are answered.

An owner (a run, or the watching of devices) lists at any time the requests that it wants sent, each under a
key. New ones are sent at once, listed ones are repeated, all others are forgotten. So a run need not remember
what it sent: its record says what it wants, also to the next leader. The time between repetitions grows until
the group seems to be reachable again.
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
"""Repetitions of many runs spread by this fraction, so that they do not coincide."""


class PendingRequest(msgspec.Struct, frozen=True):
    key: tuple[str, str, int]
    """Purpose, subject, and attempt or step. A changed body under one key waits for the next repetition."""
    to: GroupId
    body: Work
    trace: Trace | None = None
    """The trace of its first sending."""
    said: bool = False
    """True if another group sent it first, on the owner's behalf: it is only repeated."""


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
        """Due times of the owners' timers."""

    def keep(self, owner: str, wanted: Iterable[PendingRequest], step: Step) -> list[PendingRequest]:
        """Replace an owner's requests. New ones are returned, and sent unless another group has done so."""
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
        """Repeat the requests that are due: after request_resend_ms, then doubling up to its maximum."""
        self._timers.pop(owner, None)
        for known in self._open.get(owner, {}).values():
            if known.due_ms <= step.now_ms:
                max_ms = self._serving.settings.max_request_resend_ms
                self._repeat(owner, known, min(2.0 * known.interval_ms, max_ms), step)
        self._set_timer(owner, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        """The group is reachable again: repeat its requests now, and reset their intervals."""
        first_ms = self._serving.settings.request_resend_ms
        for owner, of_owner in self._open.items():
            for known in of_owner.values():
                if known.pending.to == group and known.interval_ms > first_ms:
                    self._repeat(owner, known, first_ms, step)
            self._set_timer(owner, step)

    def _say(self, owner: str, pending: PendingRequest) -> None:
        """Send a request. A command is dropped if its run was stopped before it could be sent."""
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
