"""P16, a table of section 6: how long quorum, election and state transfer take in the 11-node deployment.

Elections happen because leaders are killed (kill -9) at the end of each trial: the workload kills nobody. How
long it takes until somebody notices is the lease, a setting, and not part of it.
"""

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged, within
from comesh.experiments.plots import COLOURS, finish, new_figure
from comesh.experiments.table import Table
from comesh.experiments.trials import (
    CAMPAIGN,
    REAL,
    SIMULATED,
    beside_it,
    held_to_authors,
    real_and_simulated,
)
from comesh.experiments.verdicts import AUTHORS_PROGRAM, IN_MEMORY, against_authors

PAPER_S = {
    "quorum": (1.08, 1.40, 1.50),
    "election": (1.17, 1.49, 1.92),
    "state transfer": (2.08, 2.85, 3.14),
}
"""Median, mean, P90."""
AUTHORS_MS = {"quorum": 32.0, "election": 453.0, "state transfer": 488.0}
"""Medians of the authors' own program as 11 processes on one machine of two cores, its loop cut to 1 ms."""
TIMES = 10.0
NEAR = 0.5
"""Ratios that are no further apart agree."""
LONGER_HERE = {
    True: "an election is two rounds, claim and first entry. With k = 3 two members are near and one is from "
    "anywhere: if a near one is killed, both rounds go to the far one, while a quorum and the rounds of a "
    "state transfer go to near ones.",
    False: "an election is two rounds, claim and first entry, a state transfer two commits and a start. What "
    "else takes time on one machine was not taken apart.",
}
"""Why elections and transfers take more quorums than the paper's, by whether it is simulated."""
SHORTER_HERE = (
    "fewer than the paper's. The questions before a claim are not in an election, nor in a transfer the "
    "state, which those who are invited were sent before."
)
PAPER_LOOP = "With a loop of a second in every step, the paper's all take one or two turns of it"


def statistics(table: Table, operation: str) -> tuple[float, float, float] | None:
    """Median, mean, P90 in milliseconds: the median over trials of their medians and P90s, the mean over all
    operations. None: there were none."""
    rows = table.where(measure=operation)
    if not len(rows):
        return None
    counts = rows.numbers("count")
    mean = sum(one * count for one, count in zip(rows.numbers("mean"), counts, strict=True)) / sum(counts)
    return rows.median("value"), mean, rows.median("p90")


def compare(table: Table) -> list[Comparison]:
    mesh = table.where(mode="mesh")
    found: list[Comparison] = []
    for where, preset in dict.fromkeys((row["where"], row["preset"]) for row in mesh):
        here = mesh.where(where=where, preset=preset)
        took = {operation: statistics(here, operation) for operation in PAPER_S}
        measured = {operation: numbers for operation, numbers in took.items() if numbers is not None}
        for operation, numbers in measured.items():
            is_judged = where == held_to_authors(mesh)
            beside = beside_it(mesh, where)
            found.append(_size(operation, f"{where}, {preset}", numbers, where, beside, is_judged=is_judged))
        if len(measured) == len(PAPER_S):
            medians = {name: one[0] for name, one in measured.items()}
            found.append(_order(f"{where}, {preset}", medians, is_simulated=where == SIMULATED))
    beyond_quorums = [one for one in PAPER_S if one != "quorum"]
    return [*found, *(one for operation in beyond_quorums for one in real_and_simulated(mesh, operation, 1))]


def _size(
    operation: str,
    name: str,
    numbers: tuple[float, float, float],
    where: str,
    beside: str,
    *,
    is_judged: bool,
) -> Comparison:
    met = numbers[0] <= AUTHORS_MS[operation] / TIMES if is_judged else None
    return Comparison(
        what=f"{operation}, {name}: median, mean, P90",
        ours=f"{', '.join(f'{one:.1f}' for one in numbers)} ms",
        paper=f"{', '.join(f'{one:.2f}' for one in PAPER_S[operation])} s; the median of its program on one "
        f"machine {AUTHORS_MS[operation]:.0f} ms",
        verdict=against_authors(numbers[0], AUTHORS_MS[operation]) if is_judged else Verdict.OURS,
        why="messages on one machine instead of radios, and no loop that looks once a second"
        f"{f'. But {beside}' if met is False else ''}"
        if where != SIMULATED
        else "round trips over hops of 10 ms, and no loop that looks once a second",
        bar=f"{TIMES:.0f} times below the authors' program on one machine, {AUTHORS_MS[operation]:.0f} ms"
        if is_judged
        else "",
        met=met,
    )


def _order(name: str, medians_ms: dict[str, float], *, is_simulated: bool) -> Comparison:
    """Which takes longest, and how much longer than a quorum."""
    quorum, paper_quorum = medians_ms["quorum"], PAPER_S["quorum"][0]
    ours = {one: medians_ms[one] / quorum for one in ("election", "state transfer")}
    paper = {one: PAPER_S[one][0] / paper_quorum for one in ours}
    apart = [one for one in ours if not within(ours[one], paper[one], NEAR)]
    longer = [one for one in apart if ours[one] > paper[one]]
    shorter = [one for one in apart if ours[one] < paper[one]]
    return Comparison(
        what=f"election and state transfer in quorums, {name}",
        ours=", ".join(f"{one:.1f}" for one in ours.values()),
        paper=", ".join(f"{one:.1f}" for one in paper.values()),
        verdict=judged(agrees=not apart),
        why=" ".join(
            [
                *([f"{' and '.join(longer)}: {LONGER_HERE[is_simulated]}"] if longer else ()),
                *([f"{' and '.join(shorter)}: {SHORTER_HERE}"] if shorter else ()),
                *([PAPER_LOOP] if apart else ()),
            ]
        ),
        in_short=" ".join(
            _in_short(those, what) for those, what in ((longer, "more"), (shorter, "fewer")) if those
        ),
    )


def _in_short(those: list[str], what: str) -> str:
    take = "takes" if len(those) == 1 else "take"
    told = f"{' and '.join(those)} {take} {what} quorums than in the paper"
    return f"{told[0].upper()}{told[1:]}, where a loop of a second is in every step."


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 2)
    for at, where in enumerate((REAL, SIMULATED)):
        here = table.where(where=where, mode="mesh", preset="default")
        for number, operation in enumerate(PAPER_S):
            numbers = statistics(here, operation)
            if numbers is not None:
                places = [number + 0.27 * (one - 1) for one in range(3)]
                labels = ("median", "mean", "P90") if number == 0 else ("", "", "")
                axes[at].bar(places, numbers, width=0.25, color=COLOURS[:3], label=labels)
        axes[at].set_xticks(range(len(PAPER_S)), list(PAPER_S))
        finish(axes[at], x="", y="ms" if at == 0 else "", title=f"{where} (paper: seconds)", legend=at == 0)
    return figure


EXPERIMENT = Experiment(
    id="P16",
    title="Quorum, election and state transfer",
    campaign=CAMPAIGN,
    paper="Section 6, table of k-group latencies, median, mean and P90 in seconds: quorum 1.08, 1.40, 1.50; "
    "election 1.17, 1.49, 1.92; state transfer 2.08, 2.85, 3.14.",
    compare=compare,
    draw=draw,
    about=(
        "Quorum: the leader writes an entry until it counts it as committed. Election: a candidate writes "
        "its claim until it serves; the round of questions before the claim is in no recording, and not in "
        "what is held to the authors' program (P11 tells which share of an election it is). Leaders are "
        "killed (kill -9) at the end of each trial, one after the other. State transfer: the leader of a "
        "config proposes its end until the leader of the next one serves. Many real trials run at once on "
        "one machine, and show its load too; in full there are quiet ones, two at a time on the grid with 10 "
        "routines, which are held to the authors' program. Median and P90 are the medians over trials of "
        "theirs, of some four elections each; the mean is over all operations. "
        f"{IN_MEMORY} "
        f"{AUTHORS_PROGRAM}"
    ),
)
