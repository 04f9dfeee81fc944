"""Settings of a world: its radio, its clocks, its disks."""

import msgspec

from comesh.sim.radio import RadioSettings


class WorldSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    radio: RadioSettings = RadioSettings()
    start_spread_ms: float = 1000.0
    """Nodes start at a uniform time within this; 0 starts them all at once, in order of name."""
    skew_ms: float = 0.0
    """Maximum offset of wall clocks, drawn per machine."""
    drift_ppm: float = 0.0
    """Maximum drift of clocks, drawn per machine."""
    flush_ms: float = 50.0
    """Time after which an unflushed write is durable."""
    strict: bool = False
    """Durability is strict: important records are flushed when they are written, so that power loss costs
    none of them and is not reported to the process that starts."""
    through_wire: bool = False
    """Deliver the decoded bytes instead of the object that was sent."""
    push: bool = False
    """Devices push changed readings to the nodes that read them."""
