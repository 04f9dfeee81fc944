"""Settings of membership, each with its formula. Plain SWIM is a small delta of the base."""

import math

import msgspec


class MembershipSettings(msgspec.Struct, frozen=True, kw_only=True):
    period_ms: float = 1000.0
    """Period of probing: each node sends one probe per period."""
    spatial: bool = True
    """False: targets, helpers and gossip partners drawn uniformly, and no wards: plain SWIM."""
    exponent: int = 3
    """A node at distance d has the weight 1 / d^exponent."""
    relays: int = 3
    """Number of nodes asked to try when a direct probe got no answer."""
    fanout: int = 3
    """Number of nodes that get fresh gossip in each round."""
    exchange_periods: int = 30
    """Periods between comparisons of the whole table with one other node."""
    suspicion_periods: float = 1.0
    """Shortest suspicion, in periods, times log10 of the mesh's size."""
    suspicion_stretch: float = 3.0
    """Longest suspicion / shortest; independent suspicions shorten it."""
    confirmations: int = 2
    """Number of further, independent suspicions that shorten the suspicion to its minimum."""

    def suspicion_ms(self, size: int) -> float:
        """Returns suspicion_periods x period x log10(size), never below log10(10)."""
        return self.suspicion_periods * self.period_ms * math.log10(max(size, 10))

    def sends(self, size: int) -> int:
        """Returns how often one node repeats an update: ln(size) + 5, rounded up.

        If every node tells s random others, a given one is missed with probability e^-s, so somebody is
        missed with size x e^-s = e^-5: less than one update in a hundred has to wait for an exchange.
        """
        return math.ceil(math.log(max(size, 1)) + 5)

    @property
    def gossip_ms(self) -> float:
        """Time between two gossip rounds while there is gossip: a tenth of a period."""
        return self.period_ms / 10

    @property
    def min_timeout_ms(self) -> float:
        """Minimum timeout of a probe, however near the target: a tenth of a period."""
        return self.period_ms / 10

    @property
    def max_timeout_ms(self) -> float:
        """Maximum timeout of a probe, also used while a peer's round trip is unknown: half of a period."""
        return self.period_ms / 2

    @property
    def exchange_ms(self) -> float:
        return self.exchange_periods * self.period_ms


SWIM = MembershipSettings(spatial=False)
"""Plain SWIM: uniform targets, everything else the same; Medley is compared with it."""
