"""Computes how long a message takes and whether it arrives.

One hop costs `hop_ms` plus size / (bandwidth / live neighbours of the sender of that hop), along the
shortest path (paper, section 5; docs/simulator.md). Added up over a path that is

    hops * hop_ms + size_bytes * load / bytes_per_ms

with hops and load from routes.py. There is no queue at a sender: the paper's model has none. There is no
jitter either unless `reorder` asks for it. What is set when a message leaves decides its fate: a path
that breaks under way does not stop it.

Loss is per hop (a lost message has used the air up to there) and per message, end to end. A message that
a cut separates from its destination, that has no path, or that is bigger than any receiver would decode
(MAX_DATAGRAM_BYTES), is not sent. Each concern draws from a stream
of its own.
"""

from collections.abc import Hashable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from comesh.core.messages import MAX_DATAGRAM_BYTES
from comesh.core.streams import stream
from comesh.sim.routes import UNREACHABLE, Routes
from comesh.sim.topology import Topology
from comesh.sim.traffic import Lost, Parcel, Traffic

BANDWIDTH_BYTES_PER_S: Final = 625_000
HOP_MS: Final = 10.0


class RadioSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the radio. Rates are probabilities from 0 to 1."""

    hop_ms: float = HOP_MS
    bandwidth_bytes_per_s: float = BANDWIDTH_BYTES_PER_S
    loss_per_hop: float = 0.0
    loss_per_message: float = 0.0
    duplicate: float = 0.0
    """Rate of messages that arrive twice, the second time up to reorder_ms (at least a hop) later."""
    reorder: float = 0.0
    """Rate of messages that are delayed, by up to reorder_ms."""
    reorder_ms: float = 100.0

    def __post_init__(self) -> None:
        for name in ("loss_per_hop", "loss_per_message", "duplicate", "reorder"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {rate}")
        if self.hop_ms < 0 or self.reorder_ms < 0 or self.bandwidth_bytes_per_s <= 0:
            raise ValueError("times must not be negative, and bandwidth must be positive")


class Radio:
    """The mesh as it is now: stations up or down, cuts, and the quality of the air."""

    def __init__(self, topology: Topology, settings: RadioSettings, seed: int) -> None:
        self.routes = Routes(topology, stream(seed, "routes"))
        self.traffic = Traffic(self.routes)
        self.up = [True] * len(topology.places)
        self._relays = np.array(topology.relays)
        self._cuts: dict[Hashable, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        self._changed = False
        self._routings = 0
        self._loss_draws = stream(seed, "loss")
        self._duplicate_draws = stream(seed, "duplicates")
        self._reorder_draws = stream(seed, "reordering")
        self.settings = settings

    @property
    def settings(self) -> RadioSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: RadioSettings) -> None:
        self._settings = settings
        self._hop_ms = settings.hop_ms
        self._ms_per_byte = 1000.0 / settings.bandwidth_bytes_per_s
        self._calm = not (
            settings.loss_per_hop or settings.loss_per_message or settings.duplicate or settings.reorder
        )

    def set_up(self, station: int, up: bool) -> None:
        """Set a station up or down; one that is down neither relays nor hears."""
        if self.up[station] != up:
            self.up[station] = up
            self._changed = True

    def cut(self, name: Hashable, sources: set[int], destinations: set[int]) -> None:
        """Cut these stations off from those: nothing passes over a link or around."""
        stations = np.arange(self.routes.stations)
        self._cuts[name] = (
            np.isin(stations, sorted(sources)),
            np.isin(stations, sorted(destinations)),
        )
        self._changed = True

    def heal(self, name: Hashable = None) -> None:
        """End one cut, or all."""
        if name is None:
            self._cuts.clear()
        else:
            self._cuts.pop(name, None)
        self._changed = True

    def routed(self) -> int:
        """Returns a number that changes whenever reachability may have changed."""
        if self._changed:
            self._reroute()
        return self._routings

    def reaches(self, source: int, destination: int) -> bool:
        """True if a message would find a way now to a station that is up, apart from random loss."""
        if self._changed:
            self._reroute()
        if source == destination:
            return self.up[source]
        return (
            self.up[source]
            and self.up[destination]
            and self.routes.length(source, destination) != UNREACHABLE
            and not self._is_cut(source, destination)
        )

    def transmit(self, parcel: Parcel) -> tuple[float, ...]:
        """Returns the delays after which the parcel arrives: none, one or two."""
        source, destination = parcel.source, parcel.destination
        if parcel.size_bytes > MAX_DATAGRAM_BYTES:
            self.traffic.lost(parcel, Lost.TOO_BIG)
            return ()
        if source == destination:
            return (0.0,)
        if self._changed:
            self._reroute()
        row = self.routes.rows[source]
        length = (row[destination] if row is not None else 0) or self.routes.length(source, destination)
        if length == UNREACHABLE or (self._cuts and self._is_cut(source, destination)):
            self.traffic.lost(parcel, Lost.NO_ROUTE)
            return ()
        took_ms = (length >> 16) * self._hop_ms + parcel.size_bytes * (length & 0xFFFF) * self._ms_per_byte
        if self._calm:
            self.traffic.sent(parcel)
            return (took_ms,)
        return self._transmit_in_bad_air(parcel, took_ms, length >> 16)

    def _transmit_in_bad_air(self, parcel: Parcel, took_ms: float, hops: int) -> tuple[float, ...]:
        settings = self._settings
        copies = 1
        if settings.duplicate and self._duplicate_draws.chance(settings.duplicate):
            copies = 2
        arrivals: list[float] = []
        for copy in range(copies):
            lost_on = self._lost_on_hop(hops)
            if lost_on is not None:
                path = self.routes.path(parcel.source, parcel.destination)
                assert path is not None
                self.traffic.sent(Parcel(parcel.kind, parcel.source, path[lost_on], parcel.size_bytes))
                self.traffic.lost(parcel, Lost.ON_A_HOP)
                continue
            self.traffic.sent(parcel)
            if settings.loss_per_message and self._loss_draws.chance(settings.loss_per_message):
                self.traffic.lost(parcel, Lost.ON_THE_WAY)
                continue
            extra_ms = 0.0
            if copy:
                extra_ms = self._duplicate_draws.between(0.0, max(settings.reorder_ms, self._hop_ms))
            if settings.reorder and self._reorder_draws.chance(settings.reorder):
                extra_ms += self._reorder_draws.between(0.0, settings.reorder_ms)
            arrivals.append(took_ms + extra_ms)
        return tuple(arrivals)

    def _lost_on_hop(self, hops: int) -> int | None:
        """Returns the hop, from 1, that loses the message; one draw for any number of hops."""
        loss = self._settings.loss_per_hop
        if not loss:
            return None
        drawn = self._loss_draws.unit()
        still_there = 1.0
        for hop in range(1, hops + 1):
            still_there *= 1.0 - loss
            if drawn >= still_there:
                return hop
        return None

    def _is_cut(self, source: int, destination: int) -> bool:
        return any(
            bool(sources[source]) and bool(destinations[destination])
            for sources, destinations in self._cuts.values()
        )

    def _reroute(self) -> None:
        self.traffic.flush()
        self.routes.change(np.array(self.up), self._relays, list(self._cuts.values()))
        self._changed = False
        self._routings += 1
