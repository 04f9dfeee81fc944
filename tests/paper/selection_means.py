"""Means of a few cases of the campaign of P2 to P5, each measured once for all tests."""

from functools import cache

from comesh.experiments.measures.selection_campaign import DEFAULTS, run
from comesh.experiments.stage import Parameters, Table

SEEDS = range(1, 4)


@cache
def _measured(names: tuple[str, ...], values: tuple[object, ...]) -> Table:
    case: Parameters = dict(zip(names, values, strict=True))
    return Table({**case, "seed": seed, **row} for seed in SEEDS for row in run({**case, "seed": seed}))


def measured(devices: int, members: str, preset: str = "paper", **parameters: object) -> Table:
    """The rows of a mesh, one per seed, with the default parameters but for those."""
    case = {"preset": preset, "devices": devices, "members": members, **DEFAULTS, **parameters}
    return _measured(tuple(case), tuple(case.values()))
