"""P4, the paper's figure of overlaps by N: how many of a group's members are members in the next epoch too.

Grids of 50 to 1,000 devices, 40 % of them nodes, m = 2, l = 2, r = 4; f = 2, so groups have five members. A
member that stays has the group's data already, which makes epochs cheaper to change. By chance: what is in
both of two draws of five nodes.
"""

from comesh.experiments import stage
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, by_size
from comesh.experiments.measures.selections import LSH, RANDOM
from comesh.sim.topology import SMART_SHARE

MEMBERS = 5


def tables(table: stage.Table) -> dict[str, stage.Table]:
    kept = stage.means(stage.merged(table), ("preset", "devices"), ("kept",), across="members").adding(
        times=lambda row: row[LSH].value / row[RANDOM].value,
        by_chance=lambda row: MEMBERS**2 / (row["devices"] * SMART_SHARE),
    )
    return {f"Members kept, of {MEMBERS}": kept}


EXPERIMENT = stage.Experiment(
    id="P4",
    title="Members kept from epoch to epoch",
    campaign=CAMPAIGN,
    paper="Section 3.6: the overlap under LSH falls for large N, and is much larger than under random.",
    about=__doc__,
    tables=tables,
    draw=lambda table: by_size(table, {"kept": f"members kept, of {MEMBERS}"}),
    looks_at=lambda case: DEFAULTS.items() <= case.items(),
)
