"""Machines and processes: a machine outlives its processes, a process is one life.

A machine has a station, two clocks and a disk. Both clocks may be fast or slow (drift). The monotonic one is
never set, and timers run on it, like those of CLOCK_BOOTTIME. The wall clock may be ahead or behind (skew),
but never goes back: set back, it stands until the time it has shown is reached.

A process that is paused or busy gets its events late, in the order in which they would have come.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from comesh.core.effects import Effect
from comesh.core.events import Timer
from comesh.core.ids import NodeId
from comesh.core.node import AnyEvent
from comesh.core.streams import stream
from comesh.sim.disk import Disk

INBOX_EVENTS: Final = 10_000
"""Maximum messages and timers that wait for a paused or slow process; further messages are lost, as in a full
socket buffer."""


@runtime_checkable
class Bundling(Protocol):
    """A node that takes waiting events together, as a real node does."""

    def steps(self, events: Sequence[AnyEvent], now_ms: float, wall_ms: float) -> list[Effect]: ...


class Steppable(Protocol):
    """Anything that runs in the simulator: the core's Node, or a scripted node in a test."""

    @property
    def deployment(self) -> int:
        """The deployment version that it works by: every datagram carries it."""

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float) -> list[Effect]:
        """Handle an event. now_ms is by the machine's monotonic clock, wall_ms by its wall clock."""


def nonce_of(seed: int, machine: str, start: int) -> int:
    """Returns the nonce of a process, known beforehand so that a run can begin with a joined mesh."""
    return stream(seed, f"nonce {machine} {start}").word() >> 32


class Clock:
    """Two clocks of one rate: the monotonic one is never set, the wall clock never goes back."""

    __slots__ = ("_base_ms", "_shown_ms", "_since_ms", "_skew_ms", "rate")

    def __init__(self, skew_ms: float = 0.0, drift_ppm: float = 0.0) -> None:
        self.rate = 1.0 + drift_ppm / 1e6
        self._base_ms = 0.0
        self._since_ms = 0.0
        self._skew_ms = skew_ms
        self._shown_ms = skew_ms

    def monotonic_ms(self, now_ms: float) -> float:
        return self._base_ms + self.rate * (now_ms - self._since_ms)

    def both_ms(self, now_ms: float) -> tuple[float, float]:
        """Returns the monotonic and the wall clock; one call, because every step needs both."""
        monotonic_ms = self._base_ms + self.rate * (now_ms - self._since_ms)
        wall_ms = monotonic_ms + self._skew_ms
        if wall_ms < self._shown_ms:
            wall_ms = self._shown_ms
        else:
            self._shown_ms = wall_ms
        return monotonic_ms, wall_ms

    def wall_ms(self, now_ms: float) -> float:
        return self.both_ms(now_ms)[1]

    def skew(self, now_ms: float, by_ms: float) -> None:
        """Set the wall clock forward, or back."""
        self._skew_ms += by_ms
        self.wall_ms(now_ms)

    def drift(self, now_ms: float, drift_ppm: float) -> None:
        """Change the rate: both clocks gain this many microseconds per second."""
        self._base_ms = self.monotonic_ms(now_ms)
        self._since_ms = now_ms
        self.rate = 1.0 + drift_ppm / 1e6


class PendingTimer:
    """A timer that was set: its number in the engine, or None once it is due and waits in the inbox."""

    __slots__ = ("due_ms", "number")

    def __init__(self, number: int, due_ms: float) -> None:
        self.number: int | None = number
        self.due_ms = due_ms


class Process:
    """One life of a node."""

    __slots__ = ("addresses", "busy", "inbox", "machine", "node", "timers")

    def __init__(self, machine: "Machine", node: Steppable) -> None:
        self.machine = machine
        self.node = node
        self.timers: dict[Timer, PendingTimer] = {}
        self.addresses: dict[NodeId, int] = {}
        """Stations where peers were last heard from, if not the deployed ones."""
        self.inbox: deque[tuple[AnyEvent, PendingTimer | None]] = deque()
        """Events that wait; a timer only fires if it is still the pending one when its turn comes."""
        self.busy = False
        """True while a step is under way (on a slow machine)."""


class Machine:
    """A machine, named by its node; a second one from a copied card is `<node>.copy1`, and so on."""

    __slots__ = (
        "away",
        "clock",
        "disk",
        "keeps_disk",
        "name",
        "node_id",
        "paused_until_ms",
        "process",
        "revoked",
        "starts",
        "station",
        "step_ms",
    )

    def __init__(self, name: str, node_id: NodeId, station: int, clock: Clock, disk: Disk) -> None:
        self.name = name
        self.node_id = node_id
        self.station = station
        self.clock = clock
        self.disk = disk
        self.starts = 0
        """Number of processes started here, whatever the disk says: each has its own nonce."""
        self.process: Process | None = None
        self.paused_until_ms = 0.0
        self.step_ms = 0.0
        """Duration of a step: 0 unless the machine is slow."""
        self.away = False
        """True if the machine is absent: nothing starts it."""
        self.keeps_disk = False
        """True if the disk is never wiped, whatever a schedule says: it is the last one with a state."""
        self.revoked = False
        """True if the machine's certificate is revoked: no messages pass either way."""

    @property
    def boots(self) -> int:
        """Returns the highest boot number on the disk."""
        return self.disk.boot
