"""Locality-sensitive hashing: which nodes are candidates for a centre (paper, section 3.6).

Rules, all in integers:
- a device's vector is its place twice. A node's is its place followed by the mean place of the devices
  that it looked after in the last epoch (each device once per group that had it, rounded down), or its
  own place where it looked after none or the table doesn't say. So a node tends to keep what it had;
- one hash is floor((a.v + b) / width). The six entries of `a` are Gaussian (see gaussian), b is uniform
  below the width; a, b and the width carry 16 fractional bits;
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

import numpy as np

from comesh.core.plan import Lsh
from comesh.core.selection.gaussian import ONE, gaussian
from comesh.core.selection.geometry import Integers
from comesh.core.selection.hashing import Words, chain, chain_each, chain_on, id_hash

_DIMENSIONS = 6
_GAUSSIAN = id_hash("draw", "gaussian")
_OFFSET = id_hash("draw", "offset")
_JITTER = id_hash("draw", "jitter")


class HashFamily:
    """The l x m hash functions of one deployment in one epoch."""

    def __init__(self, settings: Lsh, seed: int, epoch: int, spacing_mm: int) -> None:
        self.width = max(1, isqrt(2 * (settings.r_milli * spacing_mm * ONE) ** 2) // 1000)
        self._shape = (settings.l, settings.m)
        self._jitter_mm = settings.jitter_milli * spacing_mm // 1000
        self._jitter_key = chain(seed, _JITTER, epoch)
        functions = [
            (chain(seed, _GAUSSIAN, epoch, table, row), chain(seed, _OFFSET, epoch, table, row))
            for table in range(settings.l)
            for row in range(settings.m)
        ]
        self.directions: Integers = np.array(
            [[gaussian(chain_on(key, axis)) for axis in range(_DIMENSIONS)] for key, _ in functions],
            dtype=np.int64,
        )
        """One row of six entries per function, table by table."""
        self.offsets: Integers = np.array(
            [(word * self.width) >> 64 for _, word in functions], dtype=np.int64
        )

    def buckets(self, vectors: Integers) -> Integers:
        """One row per function, one column per row of vectors."""
        projected: Integers = self.directions @ vectors.T
        projected += self.offsets[:, None]
        projected //= self.width
        return projected

    def sharing(self, buckets: Integers, one: Integers) -> Integers:
        """The columns of buckets that agree with one column in all functions of some table."""
        agrees = (buckets == one).reshape(*self._shape, buckets.shape[1])
        return np.flatnonzero(agrees.all(axis=1).any(axis=0))

    def jitter(self, nodes: Words) -> Integers | int:
        """What is added to the nodes' vectors: one row of six per node, or nothing."""
        span = 2 * self._jitter_mm + 1
        if span == 1:
            return 0
        columns = [
            (chain_each(chain_on(self._jitter_key, axis), nodes) >> np.uint64(32)).astype(np.int64)
            for axis in range(_DIMENSIONS)
        ]
        return np.stack(columns, axis=1) % span - self._jitter_mm
