"""What selection and membership compute over many rows at once: nodes or devices, in order of their ids.

Rules:
- `Arithmetic` needs Python only, and is fast enough for a node. Who simulates large meshes has numpy, and
  registers a faster one with `use_for_large` (`sim/vectorised.py`); both give the same results to the bit;
- distances are compared as squares, so nothing is rounded;
- no coordinate is beyond 100 km, so that squares, sums and projections stay inside 63 bits: a squared
  distance is below 3 x (2 x 10^8)^2 = 1.2 x 10^17, a projection (see selection/lsh) below 6 x 10^8 x 393,210
  plus one bucket's width, and 2^63 is 9.2 x 10^18;
- floats are for probing only, with correctly rounded operations in one order, so that machines agree.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from comesh.core.plan import Place

Point: TypeAlias = tuple[int, int, int]
"""x, y and z in millimetres."""
Words: TypeAlias = Any
"""64 bits for each row, as an arithmetic keeps them; every one has len() and [row]."""
Places: TypeAlias = Any
"""A point for each row."""
Buckets: TypeAlias = Any
"""The bucket in each table for each row."""

FARTHEST_MM = 100_000_000
MAX_SMALL = 100
"""Rows up to which the one of Python is not slower."""
_MASK = (1 << 64) - 1


class Projections(NamedTuple):
    """Functions floor((direction . vector + offset) / width), in tables of equally many."""

    directions: Sequence[tuple[int, int, int, int, int, int]]
    """One per function, table by table."""
    offsets: Sequence[int]
    width: int
    tables: int

    def buckets(self, vector: Sequence[int]) -> list[tuple[int, ...]]:
        """The bucket of a vector in each table: a number per function."""
        u, v, w, x, y, z = vector
        numbers = [
            (a * u + b * v + c * w + d * x + e * y + f * z + offset) // self.width
            for (a, b, c, d, e, f), offset in zip(self.directions, self.offsets, strict=True)
        ]
        size = len(numbers) // self.tables
        return [tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)]


class Arithmetic:
    """Python's own numbers, in lists."""

    def words(self, words: Sequence[int]) -> Words:
        return list(words)

    def places(self, points: Sequence[Point]) -> Places:
        return list(points)

    def rows(self, column: Any, rows: Sequence[int]) -> Any:
        """Those rows of words or places, in this order."""
        return [column[row] for row in rows]

    def chain_each(self, key: int, words: Words) -> Words:
        """For each word w what chain(..., w) would be, where key is the chain of those before it."""
        mixed = []
        for word in words:
            one = ((word ^ key) + 0x9E3779B97F4A7C15) & _MASK
            one = ((one ^ (one >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            one = ((one ^ (one >> 27)) * 0x94D049BB133111EB) & _MASK
            mixed.append(one ^ (one >> 31))
        return mixed

    def lowest_first(self, hashes: Words) -> Iterator[int]:
        """Rows from the lowest hash to the highest, of equals by row."""
        return iter(sorted(range(len(hashes)), key=hashes.__getitem__))

    def by_distance(self, places: Places, point: Point) -> list[int]:
        """All rows by their distance from a point, of equals by row."""
        away = _squares(places, point)
        return sorted(range(len(away)), key=away.__getitem__)

    def nearest_first(self, among: Sequence[int], places: Places, point: Point, hashes: Words) -> list[int]:
        """Some rows by their distance from a point, then hash, then row. places and hashes are of all."""
        away = _squares([places[row] for row in among], point)
        order = sorted(zip(away, [hashes[row] for row in among], among, strict=True))
        return [row for _, _, row in order]

    def nearest_points(self, places: Places, points: Sequence[Point]) -> list[int]:
        """For each row the number of the point that is nearest to it, of equals the first."""
        numbers = range(len(points))
        return [min(numbers, key=_squares(points, place).__getitem__) for place in places]

    def mean_spacing_mm(self, places: Places) -> int:
        """The mean edge of the shortest spanning tree (Prim's), each rounded down; at least 1."""
        first, *others = sorted(set(places))
        if not others:
            return 1
        nearest = list(zip(_squares(others, first), others, strict=True))
        total_mm = 0
        while nearest:
            away, (x, y, z) = shortest = min(nearest)
            total_mm += math.isqrt(away)
            nearest.remove(shortest)
            nearest = [
                (min(before, (a - x) * (a - x) + (b - y) * (b - y) + (c - z) * (c - z)), (a, b, c))
                for before, (a, b, c) in nearest
            ]
        return max(1, total_mm // len(others))

    def buckets(self, functions: Projections, vectors: Sequence[Sequence[int]]) -> Buckets:
        """The buckets of all rows: the rows in each bucket of each table."""
        tables: list[dict[tuple[int, ...], list[int]]] = [{} for _ in range(functions.tables)]
        for row, vector in enumerate(vectors):
            for table, bucket in zip(tables, functions.buckets(vector), strict=True):
                table.setdefault(bucket, []).append(row)
        return tables

    def sharing(self, functions: Projections, buckets: Buckets, vector: Sequence[int]) -> list[int]:
        """The rows that are in one bucket with a vector in some table, in order."""
        shared = zip(buckets, functions.buckets(vector), strict=True)
        return sorted({row for table, bucket in shared for row in table.get(bucket, ())})

    def probe_weights(self, places: Places, row: int, exponent: int) -> list[float]:
        """1 / distance^exponent from one row to each, in units of the nearest that is apart; 0 to itself.

        Rows in one place count as a thousandth of the nearest distance apart.
        """
        apart = [float(square) for square in _squares(places, places[row])]
        nearest = min(filter(None, apart), default=1.0)
        distances = [math.sqrt(max(square / nearest, 1e-6)) for square in apart]
        powers = [1.0] * len(distances)
        for _ in range(exponent):
            powers = [power * distance for power, distance in zip(powers, distances, strict=True)]
        weights = [1.0 / power for power in powers]
        weights[row] = 0.0
        return weights

    def probe_order(self, key: int, counts: Sequence[int]) -> list[int]:
        """Rows in the order of their slots: counts of each, at even distances from a drawn start."""
        starts = self.chain_each(key, range(len(counts)))
        slots: list[float] = []
        numbers: list[int] = []
        for number, (count, word) in enumerate(zip(counts, starts, strict=True)):
            start = (word >> 11) * 2.0**-53
            slots += [(start + turn) / count for turn in range(count)]
            numbers += [number] * count
        return [numbers[slot] for slot in sorted(range(len(slots)), key=slots.__getitem__)]


PLAIN = Arithmetic()
_large: list[Arithmetic] = []


def use_for_large(arithmetic: Arithmetic) -> None:
    """From now on this process uses it for more than MAX_SMALL rows."""
    _large[:] = [arithmetic]


def arithmetic_for(rows: int) -> Arithmetic:
    return _large[0] if _large and rows > MAX_SMALL else PLAIN


def point_of(place: Place) -> Point:
    return place.x_mm, place.y_mm, place.z_mm


def squared(one: Sequence[int], other: Sequence[int]) -> int:
    """The squared distance of two points, in square millimetres."""
    x, y, z = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return x * x + y * y + z * z


def mean_point(points: Iterable[Point]) -> Point:
    """The mean of at least one point, rounded down to whole millimetres."""
    xs, ys, zs = zip(*points, strict=True)
    return sum(xs) // len(xs), sum(ys) // len(ys), sum(zs) // len(zs)


def _squares(points: Iterable[Point], point: Point) -> list[int]:
    x, y, z = point
    return [(a - x) * (a - x) + (b - y) * (b - y) + (c - z) * (c - z) for a, b, c in points]
