"""P9: sync delay and client delay grow less than fourfold from 50 to 750 devices; on P8's campaign."""

from comesh.experiments import stage
from comesh.experiments.measures.firings import with_lost
from comesh.experiments.p08_churn import CAMPAIGN, MEASURES

PAPER_LARGEST = 750
MAX_GROWTH = 4.0


def tables(table: stage.Table) -> dict[str, stage.Table]:
    names = {**MEASURES, "ideal_hops": "ideal client delay"}
    grown = stage.growths(with_lost(table), ("preset", "churn"), "devices", names)
    medians = stage.Table(
        {"preset": preset, "churn": churn, "devices": devices}
        | {name: rows.median(column) for column, name in MEASURES.items()}
        for (preset, churn, devices), rows in with_lost(table).groups("preset", "churn", "devices")
    )
    return {"How many times as long, by means": grown, "Medians in hops": medians}


def bars(table: stage.Table) -> list[stage.Bar]:
    sizes = table.distinct("devices")
    unjudged = (
        "" if max(sizes) >= PAPER_LARGEST else f"the paper goes to {PAPER_LARGEST} devices, as --full does"
    )
    found = []
    for (preset, churn), rows in with_lost(table).groups("preset", "churn"):
        for column, name in MEASURES.items():
            largest, smallest = (stage.pooled(rows.where(devices=end(sizes)), column) for end in (max, min))
            told = f"{name}, N = {max(sizes)} / {min(sizes)}, churn {churn:.0%}, {preset}"
            found.append(stage.Bar(told, largest / smallest, MAX_GROWTH, "<", unjudged))
    return found


def draw(table: stage.Table) -> stage.Figure:
    named = with_lost(table).adding(line=lambda row: f"preset {row['preset']}, churn {row['churn']:.0%}")
    y = {column: f"{name} (hops)" for column, name in MEASURES.items()}
    return stage.facets(named, x={"devices": "devices"}, y=y, line="line", width=5.2)


EXPERIMENT = stage.Experiment(
    id="P9",
    title="Growth of sync and client delay",
    campaign=CAMPAIGN,
    paper="From 50 to 750 devices (15 times as many) sync delay and client delay grow less than fourfold. "
    "Said of the figure with 40 % churn; here without churn as well.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
