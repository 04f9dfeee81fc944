"""What a world is like: its radio, its clocks, its disks."""

import msgspec

from comesh.sim.radio import RadioSettings


class WorldSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    radio: RadioSettings = RadioSettings()
    start_spread_ms: float = 1000.0
    """Nodes start at a uniform time within this; 0 starts them all at once, in order of name."""
    skew_ms: float = 0.0
    """Wall clocks are off by up to this, drawn per machine."""
    drift_ppm: float = 0.0
    """Clocks gain or lose up to this, drawn per machine."""
    flush_ms: float = 50.0
    """What was written to a disk without a flush is durable after this long."""
    strict: bool = False
    """Durability is strict: what matters is flushed when it is written, so that power loss costs nothing that
    matters, and is not told to the process that starts."""
    through_wire: bool = False
    """Deliver what the bytes decode to instead of the object that was sent."""
    push: bool = False
    """Devices tell changed readings by themselves to who reads them."""
