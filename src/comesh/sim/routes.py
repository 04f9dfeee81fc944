"""Shortest paths over the stations that relay now: between all stations, computed when first needed.

Paths are shortest in hops, as the paper routes (section 5: "Dijkstra's shortest paths", every hop the
same). Of several, the one through the neighbour that comes first in a fixed shuffled order of each
station is taken, so that ties do not all bend to the corner with the low numbers.

Breadth-first searches run for 512 sources at once: every station has one bit per source, a level of all
searches is a handful of numpy operations on 64-bit words, and what remains of a search is one small
number per (station, source): the slot of the neighbour before it. So a change of liveness costs
milliseconds at 1,000 nodes, and 4,000 nodes among 10,000 stations fit in memory.

A station that is down does not relay, but is still a destination: a sender does not know that its peer
died, and its messages travel as far as the last hop. A cut takes directed links out.
"""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from comesh.core.draws import Draws
from comesh.sim.topology import Topology

UNREACHABLE: Final = 0xFFFFFFFF
"""A packed length that means: there is no path."""

_BLOCK = 512
_WORDS = _BLOCK // 64
_UNREACHED = 0xFFFF
_LOAD_BITS = 16
_LOAD_MASK = (1 << _LOAD_BITS) - 1
_ONE_HOP = 1 << _LOAD_BITS


class Routes:
    """Paths between stations under the present links.

    A *length* packs hops and load of a path into one number, `hops << 16 | load`; load is the number of
    live neighbours of every sender on the path, added up: what size is multiplied with (radio.py).
    """

    def __init__(self, topology: Topology, draws: Draws) -> None:
        self.stations = len(topology.places)
        self._neighbours: list[list[int]] = []
        for neighbours in topology.neighbours:
            shuffled = list(neighbours)
            draws.shuffle(shuffled)
            self._neighbours.append(shuffled)
        widest = max(1, *map(len, self._neighbours))
        self._around = np.full((self.stations, widest), self.stations, dtype=np.intp)
        for station, shuffled in enumerate(self._neighbours):
            self._around[station, : len(shuffled)] = shuffled
        self.change(np.ones(self.stations, dtype=np.bool_), np.array(topology.relays), [])

    def change(
        self,
        up: NDArray[np.bool_],
        relays: NDArray[np.bool_],
        cuts: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    ) -> None:
        """Change the routes: these stations are up, these of them relay, and no link leads across a cut."""
        padded_up = np.append(up, False)
        self._relays = np.append(up & relays, False)
        before = self._around.copy()
        for sources, destinations in cuts:
            across = np.append(sources, False)[self._around] & destinations[:, None]
            before[across] = self.stations
        self._before = np.ascontiguousarray(before.T)
        """The neighbours that each station hears: by slot, then station; one beyond the last for an empty or
        cut slot."""
        self.loads: list[int] = padded_up[self._around].sum(axis=1).tolist()
        """Number of live neighbours that each station shares the air with."""
        self.rows: list[array[int] | None] = [None] * self.stations
        """Packed lengths by source and destination; 0 where not yet computed."""
        self._slots: dict[int, NDArray[np.uint16]] = {}
        self._views: dict[int, memoryview] = {}

    def length(self, source: int, destination: int) -> int:
        """Returns the packed length, or UNREACHABLE. Senders look into `rows` themselves first: this path is
        hot.

        Walks back from the destination to where the length is known, and keeps all that it learns.
        """
        row = self.rows[source]
        if row is None:
            row = self.rows[source] = array("I", bytes(4 * self.stations))
        block, bit = divmod(source, _BLOCK)
        self._search(block)
        slots = self._views[block]
        station = destination
        chain: list[int] = []
        while station != source and not row[station]:
            slot = slots[station * _BLOCK + bit]
            if slot == _UNREACHED:
                row[destination] = UNREACHABLE
                return UNREACHABLE
            chain.append(station)
            station = self._neighbours[station][slot]
        packed = row[station]
        for following in reversed(chain):
            load = (packed & _LOAD_MASK) + self.loads[station]
            if load > _LOAD_MASK:
                raise OverflowError("a path with more neighbours along it than this radio counts")
            packed = (packed & ~_LOAD_MASK) + _ONE_HOP + load
            row[following] = packed
            station = following
        return packed

    def path(self, source: int, destination: int) -> list[int] | None:
        """Returns the stations from source to destination, both included; None if there is no path."""
        block, bit = divmod(source, _BLOCK)
        self._search(block)
        slots = self._views[block]
        station = destination
        path = [station]
        while station != source:
            slot = slots[station * _BLOCK + bit]
            if slot == _UNREACHED:
                return None
            station = self._neighbours[station][slot]
            path.append(station)
        path.reverse()
        return path

    def hops_before(self, sources: NDArray[np.int64], stations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns, for many paths at once, the station before each on the path from each source."""
        before = np.empty_like(stations)
        blocks = sources // _BLOCK
        for block in np.flatnonzero(np.bincount(blocks)).tolist():
            self._search(block)
            here = blocks == block
            slots = self._slots[block][stations[here], sources[here] % _BLOCK]
            before[here] = self._around[stations[here], slots]
        return before

    def _search(self, block: int) -> None:
        """Run all searches from the sources of one block."""
        if block in self._slots:
            return
        first = block * _BLOCK
        frontier = np.zeros((self.stations + 1, _WORDS), dtype=np.uint64)
        for bit in range(min(_BLOCK, self.stations - first)):
            frontier[first + bit, bit // 64] = np.uint64(1 << bit % 64)
        unseen = ~frontier[:-1]
        widest = len(self._before)
        planes = [np.zeros_like(unseen) for _ in range(max(1, (widest - 1).bit_length()))]
        via = np.empty_like(unseen)
        while True:
            fresh = np.zeros_like(unseen)
            for slot in range(widest):
                np.take(frontier, self._before[slot], axis=0, out=via, mode="clip")
                via &= unseen
                if not _any(via):
                    continue
                unseen ^= via
                fresh |= via
                for bit in range(len(planes)):
                    if slot >> bit & 1:
                        planes[bit] |= via
            if not _any(fresh):
                break
            frontier[:-1] = fresh
            frontier[~self._relays] = 0
        slots = np.zeros((self.stations, _BLOCK), dtype=np.uint16)
        for bit, plane in enumerate(planes):
            slots |= _unpacked(plane).astype(np.uint16) << np.uint16(bit)
        slots[_unpacked(unseen).astype(np.bool_)] = _UNREACHED
        self._slots[block] = slots
        self._views[block] = slots.reshape(-1).data


def _any(words: NDArray[np.uint64]) -> bool:
    """True if any bit is set; several times faster than `words.any()`."""
    return bool(np.bitwise_or.reduce(words, axis=None))


def _unpacked(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Returns one byte, 0 or 1, per bit."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
