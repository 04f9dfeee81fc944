"""The way between nodes and devices: the radio, as a device protocol that numbers and dates what it sends.

What the radio repeats goes on once, and what it holds up for longer than REQUEST_LIVES_MS not at all.
"""

from typing import Final

from comesh.sim.engine import Engine, Priority
from comesh.sim.radio import Radio
from comesh.sim.traffic import Lost, Parcel

REQUEST_LIVES_MS: Final = 2000.0


class DeviceRadio:
    __slots__ = ("_engine", "_radio")

    def __init__(self, engine: Engine, radio: Radio) -> None:
        self._engine = engine
        self._radio = radio

    def cross(self, parcel: Parcel) -> float | None:
        """Send: after how long the first copy arrives, if one does; the others are only counted."""
        arrivals = self._radio.transmit(parcel)
        if len(arrivals) == 1 and arrivals[0] <= REQUEST_LIVES_MS:
            return arrivals[0]
        first_ms: float | None = None
        for after_ms in sorted(arrivals):
            if after_ms > REQUEST_LIVES_MS:
                self._radio.traffic.lost(parcel, Lost.ON_THE_WAY)
            elif first_ms is None:
                first_ms = after_ms
            else:
                self._engine.at(self._engine.now_ms + after_ms, Priority.ARRIVAL, self._count, parcel)
        return first_ms

    def _count(self, parcel: Parcel) -> None:
        self.arrived(parcel)

    def arrived(self, parcel: Parcel) -> bool:
        """Count a parcel at its destination; False: nobody hears it there."""
        if not self._radio.up[parcel.destination]:
            self._radio.traffic.lost(parcel, Lost.STATION_DOWN)
            return False
        if parcel.source != parcel.destination:
            self._radio.traffic.received(parcel)
        return True
