"""P14, a figure of section 6: bandwidth per node of the 11-node deployment, against one hub for everything.

End to end: what a node says to devices and hears from them, and what it sends to other nodes; membership
apart, which who lives is known by with a hub as well, and told beside it. Hop by hop: what the station of a
node transmits, its own and what it relays for others.
"""

from collections.abc import Sequence
from statistics import fmean, median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged, within
from comesh.experiments.measures.deployed_workload import CLUSTER_SIZE
from comesh.experiments.plots import COLOURS, finish, lines, new_figure
from comesh.experiments.table import Row, Table
from comesh.experiments.trials import CAMPAIGN, EPOCH_S, EPOCHS, QUIET, REAL, SIMULATED
from comesh.lab.shapes import NODES, PLACES

PAPER_TIMES = 10.0
MEAN_BAR, BUSIEST_BAR = 5.0, 3.0
CLUSTERS = PLACES // CLUSTER_SIZE
FLAT = 1.25
"""A curve that grows by no more than this from the fewest routines to the most counts as flat."""
NEAR = 0.25
"""Real and simulated that are no further apart agree."""
WORK, HOPS, ENCRYPTED = "bandwidth: work", "bandwidth: hop by hop", "bandwidth: encrypted"
BACKGROUND = ("monitoring", "upkeep")
MEMBERSHIP = "membership"
"""Apart: a hub's mesh has it, too, if less of it."""
SMALL = 0.25
MORE_ON_THE_AIR = (
    "below 1 the mesh puts more on the air than a hub does: what members say to each other crosses hops, too"
)
RELAYED = "stations of a mesh relay, too, and what members say to each other comes on top of what devices do"
CEILING = (
    f"With {NODES} nodes, each of which asks devices, about {NODES} times is the most that is possible; what "
    "groups say comes on top."
)
OVER_HOPS = "Hop by hop a mean station transmits not ten times less than the busiest one does with a hub."
MORE_IN_SHORT = (
    "Hop by hop a mesh of so few puts more on the air than a hub does, where the paper has ten times less: "
    "what members say to each other counts once for each hop."
)
NOT_FLAT = "A mean node says more with more routines: what runs write in groups."
NOT_SMALL = "Foreground, the entries of runs, is not small beside monitoring."
SHORT_EPOCHS = (
    f". Its bar is not judged: it is of epochs of {EPOCH_S} s, and in these of {{}} s groups change hands "
    "more often, which costs messages"
)
HUB = "busiest with a hub"
NOT_ON_THE_AIR = ", since a node does not use the air for the device at its own place"


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for where, preset, shape in _kinds(table):
        mesh = table.where(where=where, preset=preset, shape=shape, mode="mesh")
        central = table.where(where=where, shape=shape, mode="central")
        name = f"{where}, {shape}, {preset}"
        found.append(_mean_node(name, where, mesh, central))
        found.append(_busiest_node(name, where, mesh, central))
        if where == SIMULATED:
            found.append(_foreground(name, mesh))
            continue
        found += _beside(name, mesh, central)
        if mesh.where(measure=HOPS).rows:
            found += _hop_by_hop(name, mesh, central)
        if len(mesh.distinct("routines")) > 1:
            found += [_flat(f"{name}: {of}", mesh, measure) for of, measure in _flat_measures(mesh)]
    return [*found, *_agreements(table), *_networks(table), *_loads(table)]


def _kinds(table: Table) -> list[tuple[str, str, str]]:
    mesh = Table(row for row in table.where(mode="mesh") if row["where"] != QUIET)
    return list(dict.fromkeys((row["where"], row["preset"], row["shape"]) for row in mesh))


def _hub(central: Table, measure: str = WORK) -> float:
    """Its rate is the same at all times and for any number of routines: the mean over all trials."""
    return central.where(measure=measure).mean("most")


def _ratios(mesh: Table, hub: float, column: str, measure: str = WORK) -> dict[int, float]:
    """By number of routines."""
    rates = mesh.where(measure=measure).summary(("routines",), column)
    return {routines: hub / rate for (routines,), rate in sorted(rates.items())}


def _single(mesh: Table, hub: float, column: str) -> str:
    """How far the trials are apart of which ratios are told."""
    ratios = [hub / rate for rate in mesh.where(measure=WORK).numbers(column)]
    return f"; single trials {min(ratios):.1f} to {max(ratios):.1f}" if len(ratios) > 1 else ""


def _by_routines(mesh: Table, measure: str) -> dict[int, float]:
    rates = mesh.where(measure=measure).summary(("routines",), "value")
    return {routines: rate for (routines,), rate in sorted(rates.items())}


def _told(by_routines: dict[int, float], digits: int = 1) -> str:
    numbers = ", ".join(f"{value:.{digits}f}" for value in by_routines.values())
    return f"{numbers} at {', '.join(map(str, by_routines))} routines"


def _mean_node(name: str, where: str, mesh: Table, central: Table) -> Comparison:
    hub = _hub(central)
    ratios = _ratios(mesh, hub, "value")
    sensing = mesh.where(measure="bandwidth: devices").mean("value")
    groups = _by_routines(mesh, "bandwidth: groups")
    fired, executing = (_by_routines(mesh, f"runs {what}") for what in ("fired", "executing"))
    most = max(groups)
    epoch_s = min(mesh.distinct("epoch_s"))
    is_short = where == REAL and epoch_s < EPOCH_S
    return Comparison(
        what=f"hub / mean node, {name}",
        ours=f"{_told(ratios)}{_single(mesh, hub, 'value')}",
        paper=f"more than {PAPER_TIMES:.0f}",
        verdict=judged(agrees=min(ratios.values()) > PAPER_TIMES),
        why=f"the hub says and hears {hub:.0f} bytes/s. Somebody has to ask every device: the mean of "
        f"{NODES} nodes has 1/{NODES} of that, so about {NODES} is the most that is possible, with groups "
        f"that say nothing. Sensing is {sensing:.0f} bytes/s of the mean node, which alone were "
        f"{hub / sensing:.1f}{NOT_ON_THE_AIR if where == SIMULATED else ''}. What groups say, which a hub "
        f"need not, comes to {_told(groups, 0)}; with {most} {fired[most]:.0f} runs fire in the "
        f"measured part of a trial, and {executing[most]:.0f} begin to execute: each costs entries in its "
        "group and in those of its devices, of which a message says what changed"
        f"{SHORT_EPOCHS.format(epoch_s) if is_short else ''}",
        in_short=CEILING,
        bar=f"at least {MEAN_BAR:.0f}, of what is said end to end" if where == REAL else "",
        met=min(ratios.values()) >= MEAN_BAR if where == REAL and not is_short else None,
    )


def _busiest_node(name: str, where: str, mesh: Table, central: Table) -> Comparison:
    """Judged over real trials that are long enough for leaders to change often; others are told."""
    hub = _hub(central)
    long = Table(row for row in mesh if row["seconds"] >= EPOCHS * row["epoch_s"])
    over = long if len(long) else mesh
    judging = len(long) > 0 and where == REAL
    ratios = _ratios(over, hub, "most")
    others = {at: ratio for at, ratio in _ratios(mesh, hub, "most").items() if at not in ratios}
    shorter = f". In shorter trials: {_told(others)}" if others else ""
    epochs = min(row["seconds"] / row["epoch_s"] for row in over)
    return Comparison(
        what=f"hub / busiest node, {name}",
        ours=f"{_told(ratios)}{_single(over, hub, 'most')}",
        verdict=Verdict.OURS,
        why=f"with {CLUSTERS} clusters who leads one has 1/{CLUSTERS} of all sensing at that moment: the "
        f"most that is possible at one instant is {CLUSTERS}, and less where one node leads several. Who is "
        f"busy changes with the epochs, of which there were {epochs:.0f} here{shorter}",
        bar=f"at least {BUSIEST_BAR:.0f} over {EPOCHS} epochs" if judging else "",
        met=min(ratios.values()) >= BUSIEST_BAR if judging else None,
    )


def _hop_by_hop(name: str, mesh: Table, central: Table) -> list[Comparison]:
    """The busiest station of a hub's mesh is the hub's, or a neighbour that relays for it. The paper does not
    say which it compares: the first is what one node has to bear, the others what the air has to."""
    hubs = {column: central.where(measure=HOPS).mean(column) for column in ("most", "value")}
    of_devices, of_nodes = f"{HOPS}, devices", f"{HOPS}, nodes"
    says = sum(mesh.where(measure=f"bandwidth: {part}").mean("value") for part in ("groups", MEMBERSHIP))
    encrypted = mesh.where(measure=ENCRYPTED).mean("value")
    why = (
        f"of what the busiest station transmits with a hub {_hub(central, of_devices):.0f} bytes/s are for "
        f"devices. The mean station of the mesh has {mesh.where(measure=of_devices).mean('value'):.0f} for "
        f"devices and {mesh.where(measure=of_nodes).mean('value'):.0f} between nodes: a node says {says:.0f} "
        f"to others, membership included, which are {encrypted:.0f} with encryption and the transport's own "
        "questions whether others are there, and more with headers; and that over hops, to members that are "
        "drawn from anywhere"
    )
    return [
        _stations(f"busiest station with a hub / mean station, {name}", mesh, hubs["most"], "value", why),
        _stations(f"busiest with a hub / busiest, {name}", mesh, hubs["most"], "most", MORE_ON_THE_AIR),
        _stations(f"mean with a hub / mean, {name}", mesh, hubs["value"], "value", MORE_ON_THE_AIR),
    ]


def _stations(what: str, mesh: Table, hub: float, column: str, why: str) -> Comparison:
    ratios = _ratios(mesh, hub, column, HOPS)
    return Comparison(
        what=f"hop by hop: {what}",
        ours=_told(ratios, 2),
        paper=f"more than {PAPER_TIMES:.0f}",
        verdict=judged(agrees=min(ratios.values()) > PAPER_TIMES),
        why=RELAYED if why is MORE_ON_THE_AIR and min(ratios.values()) >= 1 else why,
        in_short=MORE_IN_SHORT if min(ratios.values()) < 1 else OVER_HOPS,
    )


def _beside(name: str, mesh: Table, central: Table) -> list[Comparison]:
    """What the bar leaves out: who lives, and what the transport makes of messages."""
    ours, hubs = (one.where(measure=f"bandwidth: {MEMBERSHIP}").mean("value") for one in (mesh, central))
    hub, node = (
        one.where(measure="bandwidth: devices").mean(column) + one.where(measure=ENCRYPTED).mean(column)
        for one, column in ((central, "most"), (mesh, "value"))
    )
    return [
        Comparison(
            what=f"membership, mean node of the mesh / with a hub, {name}",
            ours=f"{ours / hubs:.2f} ({ours:.0f} and {hubs:.0f} bytes/s)",
            verdict=Verdict.OURS,
            why="it carries device status and who leads which group as well",
        ),
        Comparison(
            what=f"hub / mean node with encryption, membership and the transport's own, {name}",
            ours=f"{hub / node:.1f} ({hub:.0f} and {node:.0f} bytes/s)",
            verdict=Verdict.OURS,
            why="what goes between nodes is encrypted; devices, which are most of what a hub talks to, are "
            "asked in plain",
        ),
    ]


def _flat_measures(mesh: Table) -> list[tuple[str, str]]:
    both = (("end to end", WORK), ("hop by hop", HOPS))
    return [(of, measure) for of, measure in both if mesh.where(measure=measure).rows]


def _flat(name: str, mesh: Table, measure: str) -> Comparison:
    by_routines = _by_routines(mesh, measure)
    few, *_, many = by_routines.values()
    runs = mesh.where(measure="runs executing").summary(("routines", "seconds"), "value")
    per_minute = [60 * count / seconds for (_, seconds), count in sorted(runs.items())]
    return Comparison(
        what=f"mean node by routines, {name}",
        ours=f"{_told(by_routines, 0)}, in bytes/s: {many / few:.2f} times",
        paper="flat",
        verdict=judged(agrees=many / few <= FLAT),
        why=""
        if many / few <= FLAT
        else f"{min(per_minute):.1f} to {max(per_minute):.1f} runs a minute execute: each costs entries in "
        "its group and in those of its devices, and what is asked of devices stays the same",
        in_short=NOT_FLAT,
    )


def _foreground(name: str, mesh: Table) -> Comparison:
    parts = {part: _by_routines(mesh, f"bandwidth: {part}") for part in (*BACKGROUND, MEMBERSHIP)}
    shares = {
        routines: value / sum(parts[part][routines] for part in BACKGROUND)
        for routines, value in _by_routines(mesh, "bandwidth: foreground").items()
    }
    small = max(shares.values()) <= SMALL
    described = ", ".join(f"{part} {fmean(rates.values()):.0f}" for part, rates in parts.items())
    return Comparison(
        what=f"foreground / background, {name}",
        ours=_told(shares, 2),
        paper="small",
        verdict=judged(agrees=small),
        why=f"bytes/s of the mean node: {described}, the last apart. Foreground is all entries and their "
        "acknowledgements, locks, commands, elections and migration; the paper names the last two. Of an "
        "entry a message says what changed in its records",
        in_short=NOT_SMALL,
    )


def _agreements(table: Table) -> list[Comparison]:
    """How far real and simulated trials of the same kind are apart."""
    found: list[Comparison] = []
    for part in ("devices", "groups", "membership", "hop by hop"):
        keys = ("preset", "shape", "routines")
        of_part = table.where(mode="mesh", measure=f"bandwidth: {part}")
        real = of_part.where(where=REAL).summary(keys, "value")
        simulated = of_part.where(where=SIMULATED).summary(keys, "value")
        ratios = [rate / simulated[key] for key, rate in real.items() if key in simulated]
        if not ratios:
            continue
        near = all(within(ratio, 1.0, NEAR) for ratio in ratios)
        found.append(
            Comparison(
                what=f"real / simulated: {part}, mean node",
                ours=f"{min(ratios):.2f} to {max(ratios):.2f}",
                verdict=Verdict.OURS,
                why=_why_apart(part, near=near),
            )
        )
    return found


def _why_apart(part: str, *, near: bool) -> str:
    if part == "hop by hop":
        return (
            "real packets have headers of 28 bytes and more for encryption, and take the routes of babeld; "
            "simulated ones are the bare messages on shortest paths"
        )
    if part == "devices":
        return "in simulation a node and a device at the same place do not use the radio, and are not counted"
    return "" if near else "in a short trial few runs happen, and not the same ones at the same times"


def _networks(table: Table) -> list[Comparison]:
    """What real trials ran over; plainly, if that has no hops."""
    found = []
    for network in table.where(where=REAL).distinct("network"):
        lacking = network.startswith("loopback")
        found.append(
            Comparison(
                what="network of the real trials",
                ours=network,
                paper="11 Raspberry Pi, OLSR",
                verdict=Verdict.DIFFERS if lacking else Verdict.OURS,
                why="no hops: nothing is measured hop by hop, and grid and line differ in who is chosen only"
                if lacking
                else "one machine; hops are cables between network namespaces, and take next to no time",
                in_short="Real trials ran on loopback, without hops." if lacking else "",
            )
        )
    return found


def _loads(table: Table) -> list[Comparison]:
    """Of P15 and P16 this says how far presets can be compared."""
    found: list[Comparison] = []
    whys = {REAL: _what_load_changes(table), QUIET: "two at a time, for the delays of P15 and P16"}
    for where, why in whys.items():
        trials = table.where(where=where, mode="mesh", measure="machine load")
        loads = trials.summary(("preset",), "value", median)
        if loads:
            told = ", ".join(f"{load:.1f} with {preset}" for (preset,), load in loads.items())
            what = f"load of the machine at the end of {where} trials, median"
            found.append(Comparison(what=what, ours=told, verdict=Verdict.OURS, why=why))
    return found


def _what_load_changes(table: Table) -> str:
    told = (
        "many trials run at once: delays of real nodes (P15, P16) are those of a machine with so many "
        "processes that want to run"
    )
    keys = ("preset", "shape", "routines")
    busy, quiet = (
        table.where(where=where, mode="mesh", measure=WORK).summary(keys, "value") for where in (REAL, QUIET)
    )
    times = {key: busy[key] / rate for key, rate in quiet.items() if key in busy}
    if not times:
        return told
    kinds = dict.fromkeys(f"{shape}, {routines} routines" for _, shape, routines in times)
    most, least = max(times.values()), min(times.values())
    return f"{told}. They say {least:.2f} to {most:.2f} times as much as quiet ones ({'; '.join(kinds)})"


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 3, width=4.6)
    for at, (title, measure) in enumerate((("end to end", WORK), ("hop by hop", HOPS))):
        real = table.where(where=REAL, measure=measure)
        lines(axes[at], _named(real.where(mode="mesh"), "value", "mean node"))
        hubs = _named(real.where(mode="central"), "most", HUB)
        lines(axes[at], hubs, first=4)
        axes[at].set_xticks(sorted(real.distinct("routines")))
        finish(axes[at], x="routines", y="bytes/s" if at == 0 else "", title=f"real, {title}")
    _parts(axes[2], table.where(where=SIMULATED, mode="mesh", preset="default"))
    return figure


def _named(table: Table, column: str, what: str) -> dict[str, dict[int, float]]:
    """A curve for each shape, and for each preset where there are several points of it."""
    rows: list[Row] = [{**row, "name": f"{row['shape']}, preset {row['preset']}"} for row in table]
    named = Table({**row, "name": row["shape"]} for row in table) if what == HUB else Table(rows)
    return {f"{name}, {what}": curve for name, curve in named.curves("name", "routines", column).items()}


def _parts(axes: Axes, simulated: Table) -> None:
    """What a mean node says, of both shapes, from bottom to top."""
    routines: Sequence[int] = sorted(simulated.distinct("routines"))
    below = [0.0] * len(routines)
    for number, part in enumerate((*BACKGROUND, MEMBERSHIP, "foreground")):
        rates = simulated.where(measure=f"bandwidth: {part}").summary(("routines",), "value")
        heights = [rates[routines_,] for routines_ in routines]
        axes.bar([str(one) for one in routines], heights, bottom=below, label=part, color=COLOURS[number])
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylim(top=1.35 * max(below))
    finish(axes, x="routines", title="simulated, preset default, mean node: what for", legend=False)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")


EXPERIMENT = Experiment(
    id="P14",
    title="Bandwidth against a hub",
    campaign=CAMPAIGN,
    paper="Section 6, figure of bandwidth: more than ten times less bandwidth per node than with a hub, end "
    "to end and hop by hop; flat as routines are added; foreground operations small against monitoring.",
    compare=compare,
    draw=draw,
    about=(
        "The paper has a group for each routine, we have one for each of four clusters, in which routines "
        "are anchored, and one for the deployment. 11 nodes at 11 of 16 places, k = 3, devices asked every "
        "second, epochs of 60 s (20 s at the quick scale), sequential locks, the first 10 s dropped. In "
        "full, trials of 1, 5, 10, 15 and 20 routines last 150, 300, 600, 500 and 600 s (`paper`: 1, 10 and "
        "20 of them), quiet ones 300 s, and those of a hub, in which nobody is killed, 60 s. The hub "
        "is the preset `central`. End to end by the nodes' own counters, before encryption and bundling, "
        "membership apart: what a node says to devices, hears from them and says to other nodes. Hop by hop "
        "at the nodes' own places, in the real mesh: IP packets that leave a station on its cables, counted "
        "by nftables, routing messages of babeld left out."
    ),
)
