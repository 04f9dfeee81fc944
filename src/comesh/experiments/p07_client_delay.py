"""P7: client delay against the number of devices, by topology and by lock strategy, nobody else active.

SLA is our `sequential`, OLA our `optimistic`; `priority`, which asks as OLA does where nobody competes, is
measured at few sizes for F. Client delay: the leader of the trigger's device has read that the clause is true
-> the first command leaves. The wait until it is read is polling, and has a column of its own.
`measures/firings.py` says more.
"""

from comesh.core.strategies import Strategy
from comesh.experiments import stage
from comesh.experiments.measures.firings import mean_apart, measure, timed, with_lost
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.sim.topology import Shape, make_topology

SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
NAMES = {Strategy.SEQUENTIAL: "SLA", Strategy.OPTIMISTIC: "OLA", Strategy.PRIORITY: "priority"}
SIZES = (50, 250, 750)
QUICK_SIZES = (50, 150)
PRIORITY_SIZES = (50, 250)
ROUTINES, QUICK_ROUTINES = 5, 3
GROWING = {"client_hops": "client delay", "ideal_hops": "ideal"}
SECONDS_PER_DEVICE = {Preset.PAPER: 0.03, Preset.DEFAULT: 0.006}


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    for case in stage.combinations(
        preset=PRESETS,
        devices=SIZES if full else QUICK_SIZES,
        topology=SHAPES,
        strategy=map(str, Strategy),
        routines=[ROUTINES if full else QUICK_ROUTINES],
        seed=stage.seeds(scale, 1, 10),
    ):
        if case["strategy"] != str(Strategy.PRIORITY) or case["devices"] in PRIORITY_SIZES:
            yield case


def run(case: stage.Parameters) -> list[stage.Row]:
    topology = make_topology(Shape(case["topology"]), devices=case["devices"], seed=case["seed"])
    made = timed(case["preset"], case["seed"])
    strategy = Strategy[case["strategy"].upper()]
    found = measure(topology, made, strategy=strategy, routines=case["routines"], seed=case["seed"])
    apart = mean_apart(topology)
    return [{**row, "apart_hops": apart} for row in found.rows()]


def by_strategy(table: stage.Table) -> stage.Table:
    """The firings, the lost ones with as long as they had, and strategies as the paper calls them."""
    return with_lost(table).adding(strategy=lambda row: NAMES[Strategy[row["strategy"].upper()]])


def tables(table: stage.Table) -> dict[str, stage.Table]:
    rows, by = by_strategy(table), ("preset", "topology", "strategy")
    sla = rows.where(strategy="SLA")
    judged = stage.Table(row for row in rows if row["strategy"] != "priority")
    measured = {**GROWING, "polling_hops": "polling", "lost": "lost"}
    by_shape = ("preset", "topology", "devices")
    against = {
        f"grid against {other}, SLA": stage.ratios(
            sla, ("preset", "devices"), GROWING, across="topology", one=str(Shape.GRID), other=str(other)
        )
        for other in (Shape.RANDOM, Shape.CLUSTERED)
    }
    return {
        "Means in hops; lost: the share of the firings": stage.means(rows, (*by, "devices"), measured),
        "How many times as long in the largest mesh": stage.growths(judged, by, "devices", GROWING),
        "OLA against SLA": stage.ratios(rows, by_shape, GROWING, across="strategy", one="OLA", other="SLA"),
        **against,
    }


def draw(table: stage.Table) -> stage.Figure:
    x, y = {"devices": "devices"}, {"client_hops": "client delay (hops)"}
    return stage.facets(by_strategy(table), x=x, y=y, line="strategy", row="preset", column="topology")


def about_s(case: stage.Parameters) -> float:
    return float(SECONDS_PER_DEVICE[Preset(case["preset"])] * case["devices"])


CAMPAIGN = stage.Campaign("client-delay", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="P7",
    title="Client delay",
    campaign=CAMPAIGN,
    paper="Grows gradually with N, whatever the topology or the strategy; OLA is below SLA; the grid is "
    "above random and clustered, which are alike.",
    tables=tables,
    draw=draw,
    about=__doc__,
)
