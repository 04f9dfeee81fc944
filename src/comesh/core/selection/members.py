"""Which nodes become members: `random` and `lsh-mix` (paper, sections 3.1 and 3.6).

Rules, for a config of 2g+1 members:
- `random`: the lowest hashes;
- `lsh-mix`: first g+1 local members, then g by lowest hash from the rest. Local are the candidates
  nearest to the cluster's centre (ties by hash, which spreads load on grids); if they don't suffice, the
  candidates of the centre's neighbours are borrowed, the nearest neighbour's first, each neighbour's in
  order of distance to the centre; what is still missing is taken by hash;
- a node that would exceed its power domain's cap is passed over, whichever way it came up;
- rank order: local members by hash, then the others by hash. Under `random` the g+1 members nearest to
  the centre count as local. With leader policy random, and in a group without a centre, all by hash.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from comesh.core.selection.geometry import Integers, squared_distances
from comesh.core.selection.hashing import Words


class Draft:
    """Members of one config as they are found, none of them twice and no domain above the cap."""

    __slots__ = ("_cap", "_domains", "_of_domain", "chosen")

    def __init__(self, domains: Sequence[int], cap: int) -> None:
        self._domains = domains
        self._cap = cap
        self._of_domain: dict[int, int] = {}
        self.chosen: list[int] = []

    def take(self, positions: Iterable[int], until: int) -> None:
        """Take from positions, in their order, until there are so many members."""
        chosen = self.chosen
        if len(chosen) >= until:
            return
        for position in positions:
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
