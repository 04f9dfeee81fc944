"""The members of one config: how many, of which power domains, none twice (paper, sections 2 and 3).

Which nodes a config gets is a policy's choice (`policies.py`). Whichever it is, a draft takes none twice, and
passes over one that would exceed its power domain's cap.

Rules:
- k = 2f+1 members where so many nodes are alive, otherwise the largest odd number that are;
- but not below 3 (or k, or the largest odd number of nodes that the deployment has, if that is less): a
  lone survivor does not shrink a group onto itself, the missing places go to absent nodes and the group
  waits for a quorum;
- a config of 2g+1 members has at most g of one power domain, so that losing the domain leaves a quorum.
  Where the domains of those alive don't allow it, the cap is the smallest that fits. A node without a
  domain is a domain of its own.
"""

from collections import Counter
from collections.abc import Iterable, Sequence


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


def config_size(f: int, alive: int, nodes: int) -> int:
    """The number of members of each config, given how many nodes are alive and how many there are."""
    k = 2 * f + 1
    least = min(3, k, _largest_odd(nodes))
    return max(least, min(k, _largest_odd(alive)))


def domain_cap(size: int, domains: Iterable[int]) -> int:
    """Returns how many members of one domain a config of that size may have, given each alive node's
    domain."""
    counts = Counter(domains).values()
    cap = max(1, (size - 1) // 2)
    while sum(min(count, cap) for count in counts) < size:
        cap += 1
    return cap


def _largest_odd(count: int) -> int:
    """The largest odd number that is not above count; 0 for none."""
    return max(0, count - 1 + count % 2)
