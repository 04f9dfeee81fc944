"""The disk of a machine: a journal whose tail may not be durable yet.

What was written and flushed survives everything but a wipe. What was only written is safe from a process
that ends, and from power loss once it is flush_ms old; of what is younger a random first part survives. Under
strict durability nothing is taken as safe that was not flushed, so that all of the rest is lost.

A journal belongs to the machine it was written on. Its store id is drawn when it is created; only the first
one of each machine was there when the deployment was initialised. A full disk takes no record of a process;
the room for boot numbers and marks of lost power is reserved.
"""

from collections import deque

from comesh.core.draws import Draws
from comesh.core.journal import BootRaised, Image, JournalRecord, PowerLost
from comesh.core.streams import stream


class Disk:
    __slots__ = ("_durable", "_flush_ms", "_tail", "full", "initialised", "lost_power", "store")

    def __init__(self, store: int, *, initialised: bool, flush_ms: float | None) -> None:
        """Make a disk; flush_ms None: durability is strict."""
        self.store = store
        self.initialised = initialised
        self.full = False
        self.lost_power = False
        """True if power was lost since a process last started from this disk."""
        self._flush_ms = flush_ms
        self._durable = Image()
        self._tail: deque[tuple[float, JournalRecord]] = deque()

    @property
    def boot(self) -> int:
        """The boot number, which is always flushed."""
        return self._durable.boot

    @property
    def unflushed(self) -> int:
        """Returns how many records are written and not known to be durable."""
        return len(self._tail)

    def write(self, record: JournalRecord, *, flush: bool, now_ms: float) -> None:
        if flush:
            self._settle(float("inf"))
            self._durable.apply(record)
        else:
            self._age(now_ms)
            self._tail.append((now_ms, record))

    def image(self) -> Image:
        """Returns all that was written, folded; the caller owns the result."""
        image = self._durable.copy()
        for _, record in self._tail:
            image.apply(record)
        return image

    def raise_boot(self) -> int:
        """Raise the boot number for the process that starts now, and return it."""
        boot = self._durable.boot + 1
        self.write(BootRaised(boot), flush=True, now_ms=0.0)
        return boot

    def lose_power(self, now_ms: float, draws: Draws) -> int:
        """Lose power; returns how many records are gone."""
        self._age(now_ms)
        written = len(self._tail)
        if self._flush_ms is not None:
            for _ in range(draws.below(written + 1)):
                self._durable.apply(self._tail.popleft()[1])
            self.lost_power = self.lost_power or self.boot > 0
        lost = len(self._tail)
        self._tail.clear()
        return lost

    def take_lost_power(self) -> bool:
        """Returns whether power was lost since the last start; the journal records it from now on."""
        lost_power, self.lost_power = self.lost_power, False
        if lost_power:
            self.write(PowerLost(), flush=True, now_ms=0.0)
        return lost_power

    def copied(self, store: int) -> "Disk":
        """Returns a copy of this card for another machine: a journal of a stranger.

        It has a store of its own, no genesis rights and none of the configs, so that two processes from one
        card never share a seat. The boot number, tombstones and documents are as they are here.
        """
        twin = Disk(store, initialised=False, flush_ms=self._flush_ms)
        twin._durable = self.image()
        twin._durable.configs.clear()
        return twin

    def _age(self, now_ms: float) -> None:
        """Fold in records that have become durable with time."""
        if self._flush_ms is not None and self._tail:
            self._settle(now_ms - self._flush_ms)

    def _settle(self, up_to_ms: float) -> None:
        tail = self._tail
        while tail and tail[0][0] <= up_to_ms:
            self._durable.apply(tail.popleft()[1])


def store_of(seed: int, machine: str, number: int) -> int:
    """Returns the store id of a machine's disk, counted from 1: positive, as those of real journals are."""
    return 1 + (stream(seed, f"store {machine} {number}").word() >> 16)
