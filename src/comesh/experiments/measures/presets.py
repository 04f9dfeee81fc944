"""The two ways in which every experiment runs: as the paper has it, and with our defaults beside it.

`paper` is the preset of that name: one hop takes a second, which is the paper's unit of time, an epoch 200 of
them, locks are asked for one by one, devices are polled. `default` is what a deployment gets that says
nothing: a hop of 10 ms, epochs of a minute. Both with the f, the seed and the policies of the experiment.
Times are told in hops, so that both can be drawn together.

A mesh that runs waits for much that is no setting and is sized for hops of some 10 ms: drivers give a device
2 s to answer, a membership probe has half a second, candidates defer for 100 ms per rank. With hops of a
second no device would ever answer, and living nodes would be declared dead. So in `running` the paper's unit
of time is 10 ms: an epoch is 200 hops, a lease 20, and a byte costs as little of a hop as at a second per
hop. What the preset does not state (monitoring, the period of membership) is as long as the lease, as it is
by default.
"""

from enum import StrEnum
from typing import Any

import msgspec

from comesh.core.membership import MembershipSettings
from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.deployment.planning import selection_settings
from comesh.deployment.program import protocol_settings
from comesh.deployment.settings import Settings
from comesh.sim.radio import HOP_MS, RadioSettings


class Preset(StrEnum):
    PAPER = "paper"
    DEFAULT = "default"


PRESETS = (Preset.PAPER, Preset.DEFAULT)
F = 2
"""The paper's, in all of its simulations that do not say otherwise."""


class Setup(msgspec.Struct, frozen=True):
    """What a preset says to the parts of a simulation."""

    selection: SelectionSettings
    protocol: ProtocolSettings
    radio: RadioSettings

    @property
    def hop_ms(self) -> float:
        return self.radio.hop_ms


def setup(preset: str, *, f: int = F, seed: int = 0, **settings: Any) -> Setup:
    """settings: as a document's `settings` has them, on top of the preset."""
    document = Settings.model_validate({"preset": str(preset), "f": f, "seed": seed, **settings})
    return Setup(
        selection_settings(document),
        protocol_settings(document),
        RadioSettings(hop_ms=float(document.hop_ms)),
    )


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
