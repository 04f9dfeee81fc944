"""Places as arrays of whole millimetres: distances, and the mean spacing that r is a multiple of.

Rules:
- distances are compared as squares, so nothing is rounded;
- no coordinate is beyond 100 km, so that squares, sums and projections stay inside 63 bits: a squared
  distance is below 3 x (2 x 10^8)^2 = 1.2 x 10^17, a projection (see lsh) below 6 x 10^8 x 393,210
  plus one bucket's width, and 2^63 is 9.2 x 10^18;
- the mean spacing is the mean edge of the shortest tree that connects the nodes' distinct places, each
  edge rounded down to a millimetre. On a grid that is the grid's step. Unlike the mean distance to the
  nearest neighbour it does not collapse where nodes stand in pairs, and unlike the volume per place it
  means the same for a line, a floor and a building. Which tree is chosen among equals does not matter:
  all shortest trees have the same edge lengths.
"""

from collections.abc import Iterable
from math import isqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from comesh.core.plan import Place

Integers: TypeAlias = npt.NDArray[np.int64]

FARTHEST_MM = 100_000_000


def place_array(places: Iterable[Place]) -> Integers:
    """One row (x, y, z) per place."""
    rows = [(place.x_mm, place.y_mm, place.z_mm) for place in places]
    array: Integers = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    return array


def squared_distances(places: Integers, point: Integers) -> Integers:
    """From each row of places to one point, in square millimetres."""
    away = places - point
    away *= away
    squared: Integers = away[:, 0] + away[:, 1] + away[:, 2]
    return squared


def mean_place(places: Integers) -> Integers:
    """The mean of at least one place, rounded down to whole millimetres."""
    total: Integers = places.sum(axis=0, dtype=np.int64)
    return total // len(places)


def mean_spacing_mm(places: Integers) -> int:
    """The mean edge of the shortest spanning tree (Prim's), at least 1."""
    distinct: Integers = np.unique(places, axis=0)
    if len(distinct) < 2:
        return 1
    remaining = distinct[1:]
    nearest = squared_distances(remaining, distinct[0])
    total_mm = 0
    while len(remaining):
        position = int(np.argmin(nearest))
        total_mm += isqrt(int(nearest[position]))
        joined = remaining[position]
        remaining = np.delete(remaining, position, axis=0)
        nearest = np.minimum(np.delete(nearest, position), squared_distances(remaining, joined))
    return max(1, total_mm // (len(distinct) - 1))
