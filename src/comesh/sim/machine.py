"""What a process runs on, and the process: a machine outlives its processes, a process is one life.

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
"""What waits for a paused or slow process; further messages are lost, as in a full socket buffer."""


@runtime_checkable
class Bundling(Protocol):
    """It takes events that waited together, as a real node does."""

    def steps(self, events: Sequence[AnyEvent], now_ms: float, wall_ms: float) -> list[Effect]: ...


class Steppable(Protocol):
    """Anything that runs in the simulator: the core's Node, or a few scripted lines in a test."""

    @property
    def deployment(self) -> int:
        """The version that it works by now: every datagram carries it."""

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float) -> list[Effect]:
        """now_ms is by the machine's monotonic clock, wall_ms by its wall clock."""


def nonce_of(seed: int, machine: str, start: int) -> int:
    """The nonce of a process, known beforehand to whoever wants to begin with a mesh that is joined."""
    return stream(seed, f"nonce {machine} {start}").word() >> 32


class Clock:
    """Two clocks of one rate: the monotonic one is never set, the wall clock never shows less than before."""

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
        """The monotonic and the wall clock; every step asks, so it is one call."""
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
        """From now on both clocks gain this many microseconds per second."""
        self._base_ms = self.monotonic_ms(now_ms)
        self._since_ms = now_ms
        self.rate = 1.0 + drift_ppm / 1e6


class PendingTimer:
    """A timer that was set: the engine's number of it, or None once it is due and waits in the inbox."""

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
        """Where peers were last heard from, where that is not the station they were deployed at."""
        self.inbox: deque[tuple[AnyEvent, PendingTimer | None]] = deque()
        """Events that wait; a timer only fires if it is still the pending one when its turn comes."""
        self.busy = False
        """A step is under way (on a slow machine)."""


class Machine:
    """Named by its node; a second one from a copied card is `<node>.copy1`, and so on."""

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
        """How often a process started here, whatever the disk says: each has its own nonce."""
        self.process: Process | None = None
        self.paused_until_ms = 0.0
        self.step_ms = 0.0
        """How long a step takes: 0 unless the machine is slow."""
        self.away = False
        """It is not there yet, or not any more: nothing starts it."""
        self.keeps_disk = False
        """Whatever a schedule says: it is the last disk that has something."""
        self.revoked = False
        """Its certificate is: nobody hears it, and it hears nobody."""

    @property
    def boots(self) -> int:
        """The highest boot number on the disk."""
        return self.disk.boot
