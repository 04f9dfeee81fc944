"""P3, the paper's figure of quorum distances by N: LSH keeps groups small in space however large the mesh.

Grids of 50 to 1,000 devices, 40 % of them nodes, m = 2, l = 2, r = 4, f = 2; quorum distance as in P2.
"""

from comesh.experiments import stage
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, by_size

MEASURED = {"quorum_hops": "quorum distance in hops"}


def tables(table: stage.Table) -> dict[str, stage.Table]:
    return {
        "Quorum distance in hops": stage.means(
            stage.merged(table), ("preset", "devices"), ("quorum_hops",), across="members"
        ),
        "In the largest mesh against the smallest": stage.growths(
            stage.merged(table), ("preset", "members"), "devices", MEASURED
        ),
    }


EXPERIMENT = stage.Experiment(
    id="P3",
    title="Quorum distance by size",
    campaign=CAMPAIGN,
    paper="Section 3.6: it grows linearly with N for random selection, and stays small for LSH.",
    about=__doc__,
    tables=tables,
    draw=lambda table: by_size(table, MEASURED),
    looks_at=lambda case: DEFAULTS.items() <= case.items(),
)
