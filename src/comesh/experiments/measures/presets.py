"""The two ways in which every experiment runs: as the paper has it, and with our defaults beside it.

`paper` is the preset of that name: one hop takes a second, which is the paper's unit of time, an epoch 200 of
them, locks are asked for one by one, devices are polled. `default` is what a deployment gets that says
nothing: a hop of 10 ms, epochs of a minute. Both with the f, the seed and the policies of the experiment.
Times are told in hops, so that both can be drawn together.
"""

from enum import StrEnum
from typing import Any

import msgspec

from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.deployment.planning import selection_settings
from comesh.deployment.program import protocol_settings
from comesh.deployment.settings import Settings
from comesh.sim.radio import RadioSettings


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
