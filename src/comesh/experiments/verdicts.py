"""What several experiments about delays say of their curves: how much they grow, which is below which."""

from collections.abc import Mapping


def growth(curve: Mapping[int, float]) -> float:
    """The last value against the first."""
    return curve[max(curve)] / curve[min(curve)]


def grows_slower(curve: Mapping[int, float]) -> bool:
    """It grows, and by less than what it is drawn against."""
    return 1 < growth(curve) < max(curve) / min(curve)


def mean_ratio(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """One curve against the other, the mean over the points that both have."""
    shared = [at for at in one if at in other]
    return sum(one[at] / other[at] for at in shared) / len(shared)
