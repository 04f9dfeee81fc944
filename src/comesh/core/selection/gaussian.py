"""Gaussian numbers without floats (paper, section 3.6: the entries of `a` are 2-stable).

Rule: three words give twelve uniform 16-bit fields (bits 0-15, 16-31, 32-47, 48-63 of each); their sum
minus 6 x 65,535 is the entry, in units of 1/65,536. Twelve uniforms have exactly the variance one (but
for 2^-32), mean zero, and a distribution function that differs from the Gaussian by less than 0.003
anywhere; no table and no rounding, so every machine has the same entry.
"""

from comesh.core.selection.hashing import chain_on

ONE = 1 << 16
"""The fixed-point one of a Gaussian entry."""

LARGEST = 6 * 65_535
"""No entry is larger than this, either way."""


def gaussian(key: int) -> int:
    """One standard Gaussian in units of 1/65,536: three words continue the chain with 0, 1 and 2."""
    total = 0
    for part in range(3):
        word = chain_on(key, part)
        total += sum((word >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return total - LARGEST
