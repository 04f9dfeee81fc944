"""The arithmetic of the core in numpy, for meshes of hundreds of nodes in one process."""

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from comesh.core.arithmetic import Arithmetic, Point, Projections, squared, use_for_large

Integers: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]

_FIRST_SORTED = 64
"""Number of lowest hashes that are sorted at first; a group hardly ever needs more."""
_MAX_PLAIN_ROWS = 8
"""Maximum rows that are sorted without making an array."""


class Vectorised(Arithmetic):
    """Vectorised arithmetic: columns are arrays of 64-bit integers."""

    def words(self, words: Sequence[int]) -> Words:
        return np.array(words, dtype=np.uint64)

    def places(self, points: Sequence[Point]) -> Integers:
        array: Integers = np.array(points, dtype=np.int64).reshape(len(points), 3)
        return array

    def rows(self, column: npt.NDArray[Any], rows: Sequence[int]) -> npt.NDArray[Any]:
        return column[np.array(rows, dtype=np.int64)]

    def chain_each(self, key: int, words: Words) -> Words:
        mixed = words ^ np.uint64(key)
        mixed += np.uint64(0x9E3779B97F4A7C15)
        shifted = mixed >> np.uint64(30)
        mixed ^= shifted
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        np.right_shift(mixed, np.uint64(27), out=shifted)
        mixed ^= shifted
        mixed *= np.uint64(0x94D049BB133111EB)
        np.right_shift(mixed, np.uint64(31), out=shifted)
        mixed ^= shifted
        return mixed

    def lowest_first(self, hashes: Words) -> Iterator[int]:
        """Returns the lowest hashes first; sorts no more than is asked for."""
        count = len(hashes)
        if count <= 2 * _FIRST_SORTED:
            yield from np.argsort(hashes, kind="stable").tolist()
            return
        below = hashes < np.uint64(((1 << 64) // count) * _FIRST_SORTED)
        few = np.flatnonzero(below)
        yield from few[np.argsort(hashes[few], kind="stable")].tolist()
        rest = np.flatnonzero(~below)
        yield from rest[np.argsort(hashes[rest], kind="stable")].tolist()

    def by_distance(self, places: Integers, point: Point) -> list[int]:
        order: list[int] = np.argsort(_squares(places, point), kind="stable").tolist()
        return order

    def nearest_first(self, among: Sequence[int], places: Integers, point: Point, hashes: Words) -> list[int]:
        if len(among) <= _MAX_PLAIN_ROWS:
            return sorted(
                among, key=lambda row: (squared(places[row].tolist(), point), int(hashes[row]), row)
            )
        rows = np.array(among, dtype=np.int64)
        order = np.lexsort((rows, hashes[rows], _squares(places[rows], point)))
        positions: list[int] = rows[order].tolist()
        return positions

    def nearest_points(self, places: Integers, points: Sequence[Point]) -> list[int]:
        squared: Integers = np.empty((len(places), len(points)), dtype=np.int64)
        for number, point in enumerate(points):
            squared[:, number] = _squares(places, point)
        nearest: list[int] = np.argmin(squared, axis=1).tolist()
        return nearest

    def mean_spacing_mm(self, places: Integers) -> int:
        distinct: Integers = np.unique(places, axis=0)
        if len(distinct) < 2:
            return 1
        remaining = distinct[1:]
        nearest = _squares(remaining, distinct[0])
        total_mm = 0
        while len(remaining):
            position = int(np.argmin(nearest))
            total_mm += isqrt(int(nearest[position]))
            joined = remaining[position]
            remaining = np.delete(remaining, position, axis=0)
            nearest = np.minimum(np.delete(nearest, position), _squares(remaining, joined))
        return max(1, total_mm // (len(distinct) - 1))

    def buckets(self, functions: Projections, vectors: Sequence[Sequence[int]]) -> Integers:
        """Returns buckets: one row per function, one column per vector."""
        directions = np.array(functions.directions, dtype=np.int64)
        columns = np.array(vectors, dtype=np.int64).reshape(len(vectors), 6).T
        projected: Integers = directions @ columns
        projected += np.array(functions.offsets, dtype=np.int64)[:, None]
        projected //= functions.width
        return projected

    def sharing(self, functions: Projections, buckets: Integers, vector: Sequence[int]) -> list[int]:
        one = np.array(functions.buckets(vector), dtype=np.int64).reshape(-1, 1)
        size = len(one) // functions.tables
        agrees = (buckets == one).reshape(functions.tables, size, buckets.shape[1])
        shared: list[int] = np.flatnonzero(agrees.all(axis=1).any(axis=0)).tolist()
        return shared

    def probe_weights(self, places: Integers, row: int, exponent: int) -> list[float]:
        squares = _squares(places, places[row]).astype(np.float64)
        apart = squares[squares > 0]
        nearest = float(apart.min()) if apart.size else 1.0
        distance = np.sqrt(np.maximum(squares / nearest, 1e-6))
        power = np.ones_like(distance)
        for _ in range(exponent):
            power = power * distance
        weights: list[float] = (1.0 / power).tolist()
        weights[row] = 0.0
        return weights

    def probe_order(self, key: int, counts: Sequence[int]) -> list[int]:
        each = np.array(counts, dtype=np.int64)
        words = self.chain_each(key, np.arange(len(each), dtype=np.uint64))
        starts = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        numbers = np.repeat(np.arange(len(each), dtype=np.int64), each)
        turns = np.arange(len(numbers), dtype=np.int64) - np.repeat(np.cumsum(each) - each, each)
        slots = (starts[numbers] + turns) / each[numbers]
        order: list[int] = numbers[np.argsort(slots, kind="stable")].tolist()
        return order


def _squares(places: Integers, point: Sequence[int] | Integers) -> Integers:
    away = places - np.array(point, dtype=np.int64)
    away *= away
    squared: Integers = away[:, 0] + away[:, 1] + away[:, 2]
    return squared


use_for_large(Vectorised())
