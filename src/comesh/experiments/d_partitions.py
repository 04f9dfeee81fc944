"""D: what is left of a mesh while its air is bad, or while it is cut in two.

Not in the paper. Grids of 250 devices, 100 of them nodes, f = 2; what is measured: measures/disturbances.py.
"""

from functools import partial

from comesh.core.devices.calls import NO_ANSWER
from comesh.experiments import stage
from comesh.experiments.measures.disturbances import disturbed
from comesh.experiments.measures.presets import PRESETS, Preset, running
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
LOSSES = (0, 1, 2, 5, 10)
"""Percent of the messages, on each hop."""
CUTS_S = (10, 30, 60)
WORK: stage.Parameters = {"routines": 10, "every_s": 20, "after_s": 40}
"""So few firings that runs hardly ever want the same device."""


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    for preset in PRESETS:
        for seed in range(1, 6 if full else 2):
            mesh: stage.Parameters = {
                "preset": preset,
                "devices": DEVICES if full else 100,
                "seed": seed,
                **WORK,
            }
            for loss in LOSSES if full or preset is Preset.DEFAULT else LOSSES[::3]:
                yield {**mesh, "loss": loss, "cut_s": 0}
            for cut_s in _cuts(preset, full=full):
                yield {**mesh, "loss": 0, "cut_s": cut_s}


def _cuts(preset: Preset, *, full: bool) -> tuple[int, ...]:
    """Of the paper's preset, whose epoch is 2 s here, the shortest: it is longer than any lease already."""
    if preset is Preset.PAPER:
        return CUTS_S[:1]
    return CUTS_S if full else CUTS_S[1:2]


def run(case: stage.Parameters) -> list[stage.Row]:
    return disturbed(
        make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"]),
        running(case["preset"], seed=case["seed"]),
        seed=case["seed"],
        routines=case["routines"],
        every_s=case["every_s"],
        after_s=case["after_s"],
        loss_per_hop=case["loss"] / 100,
        cut_s=case["cut_s"],
    )


def about_s(case: stage.Parameters) -> float:
    """Measured with 250 devices: what is lost is sent again, and the short epochs of `paper` cost more."""
    calm_s, lossy_s = (10.0, 3.5) if case["preset"] == Preset.PAPER else (2.0, 0.8)
    whole_s: float = (calm_s + lossy_s * case["loss"]) * (60 + case["cut_s"]) / 60
    return whole_s * float(case["devices"]) / DEVICES


def firings_of(rows: stage.Table) -> stage.Table:
    """The rows that are of a firing, and not of a span of time."""
    return stage.Table(row for row in rows if row.get("routine") is not None)


def delay(rows: stage.Table, percent: float) -> tuple[float, bool]:
    """That percentile of the client delay in hops, and whether that is the delay, or it is longer.

    A firing whose first command never left counts for as long as it waited. So with one of these among the
    smaller values nobody knows by how much the percentile is more.
    """
    firings = firings_of(rows)
    hops = stage.percentile([at_least(row) for row in firings], percent)
    return hops, all(waited > hops for waited in firings.numbers("waited_hops"))


def at_least(firing: stage.Row) -> float:
    """Its client delay in hops, or what it waited for in vain."""
    hops: float = firing["waited_hops"] if firing["delay_hops"] is None else firing["delay_hops"]
    return hops


def kinds(table: stage.Table) -> list[tuple[str, str, stage.Table]]:
    """By preset and disturbance: its rows."""
    found = []
    for (preset, loss, cut_s), rows in table.groups("preset", "loss", "cut_s"):
        if not cut_s:
            found.append((preset, f"{loss} % loss per hop", rows))
            continue
        found.append((preset, f"cut in two for {cut_s} s", rows.where(when="cut")))
        found.append((preset, f"after a cut of {cut_s} s", rows.where(when="healed")))
    return found


def tables(table: stage.Table) -> dict[str, stage.Table]:
    found: list[stage.Row] = []
    for preset, what, rows in kinds(table):
        firings = firings_of(rows)
        failed = firings.where(outcome="failed")
        line: stage.Row = {"preset": preset, "disturbance": what, "groups served": rows.mean("served")}
        line |= {
            "firings": len(firings),
            "ended well": len(firings.where(outcome="finished")),
            "failed": len(failed),
            "of which no answer": sum(row["reason"].endswith(NO_ANSWER) for row in failed),
            "no end": len(firings.where(outcome="open")),
            "not heard of": len(firings.where(outcome="open", heard=False)),
            "fired again": sum(max(0, row["runs"] - 1) for row in firings),
        }
        if len(firings):
            line |= {"median delay, hops": _hops(rows, 50), "p90": _hops(rows, 90)}
        found.append(line)
    return {"Delays with polling": stage.Table(found)}


def _hops(rows: stage.Table, percent: float) -> str:
    hops, exact = delay(rows, percent)
    return f"{hops:.0f}" if exact else f"> {hops:.0f}"


def bars(table: stage.Table) -> list[stage.Bar]:
    """Where nothing disturbs, or nothing any more, all firings end well."""
    return [
        stage.Bar(f"firings that do not end well, {what}, {preset}", len(firings) - ended, 0)
        for preset, what, rows in kinds(table)
        if what.startswith(("0 %", "after")) and len(firings := firings_of(rows))
        for ended in (len(firings.where(outcome="finished")),)
    ]


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, 4, width=4.0)
    firings = firings_of(table).adding(
        ended=lambda row: 100 * (row["outcome"] == "finished"),
        at_least=at_least,
        line=lambda row: f"preset {row['preset']}, {'while cut' if row['when'] == 'cut' else 'healed'}",
    )
    uncut = firings.where(cut_s=0)
    served = stage.Table(row for row in table.where(cut_s=0) if row.get("served") is not None)
    share = served.adding(time=lambda row: 100 * row["served"])
    stage.draw_means(axes[0], uncut, "preset", "loss", "ended")
    stage.finish(axes[0], x="loss per hop, %", y="firings that ended well, %")
    stage.draw_means(axes[1], share, "preset", "loss", "time")
    stage.finish(axes[1], x="loss per hop, %", y="time that groups were served, %")
    for first, percent in ((0, 50), (2, 90)):
        of_percent = partial(stage.percentile, percent=percent)
        curves = {
            f"{stage.named('preset', preset)}, p{percent}": rows.summary("loss", "at_least", of_percent)
            for (preset,), rows in uncut.groups("preset")
        }
        stage.draw_lines(axes[2], curves, first=first)
    stage.finish(axes[2], x="loss per hop, %", y="client delay with polling, hops (at least)")
    parted = stage.Table(row for row in firings if row["cut_s"])
    stage.draw_means(axes[3], parted, "line", "cut_s", "ended")
    stage.finish(axes[3], x="cut in two for, s", y="firings that ended well, %", legend=len(parted) > 0)
    return figure


CAMPAIGN = stage.Campaign("partitions", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="D",
    title="Loss and partitions",
    campaign=CAMPAIGN,
    paper="What is left of a mesh whose messages are lost, or that is cut in two for a while?",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
