"""Compares what nodes say of each other with the truth: detections and false alarms.

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
    """How the other nodes detected one crash; times are from the crash on."""

    node: NodeId
    crashed_at_ms: float
    first_after_ms: float | None
    last_after_ms: float | None
    known_by: int
    of: int
    """Number of nodes that could have detected it: known_by, and those that ran all the time without
    noticing."""
    over: bool
    """True if the node ran again before all knew, or before the end, so that the others had no need to
    notice."""


class _Crash:
    __slots__ = ("at_ms", "known", "node", "over", "waiting")

    def __init__(self, node: NodeId, at_ms: float, waiting: set[NodeId]) -> None:
        self.node = node
        self.at_ms = at_ms
        self.waiting = waiting
        self.known: dict[NodeId, float] = {}
        self.over = False


class MembershipWatch:
    """Observes the membership of a world; make it before the world runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives_seen = 0
        self._running: Counter[NodeId] = Counter()
        """Processes by node, at the last observation."""
        self._crashes: list[_Crash] = []
        self._open: dict[NodeId, _Crash] = {}
        self.false_alarms: Counter[str] = Counter()
        """Number of times a running node was called suspect, and dead."""
        self.changes = 0
        world.observers.append(self._on_observation)

    def detections(self) -> list[Detection]:
        """Returns the detections of every crash so far, in order of time."""
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
        """Update the lives of processes since the last observation."""
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
