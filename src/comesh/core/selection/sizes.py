"""How many members a config has, and how many of them may share a power domain (paper, sections 2 and 3).

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
from collections.abc import Iterable


def config_size(f: int, alive: int, nodes: int) -> int:
    """The number of members of each config, given how many nodes are alive and how many there are."""
    k = 2 * f + 1
    least = min(3, k, _largest_odd(nodes))
    return max(least, min(k, _largest_odd(alive)))


def domain_cap(size: int, domains: Iterable[int]) -> int:
    """How many members of one domain a config of that size may have, given each alive node's domain."""
    counts = Counter(domains).values()
    cap = max(1, (size - 1) // 2)
    while sum(min(count, cap) for count in counts) < size:
        cap += 1
    return cap


def _largest_odd(count: int) -> int:
    """The largest odd number that is not above count; 0 for none."""
    return max(0, count - 1 + count % 2)
