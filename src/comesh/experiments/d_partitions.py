"""D: what is left of a mesh while its air is bad, or while it is cut in two.

Not in the paper. Grids of 250 devices, 100 of them nodes, f = 2; what is measured: measures/disturbances.py.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.disturbances import disturbed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import presets_of
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
LOSSES = (0, 1, 2, 5, 10)
"""Percent of the messages, on each hop."""
CUTS_S = (10, 30, 60)


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    devices = DEVICES if full else 100
    for preset in PRESETS:
        for seed in range(1, 11 if full else 2):
            for loss in LOSSES if full or preset is Preset.DEFAULT else LOSSES[::3]:
                yield {"preset": preset, "devices": devices, "loss": loss, "cut_s": 0, "seed": seed}
            for cut_s in _cuts(preset, full=full):
                yield {"preset": preset, "devices": devices, "loss": 0, "cut_s": cut_s, "seed": seed}


def _cuts(preset: Preset, *, full: bool) -> tuple[int, ...]:
    """Of the paper's preset, whose epoch is 2 s here, the shortest: it is longer than any lease already."""
    if preset is Preset.PAPER:
        return CUTS_S[:1]
    return CUTS_S if full else CUTS_S[1:2]


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    return disturbed(
        topology,
        running(case["preset"], seed=case["seed"]),
        seed=case["seed"],
        loss_per_hop=case["loss"] / 100,
        cut_s=float(case["cut_s"]),
    )


def share(rows: Table, how: str) -> float:
    """Of the firings, those that went so."""
    return sum(rows.numbers(how)) / max(1.0, sum(rows.numbers("firings")))


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        rows = table.where(preset=preset)
        for loss in rows.distinct("loss"):
            found.append(_line(rows.where(loss=loss, cut_s=0), f"{loss} % loss per hop, {preset}"))
        for cut_s in (cut_s for cut_s in rows.distinct("cut_s") if cut_s):
            cut, healed = (rows.where(cut_s=cut_s, when=when) for when in ("cut", "healed"))
            found.append(_line(cut, f"cut in two for {cut_s} s, {preset}"))
            found.append(_line(healed, f"after a cut of {cut_s} s, {preset}"))
    return found


def _line(rows: Table, what: str) -> Comparison:
    told = [
        f"majority {100 * rows.mean('majority'):.1f} %, served {100 * rows.mean('served'):.1f} % of the time",
        f"{100 * share(rows, 'finished'):.1f} % of {int(sum(rows.numbers('firings')))} firings ended well, "
        f"{100 * share(rows, 'failed'):.1f} % failed",
    ]
    if rows.numbers("delay"):
        median, most = rows.mean("delay"), rows.mean("delay_p90")
        told.append(f"client delay {median:.0f} hops, 90 % within {most:.0f}")
    again = int(sum(rows.numbers("again")))
    if again:
        told.append(f"{again} fired again")
    return Comparison(what=what, ours="; ".join(told), verdict=Verdict.OURS)


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 3, width=4.0)
    uncut = table.where(cut_s=0)
    shares = [
        {**row, "ended": 100 * row["finished"] / max(1, row["firings"]), "time": 100 * row["served"]}
        for row in uncut
    ]
    lines(axes[0], Table(shares).curves("preset", "loss", "ended"))
    finish(axes[0], x="loss per hop, %", y="firings that ended well, %")
    lines(axes[1], Table(shares).curves("preset", "loss", "time"))
    finish(axes[1], x="loss per hop, %", y="time that groups were served, %")
    lines(axes[2], uncut.curves("preset", "loss", "delay"))
    finish(axes[2], x="loss per hop, %", y="client delay with polling, hops")
    return figure


CAMPAIGN = Campaign("partitions", cases, run)
EXPERIMENT = Experiment(
    id="D",
    title="Loss and partitions",
    campaign=CAMPAIGN,
    paper="What is left of a mesh whose messages are lost, or that is cut in two for a while?",
    compare=compare,
    draw=draw,
    about=(
        "Shares of time are over all groups. A leader that lost its majority and has nothing to commit "
        "still counts as serving. Of a mesh in two, one side has the majority of each group, which has an "
        "odd number of members. While the mesh is cut, routines over both sides wait, and a clause that "
        "is true for five seconds where nobody serves the device is not heard of. Commands that are lost "
        "on their way to a device are not sent again: their outcome is unknown, and their run fails. The "
        "quick scale has 100 devices, and fewer cases of the preset `paper`."
    ),
)
