"""Watches what nodes say of each other and holds it against what is so: detections and false alarms.

A crash is *detected* by a node when it says `dead` of it while no process of that name runs. Saying
`suspect` or `dead` of a node whose process runs (even paused, slow or cut off) is a false one.
"""

from collections import Counter

import msgspec

from comesh.core.effects import MemberChanged, Observation
from comesh.core.ids import NodeId
from comesh.sim.lives import LifeChange
from comesh.sim.world import World


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """How the others came to know of one crash; times are from the crash on."""

    node: NodeId
    crashed_at_ms: float
    first_after_ms: float | None
    last_after_ms: float | None
    known_by: int
    of: int
    """known_by, and those that ran all the time since the crash without noticing."""
    over: bool
    """The node ran again before all knew, or before the end: whoever had not noticed had no need to."""


class _Crash:
    __slots__ = ("at_ms", "known", "node", "over", "waiting")

    def __init__(self, node: NodeId, at_ms: float, waiting: set[NodeId]) -> None:
        self.node = node
        self.at_ms = at_ms
        self.waiting = waiting
        self.known: dict[NodeId, float] = {}
        self.over = False


class MembershipWatch:
    """An observer of a world; make it before the world runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives_seen = 0
        self._running: Counter[NodeId] = Counter()
        """Processes by node, as of the last look."""
        self._crashes: list[_Crash] = []
        self._open: dict[NodeId, _Crash] = {}
        self.false_alarms: Counter[str] = Counter()
        """How often a node that runs was called suspect, and dead."""
        self.changes = 0
        world.observers.append(self._on_observation)

    def detections(self) -> list[Detection]:
        """Of every crash so far, in order of time."""
        self._catch_up()
        return [
            Detection(
                node=crash.node,
                crashed_at_ms=crash.at_ms,
                first_after_ms=min(crash.known.values(), default=None),
                last_after_ms=max(crash.known.values(), default=None),
                known_by=len(crash.known),
                of=len(crash.known) + len(crash.waiting),
                over=crash.over,
            )
            for crash in self._crashes
        ]

    def _on_observation(self, now_ms: float, observer: NodeId, observation: Observation) -> None:
        if not isinstance(observation, MemberChanged):
            return
        self.changes += 1
        if observation.state not in ("suspect", "dead"):
            return
        self._catch_up()
        node = observation.node
        crash = self._open.get(node)
        if crash is None:
            if self._world.runs(node):
                self.false_alarms[observation.state] += 1
        elif observation.state == "dead":
            crash.known.setdefault(observer, now_ms - crash.at_ms)
            crash.waiting.discard(observer)

    def _catch_up(self) -> None:
        """Take in which processes began and ended since the last look."""
        lives = self._world.lives
        while self._lives_seen < len(lives):
            life = lives[self._lives_seen]
            self._lives_seen += 1
            node = self._world.node_of[life.machine]
            if life.change is LifeChange.STARTED:
                self._running[node] += 1
                crash = self._open.pop(node, None)
                if crash is not None:
                    crash.over = True
                continue
            self._running[node] -= 1
            for crash in self._open.values():
                crash.waiting.discard(node)
            if life.change in (LifeChange.CRASHED, LifeChange.KILLED) and not self._running[node]:
                crash = _Crash(node, life.at_ms, {other for other, count in self._running.items() if count})
                self._crashes.append(crash)
                self._open[node] = crash
