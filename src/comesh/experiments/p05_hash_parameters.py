"""P5, the paper's figures by m, l and r: what the parameters of the hashing do.

Grids of N = 500 devices, 200 of them nodes, f = 2. One parameter is varied, the others are the default ones
(m = 2, l = 2, r = 4).
"""

from comesh.experiments import stage
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, VARIED, VARIED_SIZE
from comesh.experiments.measures.selections import LSH

MEASURED = {
    "candidates": "candidates",
    "quorum_hops": "quorum distance in hops",
    "kept": "members kept, of 5",
}


def varied(table: stage.Table) -> stage.Table:
    """Rows once for each parameter that is varied while the others are the default ones."""
    found = []
    for parameter in VARIED:
        others = {name: value for name, value in DEFAULTS.items() if name != parameter}
        found += [{**row, "varied": parameter, "value": row[parameter]} for row in table.where(**others)]
    return stage.Table(found)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    return {"": stage.means(varied(stage.merged(table)), ("preset", "varied", "value"), MEASURED)}


def draw(table: stage.Table) -> stage.Figure:
    x = {"value": "value of the parameter"}
    return stage.facets(varied(stage.merged(table)), x=x, y=MEASURED, line="preset", row="varied", width=3.6)


EXPERIMENT = stage.Experiment(
    id="P5",
    title="Hash parameters",
    campaign=CAMPAIGN,
    paper="Section 3.6, at N = 500 with 200 nodes: large m reduce the number of candidates, while large l "
    "and r may increase it. Its figures show quorum distance and overlap, without numbers in the text.",
    about=__doc__,
    tables=tables,
    draw=draw,
    looks_at=lambda case: case["devices"] == VARIED_SIZE and case["members"] == LSH,
)
