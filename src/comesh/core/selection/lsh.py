"""Locality-sensitive hashing: which nodes are candidates for a centre (paper, section 3.6).

Rules, all in integers:
- a device's vector is its place twice. A node's is its place followed by the mean place of the devices
  that it looked after in the last epoch (each device once per group that had it, rounded down), or its
  own place where it looked after none or the table doesn't say. So a node tends to keep what it had;
- one hash is floor((a.v + b) / width). The six entries of `a` are Gaussian (see gaussian), the width is
  r mean spacings, b is uniform below the width; a, b and the width carry 16 fractional bits;
- m hashes concatenated are a bucket, and there are l tables of them, drawn once per deployment from its
  seed. A node is a candidate for a device if all m hashes agree in at least one table;
- jitter, if set, adds to each entry of a node's vector a whole number uniform in [-j, +j], drawn anew in
  each epoch, where j is jitter_milli thousandths of the mean spacing.
"""

import numpy as np

from comesh.core.plan import Lsh
from comesh.core.selection.gaussian import ONE, gaussian
from comesh.core.selection.geometry import Integers
from comesh.core.selection.hashing import Words, chain, chain_each, id_hash

_DIMENSIONS = 6
_GAUSSIAN = id_hash("draw", "gaussian")
_OFFSET = id_hash("draw", "offset")
_JITTER = id_hash("draw", "jitter")


class HashFamily:
    """The l x m hash functions of one deployment."""

    def __init__(self, settings: Lsh, seed: int, spacing_mm: int) -> None:
        self.width = max(1, settings.r_milli * spacing_mm * ONE // 1000)
        self._seed = seed
        self._tables = settings.l
        self._jitter_mm = settings.jitter_milli * spacing_mm // 1000
        functions = [(table, row) for table in range(settings.l) for row in range(settings.m)]
        self.directions: Integers = np.array(
            [
                [gaussian(chain(seed, _GAUSSIAN, table, row, axis)) for axis in range(_DIMENSIONS)]
                for table, row in functions
            ],
            dtype=np.int64,
        )
        """One row of six entries per function, table by table."""
        self.offsets: Integers = np.array(
            [(chain(seed, _OFFSET, table, row) * self.width) >> 64 for table, row in functions],
            dtype=np.int64,
        )

    def buckets(self, vectors: Integers) -> Integers:
        """One row per function, one column per vector."""
        projected: Integers = self.directions @ vectors.T
        projected += self.offsets[:, None]
        projected //= self.width
        return projected

    def sharing(self, buckets: Integers, one: Integers) -> Integers:
        """The columns of buckets that agree with one column in all functions of some table."""
        agrees = (buckets == one[:, None]).reshape(self._tables, -1, buckets.shape[1])
        return np.flatnonzero(agrees.all(axis=1).any(axis=0))

    def jitter(self, epoch: int, nodes: Words) -> Integers | int:
        """What is added to the nodes' vectors in an epoch: one row of six per node, or nothing."""
        span = 2 * self._jitter_mm + 1
        if span == 1:
            return 0
        columns = [
            (chain_each(chain(self._seed, _JITTER, epoch, axis), nodes) >> np.uint64(32)).astype(np.int64)
            for axis in range(_DIMENSIONS)
        ]
        return np.stack(columns, axis=1) % span - self._jitter_mm
