"""F: how far we are from the ideal client delay, by strategy and topology; on P7's campaign.

The ideal is the critical path of commits and messages at shortest-path distances (`measures/delays.py`). It
asks for locks by group; the preset `paper` asks for them one by one, which is part of what is measured.
"""

from comesh.experiments import stage
from comesh.experiments.p07_client_delay import CAMPAIGN, by_strategy

LIMITS = {"OLA": 1.5, "priority": 1.5, "SLA": 2.5}
"""Set for our defaults at the paper's sizes (N = 250, f = 2); both presets are held to them at every size."""
SLOW_RUN = 3.0


def times(rows: stage.Table) -> float:
    """By means: a run whose ideal is a few hops counts as much as its hops."""
    return stage.pooled(rows, "client_hops") / stage.pooled(rows, "ideal_hops")


def _slow(row: stage.Row) -> bool:
    return row["ideal_hops"] is None or row["client_hops"] > SLOW_RUN * row["ideal_hops"]


def tables(table: stage.Table) -> dict[str, stage.Table]:
    by = ("preset", "strategy", "topology", "devices")
    return {
        "Client delay against the ideal, by means": stage.Table(
            {
                **dict(zip(by, key, strict=True)),
                "times": times(rows),
                "runs": len(rows),
                "slower than 3x": sum(map(_slow, rows)),
            }
            for key, rows in by_strategy(table).groups(*by)
        )
    }


def bars(table: stage.Table) -> list[stage.Bar]:
    groups = by_strategy(table).groups("preset", "strategy", "topology", "devices")
    return [
        stage.Bar(
            f"client delay / ideal, {strategy}, {topology}, N = {devices}, {preset}",
            times(rows),
            LIMITS[strategy],
            unjudged=stage.few_seeds(table.where(preset=preset)),
        )
        for (preset, strategy, topology, devices), rows in groups
    ]


def draw(table: stage.Table) -> stage.Figure:
    presets = by_strategy(table).groups("preset")
    figure, axes = stage.new_figure(1, len(presets))
    for at, ((preset,), rows) in enumerate(presets):
        curves = {
            strategy: {devices: times(here) for (devices,), here in some.groups("devices")}
            for (strategy,), some in rows.groups("strategy")
        }
        stage.draw_lines(axes[at], curves)
        stage.finish(axes[at], x="devices", y="client delay / ideal", title=stage.named("preset", preset))
    return figure


EXPERIMENT = stage.Experiment(
    id="F",
    title="Distance from the ideal",
    campaign=CAMPAIGN,
    paper="How many times the ideal client delay do our runs take?",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
