"""P16, a table of section 6: how long quorum, election and state transfer take in the 11-node deployment.

Elections happen because leaders are killed (kill -9) at the end of each trial: the workload kills nobody. How
long it takes until somebody notices is the lease, a setting, and not part of it.

The bars are a tenth of what the authors published of their own program on one machine: 11 nodes as processes
on two cores, its loop of a second cut to a millisecond. This repository cannot repeat that. Many real trials
run at once; in full some are quiet, two at a time on the grid with 10 routines, and these are held to the
bars. Journals are files in memory, where flushing costs next to nothing.
"""

from comesh.experiments import stage
from comesh.experiments.trials import CAMPAIGN, REAL, SIMULATED, held_to_authors

PAPER_S = {
    "quorum": (1.08, 1.40, 1.50),
    "election": (1.17, 1.49, 1.92),
    "state transfer": (2.08, 2.85, 3.14),
}
AUTHORS_MS = {"quorum": 32.0, "election": 453.0, "state transfer": 488.0}
"""Medians of the authors' own program as 11 processes on one machine of two cores, its loop cut to 1 ms."""
TIMES = 10.0
STATISTICS = ("median", "mean", "P90")


def statistics(table: stage.Table, operation: str) -> tuple[float, float, float] | None:
    """In milliseconds: the median over trials of their medians and P90s, the mean over all operations. None:
    there were none."""
    rows = table.where(measure=operation)
    return (
        (rows.median("value"), stage.pooled(rows, "mean", "count"), rows.median("p90")) if len(rows) else None
    )


def tables(table: stage.Table) -> dict[str, stage.Table]:
    found: list[stage.Row] = []
    for (where, preset), rows in table.where(mode="mesh").groups("where", "preset"):
        quorum = statistics(rows, "quorum")
        for operation, paper_s in PAPER_S.items():
            numbers = statistics(rows, operation)
            if numbers is None:
                continue
            line: stage.Row = {"operation": operation, "where": where, "preset": preset}
            line |= {f"{name}, ms": one for name, one in zip(STATISTICS, numbers, strict=True)}
            line |= {f"{name}, s (paper)": one for name, one in zip(STATISTICS, paper_s, strict=True)}
            line["in quorums"] = numbers[0] / quorum[0] if quorum else None
            line["in quorums (paper)"] = paper_s[0] / PAPER_S["quorum"][0]
            found.append(line)
    return {"Median and P90: medians over trials of theirs; mean: over all operations": stage.Table(found)}


def bars(table: stage.Table) -> list[stage.Bar]:
    held = held_to_authors(table)
    return [
        stage.Bar(f"{operation}, median in ms, {held}, {preset}", numbers[0], authors_ms / TIMES)
        for (preset,), rows in table.where(mode="mesh", where=held).groups("preset")
        for operation, authors_ms in AUTHORS_MS.items()
        if (numbers := statistics(rows, operation)) is not None
    ]


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, 2)
    for at, where in enumerate((REAL, SIMULATED)):
        here = table.where(where=where, mode="mesh", preset="default")
        found = {operation: statistics(here, operation) for operation in PAPER_S}
        heights = {
            name: {operation: numbers[number] for operation, numbers in found.items() if numbers is not None}
            for number, name in enumerate(STATISTICS)
        }
        stage.draw_bars(axes[at], heights)
        stage.finish(
            axes[at], x="", y="ms" if at == 0 else "", title=f"{where} (paper: seconds)", legend=at == 0
        )
    return figure


EXPERIMENT = stage.Experiment(
    id="P16",
    title="Quorum, election and state transfer",
    campaign=CAMPAIGN,
    paper="Section 6, table of k-group latencies, median, mean and P90 in seconds: quorum 1.08, 1.40, 1.50; "
    "election 1.17, 1.49, 1.92; state transfer 2.08, 2.85, 3.14.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
