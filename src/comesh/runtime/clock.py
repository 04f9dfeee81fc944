"""When it is: a clock that counts for the protocol, and wall time for epochs and schedules only.

`Clock` reads the machine. Its monotonic time counts while the machine is suspended (CLOCK_BOOTTIME). Its wall
time is believed only from a *floor* on: a machine without a battery for its clock wakes up years ago. The
floor is the newest of the day this program was made, dates that were passed in (of certificates, of the
document), and the wall time that this node last wrote down (`LastWall`).

`MeshClock` is what the node goes by:

1. the machine's clock, if it is valid, unless most nodes agree on a time that is far from it: a node that is
   an hour ahead would, while it leads, commit schedules for a time to come, and who leads after it would
   wait for an hour. If they do not agree it goes by its own, and says that it is far from the others;
2. else the median of what nodes with valid clocks say, once enough of them, or a while has passed and one;
3. else the floor, counted on from the start. While it waits for the mesh `waiting` is true.

As soon as the machine's clock is valid it is gone over to. A clock that was set from a file at startup, to
the time of the last shutdown, passes for valid; the word that it is far from the mesh tells it. What was
written down may itself be wrong (the clock once was years ahead), so a machine whose clock is below it, but
agrees with the mesh, is believed.

Wall time that is given out does not run backwards for a small step: it stands still until the clock has
caught up. A large step back is made at once, and said: epochs never go back and a schedule remembers what it
fired for, so it costs less than standing still for an hour.
"""

import contextlib
import math
import os
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from comesh.core.ids import NodeId

MADE_MS: Final = 1_793_491_200_000.0
"""2026-11-01: no clock is right that shows an earlier time. Moved on with each release."""
FAR_MS: Final = 30_000.0
"""From the mesh: worth a word."""
ENOUGH_NODES: Final = 3
"""That said the time: their median is taken without waiting for more."""
MESH_WAIT_MS: Final = 10_000.0
"""For so long a node without a valid clock waits for enough of them."""
HEARD_FOR_MS: Final = 600_000.0
"""What a node said longer ago does not count."""
MAX_NODES: Final = 64
"""Whose offsets are kept; the one heard longest ago makes room."""
MAX_ROUND_TRIP_MS: Final = 10_000.0
"""What took longer says too little about the time."""
MAX_HELD_MS: Final = 60_000.0
"""A step back by at most this is waited out."""
WRITTEN_EVERY_MS: Final = 600_000.0
LATEST_MS: Final = 253_402_300_800_000.0
"""The year 10000: later times are nonsense."""
MAX_NOTES: Final = 20

_BOOTTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic_ms() -> float:
    """Since the machine started; counts on while it is suspended, where the system can tell."""
    return time.clock_gettime_ns(_BOOTTIME) / 1e6


def system_wall_ms() -> float:
    return time.time_ns() / 1e6


class Clock:
    """The clocks of this machine. offset_ms: for tests of real nodes, the wall clock is off by so much."""

    def __init__(
        self,
        *,
        offset_ms: float = 0.0,
        monotonic: Callable[[], float] = monotonic_ms,
        system: Callable[[], float] = system_wall_ms,
    ) -> None:
        self.monotonic_ms = monotonic
        self._system = system
        self._offset_ms = offset_ms

    def wall_ms(self) -> float:
        return self._system() + self._offset_ms

    def monotonic_us(self) -> int:
        return int(self.monotonic_ms() * 1000.0)


class LastWall:
    """The last wall time that was known to be right, in a small file, replaced as a whole.

    Not flushed: after a loss of power an older one is there, and that is a floor too.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "wall"
        self._next = directory / "wall.new"

    def read(self) -> float:
        """0: it was never written, or cannot be read."""
        try:
            with self._path.open("rb") as file:
                wall_ms = float(file.read(64))
        except (OSError, ValueError):
            return 0.0
        return wall_ms if 0.0 <= wall_ms <= LATEST_MS else 0.0

    def write(self, wall_ms: float) -> None:
        """A disk that does not take it keeps the older one."""
        with contextlib.suppress(OSError):
            self._next.write_text(f"{wall_ms:.0f}\n")
            os.replace(self._next, self._path)


class MeshClock:
    """The time that a node goes by."""

    def __init__(
        self,
        clock: Clock,
        *,
        last: LastWall | None = None,
        floor_ms: float = MADE_MS,
        told: Callable[[str], None] = lambda note: None,
        mesh_size: int = 1,
    ) -> None:
        """floor_ms: the newest date that is known for certain. told: gets what a person should know.
        mesh_size: how many nodes there are."""
        self._mesh_size = min(mesh_size, MAX_NODES)
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        self.counters: Counter[str] = Counter()
        self.source = ""
        """Where the time comes from: own, mesh, waiting or guessed."""
        self.monotonic_ms = clock.monotonic_ms
        self.monotonic_us = clock.monotonic_us
        self._clock = clock
        self._last = last
        self._told = told
        self._floor_ms = max(MADE_MS, floor_ms)
        self._written_ms = 0.0 if last is None else last.read()
        self._started_ms = clock.monotonic_ms()
        self._written_at_ms = -math.inf
        self._heard: dict[NodeId, tuple[float, float]] = {}
        """Wall time minus this machine's monotonic time, and when it was heard; the oldest first."""
        self._mesh_offset_ms = 0.0
        self._given_ms = -math.inf
        self._is_far = False
        self._why = ""
        """What was said last of where the time comes from, and how far it is."""
        self._is_outvoted = False
        """Most nodes agree on a time that is far from this machine's."""

    # -- what others say ---------------------------------------------------------------------------------

    def heard(self, node: NodeId, their_wall_ms: float, round_trip_ms: float, *, valid: bool = True) -> None:
        """A node said what time it is; valid: it goes by its own clock, which is valid."""
        if not valid:
            self.counters["times of nodes that do not know it"] += 1
        elif not (self._floor_ms <= their_wall_ms <= LATEST_MS) or not (
            0.0 <= round_trip_ms <= MAX_ROUND_TRIP_MS
        ):
            self.counters["times that cannot be right"] += 1
        else:
            now_ms = self.monotonic_ms()
            self._heard.pop(node, None)
            if len(self._heard) >= MAX_NODES:
                self._heard.pop(next(iter(self._heard)))
            self._heard[node] = (their_wall_ms + round_trip_ms / 2 - now_ms, now_ms)
            self._compare()

    def mesh_wall_ms(self) -> float | None:
        """The median of the others; None: nobody said."""
        now_ms = self.monotonic_ms()
        self._forget(now_ms)
        if not self._heard:
            return None
        return now_ms + statistics.median(offset_ms for offset_ms, _ in self._heard.values())

    def _forget(self, now_ms: float) -> None:
        while self._heard:
            oldest = next(iter(self._heard))
            if now_ms - self._heard[oldest][1] <= HEARD_FOR_MS:
                return
            del self._heard[oldest]

    def _compare(self) -> None:
        """Say once that the own clock is far from the others, and once that it no longer is."""
        mesh_ms = self.mesh_wall_ms()
        own_ms = self._clock.wall_ms()
        if mesh_ms is None or not self._is_valid(own_ms):
            return
        off_ms = own_ms - mesh_ms
        if abs(off_ms) > FAR_MS and not self._is_far:
            self._is_far = True
            way = "ahead of" if off_ms > 0 else "behind"
            self._why = (
                f"this machine's clock is {abs(off_ms) / 1000:.0f} s {way} what {len(self._heard)} other "
                "nodes say. It is used unless most of them agree. Check its time service"
            )
            self._say(self._why)
        elif abs(off_ms) <= FAR_MS / 2 and self._is_far:
            self._is_far = False
            self._say("this machine's clock agrees with the other nodes again")
        self._is_outvoted = self._is_far and self._most_agree_on(mesh_ms)

    def _most_agree_on(self, mesh_ms: float) -> bool:
        """More than half of all that were heard and this node; and of half of the mesh at least: the first
        two that answer do not speak for all."""
        offset_ms = mesh_ms - self.monotonic_ms()
        agree = sum(abs(one_ms - offset_ms) <= FAR_MS for one_ms, _ in self._heard.values())
        return 2 * agree > max(len(self._heard) + 1, self._mesh_size // 2)

    # -- what we go by -----------------------------------------------------------------------------------

    @property
    def valid(self) -> bool:
        """Whether others may go by what this node says. Not if it has it from them: a few nodes without a
        clock would believe each other."""
        self.wall_ms()
        return self.source == "own"

    @property
    def trouble(self) -> str:
        """What a person should look after; empty: this machine's clock is set, and agrees with the others."""
        return self._why if self.source != "own" or self._is_far else ""

    @property
    def waiting(self) -> bool:
        """Whether it is worth waiting for the mesh before anything is done by the wall clock."""
        self.wall_ms()
        return self.source == "waiting"

    def raise_floor(self, date_ms: float) -> None:
        """A date that has passed for certain, such as that of a certificate that was just issued."""
        if date_ms <= LATEST_MS:
            self._floor_ms = max(self._floor_ms, date_ms)

    def wall_ms(self) -> float:
        own_ms = self._clock.wall_ms()
        if self._is_outvoted:
            now_ms = self._outvoted(own_ms)
        elif self._is_valid(own_ms):
            self._become("own", "this machine's clock is set now: the time is its own")
            now_ms = own_ms
        else:
            now_ms = self._without_own()
        self._write_down(now_ms)
        back_ms = self._given_ms - now_ms
        if 0.0 < back_ms <= MAX_HELD_MS:
            return self._given_ms
        if MAX_HELD_MS < back_ms < math.inf:
            self._say(f"the time went back by {back_ms / 1000:.0f} s")
        self._given_ms = now_ms
        return now_ms

    def _is_valid(self, own_ms: float) -> bool:
        if own_ms < self._floor_ms or own_ms > LATEST_MS:
            return False
        if own_ms >= self._written_ms - FAR_MS:  # a time service may have put it back a little since
            return True
        mesh_ms = self.mesh_wall_ms()
        if mesh_ms is None or abs(own_ms - mesh_ms) > FAR_MS:
            return False
        self._written_ms = own_ms
        return True

    def _outvoted(self, own_ms: float) -> float:
        """The time of the others; counted on when nobody was heard for a while."""
        mesh_ms = self.mesh_wall_ms()
        if mesh_ms is not None:
            self._mesh_offset_ms = mesh_ms - self.monotonic_ms()
        off_s = (own_ms - self.monotonic_ms() - self._mesh_offset_ms) / 1000
        self._become(
            "mesh",
            f"this machine's clock is {abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} what most "
            "nodes say, so their time is used. Set the clock, or let its time service reach a server",
        )
        return self.monotonic_ms() + self._mesh_offset_ms

    def _without_own(self) -> float:
        """The machine's clock is not valid."""
        mesh_ms = self.mesh_wall_ms()
        waited_ms = self.monotonic_ms() - self._started_ms
        if mesh_ms is not None and (
            self.source == "mesh" or len(self._heard) >= ENOUGH_NODES or waited_ms >= MESH_WAIT_MS
        ):
            self._become(
                "mesh",
                f"this machine's clock is not set; the time is the median of {len(self._heard)} other nodes. "
                "Set the clock, or let its time service reach a server",
            )
            self._mesh_offset_ms = mesh_ms - self.monotonic_ms()
        if self.source == "mesh":  # also when nobody was heard for a while: it is counted on
            return self.monotonic_ms() + self._mesh_offset_ms
        if waited_ms < MESH_WAIT_MS:
            self._become("waiting", "this machine's clock is not set; other nodes are asked for the time")
        else:
            self._become(
                "guessed",
                "this machine's clock is not set, and no other node says the time: it is counted on from the "
                "last time known. Epochs and schedules come late until the clock is set",
            )
        return max(self._floor_ms, self._written_ms) + waited_ms

    def _write_down(self, now_ms: float) -> None:
        at_ms = self.monotonic_ms()
        if self._last is None or at_ms - self._written_at_ms < WRITTEN_EVERY_MS:
            return
        if self.source in ("own", "mesh"):
            self._written_at_ms = at_ms
            self._last.write(now_ms)

    def _become(self, source: str, note: str) -> None:
        if self.source == source:
            return
        first, self.source = not self.source, source
        if source != "own":
            self._why = note
        if not (first and source == "own"):
            self._say(note)

    def _say(self, note: str) -> None:
        self.notes.append(note)
        self._told(note)
