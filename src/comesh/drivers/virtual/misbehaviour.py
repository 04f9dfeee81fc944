"""Misbehaviours of a virtual device and their names: well, slow, silent, wrong, gone, late."""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from comesh.core.ids import DurationMs
from comesh.core.values import Value

MAX_MS: Final = 86_400_000.0
"""Maximum delay of a slow or late device: a day."""
USUAL_MS: Final = 1000.0
"""Delay of a slow or late device if none is given."""
_NONSENSE: Final = "nonsense"
_WORDS: Final = ("well", "slow", "silent", "wrong", "gone", "late")


class Misbehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """The ways in which a device misbehaves; none by default."""

    silent: bool = False
    """Ignores all requests."""
    gone: bool = False
    """Answers every request with an error: the device is not there."""
    slow_ms: DurationMs = 0.0
    """Delays every answer by this much."""
    late_ms: DurationMs = 0.0
    """Delays commands by this much, and loses their answers."""
    wrong: dict[str, Value] = {}
    """Readings that it answers instead of the true ones."""

    @property
    def hears(self) -> bool:
        """True if requests reach the device."""
        return not (self.silent or self.gone)


FINE: Final = Misbehaviour()


def misbehaviour_of(be: str, ms: float, readings: Iterable[str]) -> Misbehaviour:
    """Returns the misbehaviour that a name means for a device with these readings. ms: how slow or late; 0:
    USUAL_MS.

    ValueError: there is no such word, or no such time.
    """
    if not (math.isfinite(ms) and 0 <= ms <= MAX_MS):
        raise ValueError(f"{ms:g} ms: expected 0 to {MAX_MS:.0f}")
    match be:
        case "well":
            return FINE
        case "slow":
            return Misbehaviour(slow_ms=ms or USUAL_MS)
        case "late":
            return Misbehaviour(late_ms=ms or USUAL_MS)
        case "silent":
            return Misbehaviour(silent=True)
        case "gone":
            return Misbehaviour(gone=True)
        case "wrong":
            return Misbehaviour(wrong=dict.fromkeys(readings, _NONSENSE))
        case _:
            raise ValueError(f"a device cannot be {be!r}; it can be {', '.join(_WORDS)}")
