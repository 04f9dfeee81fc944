"""P14, a figure of section 6: bandwidth per node of the 11-node deployment, against one hub for everything.

End to end: what a node says to devices and hears from them, and what it sends to other nodes; membership
apart, which a mesh with a hub has as well. Hop by hop: what the station of a node transmits, its own and what
it relays.
"""

from statistics import median

from matplotlib.axes import Axes

from comesh.experiments import stage
from comesh.experiments.trials import CAMPAIGN, EPOCH_S, EPOCHS, QUIET, REAL, SIMULATED

MEAN_LIMIT, BUSIEST_LIMIT = 5.0, 3.0
WORK, HOPS = "bandwidth: work", "bandwidth: hop by hop"
PARTS = ("devices", "groups", "membership", "monitoring", "upkeep", "foreground", "encrypted", "hop by hop")
KIND = ("where", "preset", "shape")


def hub(table: stage.Table, where: str, shape: str, measure: str, column: str) -> float | None:
    """Its rate is the same at all times and for any number of routines: the mean over all trials."""
    rows = table.where(mode="central", where=where, shape=shape, measure=measure)
    return rows.mean(column) if len(rows) else None


def ratios(table: stage.Table) -> stage.Table:
    """How many times as much a hub has as the mesh, by kind of trials and number of routines."""
    pairs = {
        "hub / mean node": (WORK, "most", "value"),
        "hub / busiest node": (WORK, "most", "most"),
        "hop by hop: busiest with a hub / mean": (HOPS, "most", "value"),
        "hop by hop: busiest with a hub / busiest": (HOPS, "most", "most"),
        "hop by hop: mean with a hub / mean": (HOPS, "value", "value"),
    }
    found = []
    mesh = stage.Table(row for row in table.where(mode="mesh") if row["where"] != QUIET)
    for key, rows in mesh.groups(*KIND, "routines", "seconds", "epoch_s"):
        line: stage.Row = dict(zip((*KIND, "routines", "seconds", "epoch_s"), key, strict=True))
        for name, (measure, of_hub, of_mesh) in pairs.items():
            hubs = hub(table, line["where"], line["shape"], measure, of_hub)
            here = rows.where(measure=measure)
            line[name] = hubs / here.mean(of_mesh) if hubs is not None and len(here) else None
        found.append(line)
    return stage.Table(found)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    rates = stage.Table(
        dict(zip(("mode", *KIND, "routines"), key, strict=True))
        | {
            part: here.mean("value")
            for part in PARTS
            if len(here := rows.where(measure=f"bandwidth: {part}"))
        }
        for key, rows in table.groups("mode", *KIND, "routines")
    )
    trials = stage.Table(
        {"where": where, "preset": preset, "network": network, "trials": len(loads)}
        | {"load of the machine, median": median(loads.numbers("value")) if len(loads) else None}
        for (where, preset, network), rows in table.where(mode="mesh").groups("where", "preset", "network")
        for loads in (rows.where(measure="machine load"),)
    )
    return {"Against a hub": ratios(table), "Bytes per second of the mean node": rates, "Trials": trials}


def bars(table: stage.Table) -> list[stage.Bar]:
    """The least over the numbers of routines, of real trials whose epochs are long enough; the busiest node
    over as many epochs as its bar is set for."""
    found = []
    for (preset, shape), rows in ratios(table).where(where=REAL).groups("preset", "shape"):
        epoch_s = min(rows.distinct("epoch_s"))
        short = "" if epoch_s >= EPOCH_S else f"epochs of {epoch_s} s, and the bar is set for {EPOCH_S} s"
        name, busiest = (f"{what}, {shape}, {preset}" for what in ("hub / mean node", "hub / busiest node"))
        found.append(stage.Bar(name, min(rows.numbers("hub / mean node")), MEAN_LIMIT, ">=", short))
        long = stage.Table(row for row in rows if row["seconds"] >= EPOCHS * row["epoch_s"])
        least = min((long if len(long) else rows).numbers("hub / busiest node"))
        brief = "" if len(long) else f"trials of fewer than {EPOCHS} epochs"
        found.append(stage.Bar(busiest, least, BUSIEST_LIMIT, ">=", brief))
    return found


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, 3, width=4.6)
    for at, (title, measure) in enumerate((("end to end", WORK), ("hop by hop", HOPS))):
        real = table.where(where=REAL, measure=measure)
        mesh = real.where(mode="mesh").groups("shape", "preset")
        nodes = {
            f"{shape}, preset {preset}, mean node": rows.summary("routines", "value")
            for (shape, preset), rows in mesh
        }
        hubs = {
            f"{shape}, busiest with a hub": rows.summary("routines", "most")
            for (shape,), rows in real.where(mode="central").groups("shape")
        }
        stage.draw_lines(axes[at], nodes)
        stage.draw_lines(axes[at], hubs, first=4)
        axes[at].set_xticks(sorted(real.distinct("routines")))
        stage.finish(axes[at], x="routines", y="bytes/s" if at == 0 else "", title=f"real, {title}")
    _parts(axes[2], table.where(where=SIMULATED, mode="mesh", preset="default"))
    return figure


def _parts(axes: Axes, simulated: stage.Table) -> None:
    """What a mean node says, over both shapes, from bottom to top."""
    routines = sorted(simulated.distinct("routines"))
    below = [0.0] * len(routines)
    for number, part in enumerate(("monitoring", "upkeep", "membership", "foreground")):
        rates = simulated.where(measure=f"bandwidth: {part}").summary("routines", "value")
        heights = [rates[one] for one in routines]
        axes.bar(
            [str(one) for one in routines], heights, bottom=below, label=part, color=stage.COLOURS[number]
        )
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylim(top=1.35 * max(below))
    stage.finish(axes, x="routines", title="simulated, preset default, mean node: what for", legend=False)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")


EXPERIMENT = stage.Experiment(
    id="P14",
    title="Bandwidth against a hub",
    campaign=CAMPAIGN,
    paper="Section 6, figure of bandwidth: more than ten times less bandwidth per node than with a hub, end "
    "to end and hop by hop; flat as routines are added; foreground operations small against monitoring.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
