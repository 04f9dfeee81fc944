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

import numpy as np

from comesh.core.selection.geometry import Integers, mean_place, squared_distances
from comesh.core.selection.hashing import Words, chain, chain_each, id_hash

PASSES = 20
_PARTITION = id_hash("draw", "partition")


def clusters_by_place(places: Integers, size_cap: int) -> list[list[int]]:
    """The rows of places in each cluster, each list in order and the lists in order of their first row."""
    count = -(-len(places) // size_cap)
    if count == 0:
        return []
    labels = np.zeros(len(places), dtype=np.int64)
    _split(places, np.arange(len(places), dtype=np.int64), count, 0, labels)
    for _ in range(PASSES):
        if not _improve(places, labels, count, size_cap):
            break
    return _as_lists(labels, count)


def clusters_by_hash(words: Words, size_cap: int, seed: int) -> list[list[int]]:
    """The same, dealt out in order of the hashes of words."""
    count = -(-len(words) // size_cap)
    labels = np.zeros(len(words), dtype=np.int64)
    order = np.argsort(chain_each(chain(seed, _PARTITION), words), kind="stable")
    labels[order] = np.arange(len(words), dtype=np.int64) % max(1, count)
    return _as_lists(labels, count)


def _as_lists(labels: Integers, count: int) -> list[list[int]]:
    found: list[list[int]] = [np.flatnonzero(labels == label).tolist() for label in range(count)]
    return sorted(rows for rows in found if rows)


def _split(places: Integers, rows: Integers, count: int, first_label: int, labels: Integers) -> None:
    """Give the rows the labels from first_label on, count of them, near rows the same."""
    if count <= 1:
        labels[rows] = first_label
        return
    here = places[rows]
    axis = int(np.argmax(here.max(axis=0) - here.min(axis=0)))
    others = [(axis + 1) % 3, (axis + 2) % 3]
    order = rows[np.lexsort((here[:, others[1]], here[:, others[0]], here[:, axis]))]
    lower_count = count // 2
    cut = len(rows) * lower_count // count
    _split(places, order[:cut], lower_count, first_label, labels)
    _split(places, order[cut:], count - lower_count, first_label + lower_count, labels)


def _improve(places: Integers, labels: Integers, count: int, size_cap: int) -> bool:
    """One pass of k-means over the devices that are not with their nearest mean; says if any moved."""
    sizes = np.bincount(labels, minlength=count)
    squared: Integers = np.full((len(places), count), np.iinfo(np.int64).max, dtype=np.int64)
    for label in np.flatnonzero(sizes).tolist():
        squared[:, label] = squared_distances(places, mean_place(places[labels == label]))
    every_row = np.arange(len(places))
    gains = squared[every_row, labels] - squared.min(axis=1)
    moved = False
    for row in np.argsort(-gains, kind="stable").tolist():
        if gains[row] == 0:
            break
        source, target = int(labels[row]), int(np.argmin(squared[row]))
        if source == target:
            continue
        gain = int(squared[row, source] - squared[row, target])
        if sizes[target] < size_cap:
            labels[row] = target
            sizes[source] -= 1
            sizes[target] += 1
            moved = True
            continue
        there = np.flatnonzero(labels == target)
        gains_there = squared[there, target] - squared[there, source]
        best = int(np.argmax(gains_there))
        if gain + int(gains_there[best]) > 0:
            labels[row], labels[there[best]] = target, source
            moved = True
    return moved
