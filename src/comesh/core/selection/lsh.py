"""Locality-sensitive hashing: which nodes are candidates for a centre (paper, section 3.6).

Rules, all in integers:
- a device's vector is its place twice. A node's is its place followed by the mean place of the devices
  that it looked after in the last epoch (each device once per group that had it, rounded down), or its
  own place where it looked after none or the table doesn't say. So a node tends to keep what it had;
- one hash is floor((a.v + b) / width). The six entries of `a` are Gaussian, b is uniform below the width;
  a, b and the width carry 16 fractional bits;
- a Gaussian number needs no float (the paper's entries are 2-stable): three words give twelve uniform 16-bit
  fields (bits 0-15, 16-31, 32-47, 48-63 of each); their sum minus 6 x 65,535 is the entry, in units of
  1/65,536. Twelve uniforms have exactly the variance one (but for 2^-32), mean zero, and a distribution
  function that differs from the Gaussian by less than 0.003 anywhere; no table and no rounding, so every
  machine has the same entry;
- the width is r mean spacings, as they are between vectors: a place is there twice, so two nodes that
  are one spacing apart have vectors that are the root of two spacings apart;
- m hashes concatenated are a bucket, and there are l tables of them. A node is a candidate for a device
  if all m hashes agree in at least one table;
- a and b are drawn from the deployment's seed and the epoch. Drawn once for ever, the number of
  candidates would differ between deployments by half, and an unlucky one would stay unlucky; drawn
  anew, it differs from epoch to epoch, and members stay on as often as before;
- jitter, if set, adds to each entry of a node's vector a whole number uniform in [-j, +j], drawn anew in
  each epoch, where j is jitter_milli thousandths of the mean spacing.
"""

from math import isqrt

from comesh.core.arithmetic import Projections
from comesh.core.plan import Lsh
from comesh.core.selection.hashing import chain, chain_on, id_hash

ONE = 1 << 16
"""The fixed-point one of a Gaussian entry."""
LARGEST = 6 * 65_535
"""No entry is larger than this, either way."""

_GAUSSIAN = id_hash("draw", "gaussian")
_OFFSET = id_hash("draw", "offset")
_JITTER = id_hash("draw", "jitter")


def gaussian(key: int) -> int:
    """Returns one standard Gaussian in units of 1/65,536: three words continue the chain with 0, 1 and 2."""
    total = 0
    for part in range(3):
        word = chain_on(key, part)
        total += sum((word >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return total - LARGEST


class HashFamily:
    """The l x m hash functions of one deployment in one epoch."""

    def __init__(self, settings: Lsh, seed: int, epoch: int, spacing_mm: int) -> None:
        width = max(1, isqrt(2 * (settings.r_milli * spacing_mm * ONE) ** 2) // 1000)
        keys = [(table, row) for table in range(settings.l) for row in range(settings.m)]
        self._jitter_mm = settings.jitter_milli * spacing_mm // 1000
        self._jitter_key = chain(seed, _JITTER, epoch)
        self.functions = Projections(
            directions=[_direction(chain(seed, _GAUSSIAN, epoch, *key)) for key in keys],
            offsets=[(chain(seed, _OFFSET, epoch, *key) * width) >> 64 for key in keys],
            width=width,
            tables=settings.l,
        )

    def jitter(self, node: int) -> tuple[int, ...]:
        """Returns the offset of a node's vector, given its word; zero unless jitter is set."""
        span = 2 * self._jitter_mm + 1
        if span == 1:
            return ()
        return tuple(
            (chain_on(self._jitter_key, axis, node) >> 32) % span - self._jitter_mm for axis in range(6)
        )


def _direction(key: int) -> tuple[int, int, int, int, int, int]:
    a, b, c, d, e, f = (gaussian(chain_on(key, axis)) for axis in range(6))
    return a, b, c, d, e, f
