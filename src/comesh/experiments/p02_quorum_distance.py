"""P2, the paper's section 3.6: near members are near, without many candidates.

Grids of N = 1,000 devices, 400 of them nodes, m = 3, l = 2, r = 4, f = 2. Quorum distance: hops from the
leader to its f-th nearest fellow member, whose answer makes f+1. Beside it: members and leader from anywhere;
and both in grids whose diagonals are two hops, because the paper does not say what a hop is in its grids.
"""

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged, within
from comesh.experiments.measures.presets import by_preset
from comesh.experiments.measures.selection_campaign import CAMPAIGN, NOTE, SHARP, SHARP_SIZE, cases, run
from comesh.experiments.measures.selections import LSH, RANDOM
from comesh.experiments.p01_candidates import PAPER as PAPER_CANDIDATES_BY_SIZE
from comesh.experiments.p01_candidates import off_by
from comesh.experiments.plots import COLOURS, PAPER, finish, new_figure
from comesh.experiments.table import Table

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

PAPER_CANDIDATES = 21
PAPER_OF_TWO_HASHES = PAPER_CANDIDATES_BY_SIZE[SHARP_SIZE]
PAPER_LSH_HOPS = 2.4
PAPER_RANDOM_HOPS = 5.3
PAPER_TIMES = PAPER_RANDOM_HOPS / PAPER_LSH_HOPS
TOLERANCE = 0.25


def near(table: Table, neighbours: str = "diagonals") -> Table:
    return table.where(devices=SHARP_SIZE, members=LSH, **{**SHARP, "neighbours": neighbours})


def anywhere(table: Table, neighbours: str = "diagonals") -> Table:
    return table.where(devices=SHARP_SIZE, members=RANDOM, neighbours=neighbours)


def compare(table: Table) -> list[Comparison]:
    return [
        one
        for preset, rows in by_preset(table).items()
        for one in (_candidates(preset, rows), *_distances(preset, rows))
    ]


def _candidates(preset: str, table: Table) -> Comparison:
    candidates = near(table).mean("candidates")
    agrees = within(candidates, PAPER_CANDIDATES, TOLERANCE)
    of_p1 = (
        f"the paper's own {PAPER_OF_TWO_HASHES} at m = 2 (P1) leave no fewer than 20 at m = 3, and that "
        "only if far nodes were as likely candidates as near ones"
    )
    known = of_p1 if candidates > PAPER_CANDIDATES else ""
    why, short = off_by(near(table).numbers("candidates"), PAPER_CANDIDATES, known=known)
    return Comparison(
        what=f"candidates, {preset}",
        ours=f"{candidates:.1f}",
        paper=f"{PAPER_CANDIDATES}: within {TOLERANCE:.0%}",
        verdict=judged(agrees=agrees),
        why="" if agrees else why,
        in_short="" if agrees else f"At m = 3 {short}.",
    )


def _distances(preset: str, table: Table) -> tuple[Comparison, ...]:
    lsh = near(table).mean("quorum_hops")
    random = anywhere(table).mean("quorum_hops")
    axes_lsh = near(table, "axes").mean("quorum_hops")
    axes_random = anywhere(table, "axes").mean("quorum_hops")
    lsh_agrees = within(lsh, PAPER_LSH_HOPS, TOLERANCE)
    random_agrees = within(random, PAPER_RANDOM_HOPS, TOLERANCE)
    why = (
        "The paper does not say who is whose neighbour in its grids. With diagonals of one hop, as here, "
        f"{_fitting(lsh, random)}; with neighbours along the axes only, LSH comes to {axes_lsh:.1f} hops and "
        f"random to {axes_random:.1f}, and {_fitting(axes_lsh, axes_random)}. Random is "
        f"{random / lsh:.1f} or {axes_random / axes_lsh:.1f} times as far as LSH, against {PAPER_TIMES:.1f} "
        "reported."
    )
    return (
        Comparison(
            what=f"quorum distance in hops, LSH, {preset}",
            ours=f"{lsh:.2f}",
            paper=f"{PAPER_LSH_HOPS}",
            verdict=judged(agrees=lsh_agrees, better=lsh < PAPER_LSH_HOPS),
            why="" if lsh_agrees else why,
            in_short=""
            if lsh_agrees or lsh < PAPER_LSH_HOPS
            else _in_short("under LSH", lsh, axes_lsh, PAPER_LSH_HOPS),
            bar="at most 2.4",
            met=lsh <= PAPER_LSH_HOPS,
        ),
        Comparison(
            what=f"quorum distance in hops, random, {preset}",
            ours=f"{random:.2f}, {random / lsh:.1f} times that of LSH",
            paper=f"{PAPER_RANDOM_HOPS}, {PAPER_TIMES:.1f} times",
            verdict=judged(agrees=random_agrees),
            why="" if random_agrees else why,
            in_short="" if random_agrees else _in_short("at random", random, axes_random, PAPER_RANDOM_HOPS),
            bar="at least twice that of LSH",
            met=random >= 2 * lsh,
        ),
        Comparison(
            what=f"the same with neighbours along the axes only, {preset}",
            ours=f"LSH {axes_lsh:.2f}, random {axes_random:.2f}, {axes_random / axes_lsh:.1f} times",
            verdict=Verdict.OURS,
        ),
    )


def _fitting(lsh: float, random: float) -> str:
    """Which of two distances in one kind of grid are the paper's."""
    fits = within(lsh, PAPER_LSH_HOPS, TOLERANCE), within(random, PAPER_RANDOM_HOPS, TOLERANCE)
    if fits[0] == fits[1]:
        return "both fit the paper's" if fits[0] else "neither fits the paper's"
    return f"the distance of {'LSH' if fits[0] else 'random selection'} fits the paper's"


def _in_short(selected: str, hops: float, axes_hops: float, paper: float) -> str:
    """Whether who is whose neighbour explains it."""
    unknown = "and the paper does not say which its grids have"
    if within(axes_hops, paper, TOLERANCE):
        why = f"with neighbours along the axes only it fits, {unknown}"
    elif hops < paper < axes_hops:
        why = f"it is less with diagonals of one hop, more with neighbours along the axes only, {unknown}"
    else:
        why = "who is whose neighbour does not explain it"
    return f"A quorum {selected} is {'farther' if hops > paper else 'nearer'} than in the paper: {why}."


def draw(table: Table) -> Figure:
    presets = by_preset(table)
    figure, axes = new_figure()
    width = 0.8 / (len(presets) + 1)
    for number, (preset, rows) in enumerate(presets.items()):
        hops = [near(rows).mean("quorum_hops"), anywhere(rows).mean("quorum_hops")]
        places = [place + number * width for place in range(2)]
        axes.bar(places, hops, width, label=f"ours, preset {preset}", color=COLOURS[number])
    places = [place + len(presets) * width for place in range(2)]
    axes.bar(
        places,
        [PAPER_LSH_HOPS, PAPER_RANDOM_HOPS],
        width,
        label="reported by the paper",
        color=PAPER["color"],
    )
    axes.set_xticks([place + len(presets) * width / 2 for place in range(2)], ["LSH", "random"])
    finish(axes, x="members and leader (N = 1,000, m = 3)", y="quorum distance in hops")
    return figure


EXPERIMENT = Experiment(
    id="P2",
    title="Quorum distance",
    campaign=CAMPAIGN,
    paper=(
        "Section 3.6: at N = 1,000, m = 3, l = 2, r = 4 there are 21 candidates on average, and the average "
        "quorum distance is 2.4 hops, against 5.3 with random selection."
    ),
    compare=compare,
    draw=draw,
    about=f"{NOTE} f = 2: groups of five.",
    looks_at=lambda case: (
        case["devices"] == SHARP_SIZE and (case["m"] == SHARP["m"] or case["members"] == RANDOM)
    ),
)
