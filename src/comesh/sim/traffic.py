"""Counts traffic: messages and real encoded bytes, by kind and by station.

*End to end*, a message counts once where it was sent and once where it was received. *Hop by hop*, it
counts at every station that transmitted it: the sender, and each relay on its way (paper, section 6:
E2E and H2H). So for messages that all arrive, transmitted = hops, and relayed = hops - 1.

Every message that was sent is later received, or lost for a reason that is counted, or still under way.
A message without a route, or one that is too big for the wire, is refused before it is sent: it is only
counted as such.

Counting must not slow the run down: a message is one number in a log, and a full log is spread over
the paths with numpy. Whoever changes the routes has to `flush` first.
"""

from array import array
from collections import Counter
from enum import StrEnum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from comesh.core.messages import MAX_DATAGRAM_BYTES
from comesh.sim.routes import Routes

LOG_ENTRIES: Final = 65_536

_SIZE_BITS: Final = MAX_DATAGRAM_BYTES.bit_length()
_STATION_BITS: Final = 16
_SIZE_MASK = (1 << _SIZE_BITS) - 1
_STATION_MASK = (1 << _STATION_BITS) - 1
_MAX_KINDS = 256
assert (_MAX_KINDS - 1).bit_length() + 2 * _STATION_BITS + _SIZE_BITS <= 63, "an entry of the log is an int64"


class Lost(StrEnum):
    """Reasons why a message did not arrive."""

    ON_A_HOP = "on a hop"
    ON_THE_WAY = "on the way"
    STATION_DOWN = "station down"
    NOBODY_THERE = "nobody there"
    INBOX_FULL = "inbox full"
    NO_ROUTE = "no route"
    TOO_BIG = "too big"


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """A message as the radio sees it."""

    kind: int
    source: int
    destination: int
    size_bytes: int


class Amount(msgspec.Struct, frozen=True, gc=False):
    messages: int = 0
    size_bytes: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.messages + other.messages, self.size_bytes + other.size_bytes)


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals end to end (sent, received) and hop by hop (transmitted, which is sent plus relayed)."""

    sent: Amount = Amount()
    received: Amount = Amount()
    relayed: Amount = Amount()

    @property
    def transmitted(self) -> Amount:
        return self.sent + self.relayed


class Traffic:
    """Counts messages and bytes by kind; `kind` gives the number of a kind."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._stations = routes.stations
        if self._stations > _STATION_MASK:
            raise ValueError(f"{self._stations} stations are more than traffic can tell apart")
        self._kinds: dict[str, int] = {}
        self._sent_log = array("Q")
        self._received_log = array("Q")
        self._sent = self._table()
        self._received = self._table()
        self._relayed = self._table()
        self._lost: Counter[tuple[int, Lost]] = Counter()

    def kind(self, name: str) -> int:
        """Returns the number of a kind of message, for `sent` and `received`."""
        number = self._kinds.get(name)
        if number is None:
            number = self._kinds[name] = len(self._kinds)
            if number >= _MAX_KINDS:
                raise ValueError(f"more than {_MAX_KINDS} kinds of messages")
            if number >= len(self._sent[0]):
                self._sent, self._received, self._relayed = map(
                    self._grown, (self._sent, self._received, self._relayed)
                )
        return number

    def sent(self, parcel: Parcel) -> None:
        """Count a parcel that was transmitted along the path to its destination (it may still be lost)."""
        if parcel.size_bytes > MAX_DATAGRAM_BYTES:
            raise ValueError(
                f"{parcel.size_bytes} bytes, more than {MAX_DATAGRAM_BYTES}: the radio sends no such parcel"
            )
        log = self._sent_log
        way = (parcel.kind << _STATION_BITS | parcel.source) << _STATION_BITS | parcel.destination
        log.append(way << _SIZE_BITS | parcel.size_bytes)
        if len(log) >= LOG_ENTRIES:
            self.flush()

    def received(self, parcel: Parcel) -> None:
        log = self._received_log
        log.append((parcel.kind << _STATION_BITS | parcel.destination) << _SIZE_BITS | parcel.size_bytes)
        if len(log) >= LOG_ENTRIES:
            self.flush()

    def lost(self, parcel: Parcel, why: Lost) -> None:
        self._lost[parcel.kind, why] += 1

    def flush(self) -> None:
        """Add the logs to the totals, along the current routes."""
        words = np.array(self._sent_log, dtype=np.int64)
        self._sent_log = array("Q")
        size_bytes = words & _SIZE_MASK
        destinations = words >> _SIZE_BITS & _STATION_MASK
        sources = words >> (_SIZE_BITS + _STATION_BITS) & _STATION_MASK
        kinds = words >> (_SIZE_BITS + 2 * _STATION_BITS)
        self._add(self._sent, kinds, sources, size_bytes)
        stations = destinations
        while len(stations):
            stations = self._routes.hops_before(sources, stations)
            relayed = stations != sources
            stations, sources = stations[relayed], sources[relayed]
            kinds, size_bytes = kinds[relayed], size_bytes[relayed]
            self._add(self._relayed, kinds, stations, size_bytes)
        words = np.array(self._received_log, dtype=np.int64)
        self._received_log = array("Q")
        kinds = words >> (_SIZE_BITS + _STATION_BITS)
        self._add(self._received, kinds, words >> _SIZE_BITS & _STATION_MASK, words & _SIZE_MASK)

    def total(self, *, station: int | None = None, kind: str | None = None) -> Totals:
        """Returns the totals of one station or all, of one kind or all."""
        self.flush()
        if kind is not None and kind not in self._kinds:
            return Totals()
        at_kind = slice(None) if kind is None else slice(self._kinds[kind], self._kinds[kind] + 1)
        at_station = slice(None) if station is None else slice(station, station + 1)

        def amount(table: NDArray[np.int64]) -> Amount:
            messages, size_bytes = table[:, at_kind, at_station].sum(axis=(1, 2)).tolist()
            return Amount(messages, size_bytes)

        return Totals(sent=amount(self._sent), received=amount(self._received), relayed=amount(self._relayed))

    def losses(self) -> dict[tuple[str, Lost], int]:
        """Returns lost messages by kind and reason."""
        name_of = {number: name for name, number in self._kinds.items()}
        named = {(name_of[kind], why): count for (kind, why), count in self._lost.items()}
        return dict(sorted(named.items()))

    @property
    def kinds(self) -> list[str]:
        return sorted(self._kinds)

    def _table(self) -> NDArray[np.int64]:
        """Returns a new table of counts: [messages or bytes, kind, station]."""
        return np.zeros((2, 8, self._stations), dtype=np.int64)

    def _grown(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([table, np.zeros_like(table)], axis=1)

    def _add(
        self,
        table: NDArray[np.int64],
        kinds: NDArray[np.int64],
        stations: NDArray[np.int64],
        size_bytes: NDArray[np.int64],
    ) -> None:
        cells = kinds * self._stations + stations
        count = table.shape[1] * self._stations
        shape = table.shape[1:]
        table[0] += np.bincount(cells, minlength=count).reshape(shape)
        table[1] += np.bincount(cells, weights=size_bytes, minlength=count).astype(np.int64).reshape(shape)
