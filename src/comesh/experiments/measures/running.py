"""The presets for meshes that run: groups, devices and membership at work.

The preset `paper` has hops of a second. Much that a mesh waits for is no setting and is sized for hops of
some 10 ms: drivers give a device 2 s to answer, a membership probe has half a second, candidates defer for
100 ms per rank. With hops of a second no device would ever answer, and living nodes would be declared dead.
So here the paper's unit of time is 10 ms instead of a second, in everything that the preset states: an
epoch is 200 hops, a lease 20, and a byte costs as little of a hop as it does at a second per hop. What the
preset does not state (monitoring, the period of membership) is as long as the lease, as it is by default.
"""

from typing import Any

import msgspec

from comesh.core.membership import MembershipSettings
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.experiments.measures.presets import F, Preset, setup
from comesh.sim.radio import HOP_MS, RadioSettings

PAPER_UNIT_MS = 1000.0
"""What one hop takes with the preset `paper`."""
_IN_UNITS = {"hop": "10ms", "epoch": "2s", "lease": "200ms", "monitoring": "200ms"}
_MEMBERSHIP_MS = {Preset.PAPER: 200.0, Preset.DEFAULT: 1000.0}


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset says to the parts of a mesh that runs. All hops take HOP_MS."""

    selection: SelectionSettings
    protocol: ProtocolSettings
    radio: RadioSettings
    membership: MembershipSettings

    @property
    def epoch_s(self) -> float:
        return self.protocol.epoch_ms / 1000

    @property
    def lease_s(self) -> float:
        return self.protocol.lease_ms / 1000


def running(preset: str, *, f: int = F, seed: int = 0, **settings: Any) -> Running:
    """settings: as a document's `settings` has them, on top of the preset."""
    known = Preset(preset)
    bandwidth = RadioSettings().bandwidth_bytes_per_s
    if known is Preset.PAPER:
        settings = {**_IN_UNITS, **settings}
        bandwidth *= PAPER_UNIT_MS / HOP_MS
    made = setup(known, f=f, seed=seed, **settings)
    return Running(
        selection=made.selection,
        protocol=made.protocol,
        radio=RadioSettings(hop_ms=HOP_MS, bandwidth_bytes_per_s=bandwidth),
        membership=MembershipSettings(period_ms=_MEMBERSHIP_MS[known]),
    )
