"""D: what is left of a mesh while its air is bad, or while it is cut in two.

Not in the paper. Grids of 250 devices, 100 of them nodes, f = 2; what is measured: measures/disturbances.py.
"""

from collections.abc import Iterator
from functools import partial

from matplotlib.figure import Figure

from comesh.core.devices.calls import NO_ANSWER
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.disturbances import disturbed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import presets_of
from comesh.experiments.plots import finish, lines, new_figure, of_presets
from comesh.experiments.table import Row, Table, percentile
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
LOSSES = (0, 1, 2, 5, 10)
"""Percent of the messages, on each hop."""
CUTS_S = (10, 30, 60)
BAR = "all firings end well"
WORK: Parameters = {"routines": 10, "every_s": 20, "after_s": 40}
"""So few firings that runs hardly ever want the same device."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for seed in range(1, 6 if full else 2):
            mesh: Parameters = {"preset": preset, "devices": DEVICES if full else 100, "seed": seed, **WORK}
            for loss in LOSSES if full or preset is Preset.DEFAULT else LOSSES[::3]:
                yield {**mesh, "loss": loss, "cut_s": 0}
            for cut_s in _cuts(preset, full=full):
                yield {**mesh, "loss": 0, "cut_s": cut_s}


def _cuts(preset: Preset, *, full: bool) -> tuple[int, ...]:
    """Of the paper's preset, whose epoch is 2 s here, the shortest: it is longer than any lease already."""
    if preset is Preset.PAPER:
        return CUTS_S[:1]
    return CUTS_S if full else CUTS_S[1:2]


def run(case: Parameters) -> list[Row]:
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


def about_s(case: Parameters) -> float:
    """Measured with 250 devices: what is lost is sent again, and the short epochs of `paper` cost more."""
    calm_s, lossy_s = (10.0, 3.5) if case["preset"] == Preset.PAPER else (2.0, 0.8)
    whole_s: float = (calm_s + lossy_s * case["loss"]) * (60 + case["cut_s"]) / 60
    return whole_s * float(case["devices"]) / DEVICES


def firings_of(rows: Table) -> Table:
    """The rows that are of a firing, and not of a span of time."""
    return Table(row for row in rows if row.get("routine") is not None)


def delay(rows: Table, percent: float) -> tuple[float, bool]:
    """That percentile of the client delay in hops, and whether that is the delay, or it is longer.

    A firing whose first command never left counts for as long as it waited. So with one of these among the
    smaller values nobody knows by how much the percentile is more.
    """
    firings = firings_of(rows)
    hops = percentile([at_least(row) for row in firings], percent)
    return hops, all(waited > hops for waited in firings.numbers("waited_hops"))


def at_least(firing: Row) -> float:
    """Its client delay in hops, or what it waited for in vain."""
    hops: float = firing["waited_hops"] if firing["delay_hops"] is None else firing["delay_hops"]
    return hops


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        rows = table.where(preset=preset)
        for loss in rows.distinct("loss"):
            calm = loss == 0
            found.append(_line(rows.where(loss=loss, cut_s=0), f"{loss} % loss per hop, {preset}", held=calm))
        for cut_s in (cut_s for cut_s in rows.distinct("cut_s") if cut_s):
            cut, healed = (rows.where(cut_s=cut_s, when=when) for when in ("cut", "healed"))
            found.append(_line(cut, f"cut in two for {cut_s} s, {preset}"))
            found.append(_line(healed, f"after a cut of {cut_s} s, {preset}", held=True))
    return found


def _line(rows: Table, what: str, *, held: bool = False) -> Comparison:
    """held: to the bar, since nothing disturbs it, or nothing any more."""
    firings = firings_of(rows)
    held = held and len(firings) > 0
    told = [f"groups served {100 * rows.mean('served'):.1f} % of the time"]
    if len(firings):
        told += [_ends(firings), f"client delay with polling {_hops(rows, 50)} hops, p90 {_hops(rows, 90)}"]
    again = sum(max(0, row["runs"] - 1) for row in firings)
    if again:
        told.append(f"{again} fired again")
    return Comparison(
        what=what,
        ours="; ".join(told),
        verdict=Verdict.OURS,
        bar=BAR if held else "",
        met=all(row["outcome"] == "finished" for row in firings) if held else None,
    )


def _ends(firings: Table) -> str:
    finished, failed, unended = (firings.where(outcome=one) for one in ("finished", "failed", "open"))
    told = f"of {len(firings)} firings {len(finished)} ended well"
    if len(failed):
        silent = sum(row["reason"].endswith(NO_ANSWER) for row in failed)
        told += f", {len(failed)} failed, of which {silent} for a device that did not answer"
    if len(unended):
        told += f", {len(unended)} had no end, of which {len(unended.where(heard=False))} were not heard of"
    return told


def _hops(rows: Table, percent: float) -> str:
    hops, exact = delay(rows, percent)
    return f"{hops:.0f}" if exact else f"> {hops:.0f}"


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 4, width=4.0)
    uncut = table.where(cut_s=0)
    firings = Table(
        {
            **row,
            "ended": 100 * (row["outcome"] == "finished"),
            "at_least": at_least(row),
            "line": f"preset {row['preset']}, {'while cut' if row['when'] == 'cut' else 'healed'}",
        }
        for row in firings_of(table)
    )
    shown = firings.where(cut_s=0)
    served = Table({**row, "time": 100 * row["served"]} for row in uncut if row.get("served") is not None)
    lines(axes[0], of_presets(shown.curves("preset", "loss", "ended")))
    finish(axes[0], x="loss per hop, %", y="firings that ended well, %")
    lines(axes[1], of_presets(served.curves("preset", "loss", "time")))
    finish(axes[1], x="loss per hop, %", y="time that groups were served, %")
    for first, percent in ((0, 50), (2, 90)):
        of_percent = partial(percentile, percent=percent)
        curves = of_presets(shown.curves("preset", "loss", "at_least", of_percent))
        lines(axes[2], {f"{name}, p{percent}": points for name, points in curves.items()}, first=first)
    finish(axes[2], x="loss per hop, %", y="client delay with polling, hops (at least)")
    parted = Table(row for row in firings if row["cut_s"])
    lines(axes[3], parted.curves("line", "cut_s", "ended"))
    finish(axes[3], x="cut in two for, s", y="firings that ended well, %", legend=len(parted) > 0)
    return figure


CAMPAIGN = Campaign("partitions", cases, run, about_s)
EXPERIMENT = Experiment(
    id="D",
    title="Loss and partitions",
    campaign=CAMPAIGN,
    paper="What is left of a mesh whose messages are lost, or that is cut in two for a while?",
    compare=compare,
    draw=draw,
    about=(
        "Served: the share of the time, over all groups, in which a group has a leader that reaches a "
        "majority of its members, itself among them. Of a mesh in two, one side has the majority of each "
        "group, which has an odd number of members; it is not served until that side has elected a leader. "
        "While the mesh is cut, routines over both sides wait, and a clause that is true for five seconds "
        "where nobody serves the device is not heard of. Delays are of all firings: one whose first command "
        "never left counts for as long as it waited until the end, and `> X` is a percentile that is not "
        "known any better. Loss is on each hop, also on the way to devices and back. Nodes send again what "
        "is lost between them; a simulated device call is not sent again by its driver. So a command that is "
        "lost, or whose answer is, has an unknown outcome, and its run fails, for a device that did not "
        "answer. Of the preset `paper`, whose epoch is 2 s here, the shortest cut is run: it outlasts its "
        "leases and epochs already. The quick scale has 100 devices, and fewer cases of that preset."
    ),
)
