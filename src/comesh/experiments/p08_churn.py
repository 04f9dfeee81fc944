"""P8: 40 % of the nodes churn, each crashes or joins once; client delay and sync delay, on the grid, SLA.

Each routine is fired twice, back to back; `measures/firings.py` says how, and what churn does. The same
routines on the same devices without churn are what it is compared with. P9 looks at the same campaign.

Sync delay: the last device of a run is free, committed by its group, until the first command of the next run
of the same routine, which waited. Unlike in P15 the way of the release to that group is not in it.
"""

from comesh.core.strategies import Strategy
from comesh.experiments import stage
from comesh.experiments.measures.firings import MAX_CHURN, measure, timed, with_lost
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.sim.topology import Shape, make_topology

SIZES = (50, 250, 750)
QUICK_SIZES = (50, 250)
CHURNS = (0.0, MAX_CHURN)
MAX_INCREASE = 1.25
MEASURES = {"client_hops": "client delay", "sync_hops": "sync delay"}
ROUTINES, QUICK_ROUTINES = 10, 5
SECONDS_AT_MOST = {Preset.PAPER: 150.0, Preset.DEFAULT: 20.0}
"""Of a case with the most devices; of others about by the square of theirs."""


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    return stage.combinations(
        preset=PRESETS,
        devices=SIZES if full else QUICK_SIZES,
        churn=CHURNS,
        routines=[ROUTINES if full else QUICK_ROUTINES],
        seed=stage.seeds(scale, 2, 10),
    )


def run(case: stage.Parameters) -> list[stage.Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    made = timed(case["preset"], case["seed"])
    found = measure(
        topology,
        made,
        strategy=Strategy.SEQUENTIAL,
        routines=case["routines"],
        seed=case["seed"],
        churn=case["churn"],
        twice=True,
        spare=True,
    )
    return found.rows()


def tables(table: stage.Table) -> dict[str, stage.Table]:
    names = {**MEASURES, "polling_hops": "polling", "lost": "lost"}
    counted = stage.means(with_lost(table), ("preset", "devices", "churn"), names)
    return {
        "Means in hops; lost: the share of the firings": counted,
        "With churn against without": _against(table),
    }


def _against(table: stage.Table) -> stage.Table:
    """Lost firings count as long as they had."""
    calm, churned = CHURNS
    by, rows = ("preset", "devices"), with_lost(table)
    return stage.ratios(rows, by, MEASURES, across="churn", one=churned, other=calm)


def bars(table: stage.Table) -> list[stage.Bar]:
    few = stage.few_seeds(table)
    return [
        stage.Bar(
            f"client delay with 40 % churn / without, N = {row['devices']}, {row['preset']}",
            row["client delay"].value,
            MAX_INCREASE,
            unjudged=few,
        )
        for row in _against(table)
    ]


def draw(table: stage.Table) -> stage.Figure:
    named = with_lost(table).adding(line=lambda row: f"churn {row['churn']:.0%}")
    y = {column: f"{name} (hops)" for column, name in MEASURES.items()}
    return stage.facets(named, x={"devices": "devices"}, y=y, line="line", row="preset", width=5.2)


def about_s(case: stage.Parameters) -> float:
    return float(SECONDS_AT_MOST[Preset(case["preset"])] * (case["devices"] / max(SIZES)) ** 2)


CAMPAIGN = stage.Campaign("two-firings", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="P8",
    title="Churn",
    campaign=CAMPAIGN,
    paper="With 40 % of the nodes churning the client delay is at most 25 % higher.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
