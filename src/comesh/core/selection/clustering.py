"""Which devices form a cluster (paper, section 3.6: "Limiting the Number of k-groups").

Rules:
- there are as few clusters as the size cap allows, at planning, and none is above the cap;
- policy locality is k-means with a cap, in integers. It begins by halving: the devices are split across
  their widest extent into two parts of as many clusters each, and so on, which gives compact clusters of
  equal size. Then passes of k-means: every device that is nearer to another cluster's mean moves there
  if there is room, or changes places with the device there that gains most, if both together come
  nearer. It ends when a pass changes nothing, or after PASSES;
- policy random deals the devices out in order of their hashes;
- ties are broken by the devices' order, which is that of their ids.
"""

from collections.abc import Sequence

from comesh.core.arithmetic import Point, arithmetic_for, mean_point, squared
from comesh.core.selection.hashing import chain, chain_on, id_hash

PASSES = 20
_PARTITION = id_hash("draw", "partition")


def clusters_by_place(points: Sequence[Point], size_cap: int) -> list[list[int]]:
    """The rows of points in each cluster, each list in order and the lists in order of their first row."""
    count = -(-len(points) // size_cap)
    if count == 0:
        return []
    clusters = _Clusters(points, size_cap)
    clusters.split(range(len(points)), count, 0)
    for _ in range(PASSES):
        if not clusters.improve():
            break
    return _as_lists(clusters.labels)


def clusters_by_hash(words: Sequence[int], size_cap: int, seed: int) -> list[list[int]]:
    """The same, dealt out in order of the hashes of words."""
    count = -(-len(words) // size_cap)
    key = chain(seed, _PARTITION)
    order = sorted(range(len(words)), key=lambda row: chain_on(key, words[row]))
    labels = [0] * len(words)
    for place, row in enumerate(order):
        labels[row] = place % count
    return _as_lists(labels)


def _as_lists(labels: Sequence[int]) -> list[list[int]]:
    return sorted(sorted(rows) for rows in _members(labels).values())


def _members(labels: Sequence[int]) -> dict[int, set[int]]:
    members: dict[int, set[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, set()).add(row)
    return members


class _Clusters:
    """A label for each of several points."""

    def __init__(self, points: Sequence[Point], size_cap: int) -> None:
        self._points = points
        self._size_cap = size_cap
        self._arithmetic = arithmetic_for(len(points))
        self._places = self._arithmetic.places(points)
        self._members: dict[int, set[int]] = {}
        self._means: dict[int, Point] = {}
        self.labels = [0] * len(points)

    def split(self, rows: Sequence[int], count: int, first_label: int) -> None:
        """Give the rows the labels from first_label on, count of them, near rows the same."""
        if count <= 1:
            for row in rows:
                self.labels[row] = first_label
            return
        points = self._points
        extents = [max(axis) - min(axis) for axis in zip(*(points[row] for row in rows), strict=True)]
        axis = extents.index(max(extents))
        second, third = (axis + 1) % 3, (axis + 2) % 3
        order = sorted(rows, key=lambda row: (points[row][axis], points[row][second], points[row][third]))
        lower_count = count // 2
        cut = len(rows) * lower_count // count
        self.split(order[:cut], lower_count, first_label)
        self.split(order[cut:], count - lower_count, first_label + lower_count)

    def improve(self) -> bool:
        """Does one pass of k-means over the devices that are not with their nearest mean; says if any
        moved."""
        members = self._members = _members(self.labels)
        self._means = {
            label: mean_point(self._points[row] for row in members[label]) for label in sorted(members)
        }
        labels = list(self._means)
        near = self._arithmetic.nearest_points(self._places, list(self._means.values()))
        nearest = [labels[number] for number in near]
        gains = [self._gain(row, self.labels[row], target) for row, target in enumerate(nearest)]
        moved = False
        for row in sorted(range(len(gains)), key=lambda row: -gains[row]):
            if gains[row] == 0:
                break
            moved |= self._move_to(nearest[row], row)
        return moved

    def _move_to(self, target: int, row: int) -> bool:
        """Move a row if there is room, or change places with the one there that gains most."""
        source = self.labels[row]
        if source == target:
            return False
        if len(self._members[target]) < self._size_cap:
            self._move(row, source, target)
            return True
        best = max(self._members[target], key=lambda other: (self._gain(other, target, source), -other))
        if self._gain(row, source, target) + self._gain(best, target, source) <= 0:
            return False
        self._move(row, source, target)
        self._move(best, target, source)
        return True

    def _gain(self, row: int, source: int, target: int) -> int:
        """Returns by how much a row is nearer to the mean of target than to that of source."""
        if source == target:
            return 0
        point = self._points[row]
        return squared(point, self._means[source]) - squared(point, self._means[target])

    def _move(self, row: int, source: int, target: int) -> None:
        self.labels[row] = target
        self._members[source].discard(row)
        self._members[target].add(row)
