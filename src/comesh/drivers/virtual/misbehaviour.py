"""How a virtual device misbehaves, and words for it: well, slow, silent, wrong, gone, late."""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from comesh.core.ids import DurationMs
from comesh.core.values import Value

MAX_MS: Final = 86_400_000.0
"""A day: as slow or late as a device can be."""
USUAL_MS: Final = 1000.0
"""How slow or late it is, if nobody says."""
_NONSENSE: Final = "nonsense"
_WORDS: Final = ("well", "slow", "silent", "wrong", "gone", "late")


class Misbehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How a device misbehaves; nothing given: it does not."""

    silent: bool = False
    """It hears nothing and answers nothing."""
    gone: bool = False
    """Whoever reaches for it is told that it is not there."""
    slow_ms: DurationMs = 0.0
    """Every answer takes so much longer."""
    late_ms: DurationMs = 0.0
    """Commands reach it so much later, and their answers are lost."""
    wrong: dict[str, Value] = {}
    """Readings that it answers, whatever is so."""

    @property
    def hears(self) -> bool:
        """Whether what it is sent reaches it."""
        return not (self.silent or self.gone)


FINE: Final = Misbehaviour()


def misbehaviour_of(be: str, ms: float, readings: Iterable[str]) -> Misbehaviour:
    """What one word means for a device with these readings. ms: how slow or late; 0: USUAL_MS.

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
