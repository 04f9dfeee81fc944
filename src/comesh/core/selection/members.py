"""How members are found: a draft that keeps the rules of a config, and orders to take nodes in.

Which nodes a config gets is a policy's choice (`policies.py`). Whichever it is, none is taken twice, and one
that would exceed its power domain's cap is passed over.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from comesh.core.selection.geometry import Integers, squared_distances
from comesh.core.selection.hashing import Words


class Draft:
    """Members of one config as they are found, none of them twice and no domain above the cap."""

    __slots__ = ("_cap", "_domains", "_of_domain", "_size", "chosen")

    def __init__(self, domains: Sequence[int], cap: int, size: int) -> None:
        self._domains = domains
        self._cap = cap
        self._size = size
        self._of_domain: dict[int, int] = {}
        self.chosen: list[int] = []

    def take(self, positions: Iterable[int], until: int) -> None:
        """Take from positions, in their order, until there are so many members, of its size at most."""
        chosen = self.chosen
        until = min(until, self._size)
        if len(chosen) >= until:
            return
        for position in positions:
            if position < 0:
                raise IndexError(f"there is no node at position {position}")
            domain = self._domains[position]
            taken = self._of_domain.get(domain, 0)
            if taken >= self._cap or position in chosen:
                continue
            self._of_domain[domain] = taken + 1
            chosen.append(position)
            if len(chosen) == until:
                return


def nearest_first(candidates: Integers, places: Integers, centre: Integers, hashes: Words) -> list[int]:
    """Candidates in order of distance to the centre, then hash, then id. places and hashes are of all."""
    order = np.lexsort((hashes[candidates], squared_distances(places[candidates], centre)))
    positions: list[int] = candidates[order].tolist()
    return positions


def by_hash(positions: Iterable[int], hashes: Words) -> list[int]:
    """Positions by hash, then id."""
    return sorted(positions, key=lambda position: (int(hashes[position]), position))
