"""The campaign that P2 to P5 look at: selections in grids, by size, by policy, and by the hash parameters.

Grids of N devices, 40 % of them nodes, f = 2; per case one mesh, and what EPOCHS selections in it come to.
All nodes live, each epoch starts from the members of the one before, and every device relays. Random
selection does not look at the hash parameters, so it has the cases of the default ones only. The paper does
not say who is whose neighbour in its grids: P2 is measured both ways that are likely. The presets differ in
which near member leads.
"""

from collections.abc import Mapping
from typing import Final

from comesh.experiments.measures.presets import PRESETS
from comesh.experiments.measures.selections import LSH, RANDOM, selected, selection_of
from comesh.experiments.stage import (
    BY_SIZE,
    Campaign,
    Cases,
    Figure,
    Parameters,
    Row,
    Scale,
    Table,
    combinations,
    facets,
    merged,
    seeds,
)
from comesh.sim.topology import REACH_SPACINGS, Shape, make_topology

EPOCHS: Final = 8
SIZES: Final = (50, 100, 250, 500, 750, 1000)
REACHES: Final = {"diagonals": REACH_SPACINGS, "axes": 1.0}
"""In spacings: with the diagonals within a plane, or the six neighbours along the axes only."""
DEFAULTS: Final = {"m": 2, "l": 2, "r": 4, "neighbours": "diagonals"}
SHARP: Final = {**DEFAULTS, "m": 3}
"""Those of P2, with fewer candidates."""
SHARP_SIZE: Final = 1000
VARIED_SIZE: Final = 500
VARIED: Final = {"m": (1, 2, 3, 4), "l": (1, 2, 3, 4), "r": (1, 2, 4, 6, 8)}
"""Those of P5: one is varied, the others are the default ones."""


def meshes() -> Cases:
    """Sizes, policies and hash parameters, each combination once."""
    for devices in SIZES:
        for members in (LSH, RANDOM):
            yield {"devices": devices, "members": str(members), **DEFAULTS}
    yield {"devices": SHARP_SIZE, "members": str(LSH), **SHARP}
    yield {"devices": SHARP_SIZE, "members": str(LSH), **SHARP, "neighbours": "axes"}
    yield {"devices": SHARP_SIZE, "members": str(RANDOM), **DEFAULTS, "neighbours": "axes"}
    for name, values in VARIED.items():
        for value in values:
            if value != DEFAULTS[name]:
                yield {"devices": VARIED_SIZE, "members": str(LSH), **DEFAULTS, name: value}


def cases(scale: Scale) -> Cases:
    for chosen in combinations(preset=PRESETS, mesh=meshes(), seed=seeds(scale, 8, 30)):
        yield {"preset": chosen["preset"], **chosen["mesh"], "seed": chosen["seed"]}


def run(case: Parameters) -> list[Row]:
    members, seed = case["members"], case["seed"]
    topology = make_topology(
        Shape.GRID, devices=case["devices"], seed=seed, reach=REACHES[case["neighbours"]]
    )
    settings = selection_of(case["preset"], members, seed=seed, m=case["m"], l=case["l"], r=case["r"])
    found = selected(topology, settings, EPOCHS)
    row: Row = {"quorum_hops": found.quorum_hops, "kept": found.kept}
    if members == LSH:
        row |= {"candidates": found.candidates, "candidates_deviation": found.candidates_deviation}
    return [row]


def by_size(table: Table, y: Mapping[str, str]) -> Figure:
    """A measure against N, LSH beside random."""
    named = merged(table).adding(line=lambda row: f"{row['members']}, preset {row['preset']}")
    return facets(named, x=BY_SIZE, y=y, line="line", width=5.2)


CAMPAIGN = Campaign("selections", cases, run, about_s=lambda _: 0.05)
