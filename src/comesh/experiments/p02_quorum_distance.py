"""P2, the paper's section 3.6: near members are near, without many candidates.

Grids of N = 1,000 devices, 400 of them nodes, m = 3, l = 2, r = 4, f = 2. Quorum distance: hops from the
leader to its f-th nearest fellow member, whose answer makes f+1. Beside it: members and leader from anywhere;
and both in grids whose diagonals are two hops, because the paper does not say what a hop is in its grids.
"""

from comesh.experiments import stage
from comesh.experiments.measures.selection_campaign import CAMPAIGN, SHARP, SHARP_SIZE
from comesh.experiments.measures.selections import LSH, RANDOM

PAPER: dict[str, float] = {LSH: 2.4, RANDOM: 5.3}
MIN_TIMES = 2.0


def tables(table: stage.Table) -> dict[str, stage.Table]:
    by = ("preset", "neighbours", "members")
    found = stage.means(stage.merged(table), by, ("candidates", "quorum_hops"))
    return {"By who is whose neighbour": found.adding(paper=lambda row: PAPER[row["members"]])}


def _hops(table: stage.Table) -> dict[str, dict[str, float]]:
    """By preset and policy, with neighbours along the diagonals."""
    some = stage.merged(table).where(neighbours="diagonals")
    return {preset: rows.summary("members", "quorum_hops") for (preset,), rows in some.groups("preset")}


def bars(table: stage.Table) -> list[stage.Bar]:
    found = []
    for preset, hops in _hops(table).items():
        found.append(stage.Bar(f"quorum distance in hops, LSH, {preset}", hops[LSH], PAPER[LSH]))
        found.append(stage.Bar(f"random / LSH, {preset}", hops[RANDOM] / hops[LSH], MIN_TIMES, ">="))
    return found


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure()
    stage.draw_bars(axes, {f"preset {name}": hops for name, hops in _hops(table).items()} | {"paper": PAPER})
    stage.finish(axes, x="members and leader (N = 1,000, m = 3)", y="quorum distance in hops")
    return figure


EXPERIMENT = stage.Experiment(
    id="P2",
    title="Quorum distance",
    campaign=CAMPAIGN,
    paper="Section 3.6: at N = 1,000, m = 3, l = 2, r = 4 there are 21 candidates on average, and the "
    "average quorum distance is 2.4 hops, against 5.3 with random selection.",
    about=__doc__,
    tables=tables,
    draw=draw,
    bars=bars,
    looks_at=lambda case: (
        case["devices"] == SHARP_SIZE and (case["m"] == SHARP["m"] or case["members"] == RANDOM)
    ),
)
