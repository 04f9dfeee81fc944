"""E: how the cost of a simulation, its traffic and the client delay grow with the mesh, up to 10,000 devices.

Not in the paper, whose largest mesh has 1,000. Grids at unit spacing, 40 % of the devices nodes, k = 5, a
routine per cluster, each fired once. A run is long enough for a change of epoch: 80 s by our defaults, 20 s
as the paper has it (epochs of 200 hops). Each point is measured in a process of its own (measures/scale.py).
"""

import math
from collections.abc import Iterator

import msgspec
from matplotlib.figure import Figure

from comesh.core.group.finder import QUIET_FROM_NODES
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.scale import Wanted, measured_apart
from comesh.experiments.plots import finish, lines, new_figure, of_presets
from comesh.experiments.table import Row, Table

SIZES = {Scale.QUICK: (100, 250, 500), Scale.FULL: (250, 500, 1000, 2500, 5000, 10_000)}
PAPER_LARGEST = 1000
"""As large as the paper's. With its unit of time membership has half of 20 hops for a probe: beyond, those
who are far away are suspected all the time, and that would be all that is measured."""
SEEDS = 3
"""At the full scale, up to SMALL devices; one beyond."""
SMALL = 2500
SECONDS = {Preset.DEFAULT: 80.0, Preset.PAPER: 20.0}
DEVICES_PER_ROUTINE = 25
"""As many as a cluster has."""

LARGEST = 10_000
MAX_MINUTES = 30.0
MAX_MEMORY_GB = 12.0

GROWING = {
    "cpu_per_simulated_s": "CPU seconds per simulated second",
    "memory_mb": "peak memory, MB",
    "events_per_simulated_s": "events per simulated second",
    "messages_per_s": "messages per node and second",
    "bytes_per_s": "bytes per node and second",
    "delay_hops": "client delay (median), hops",
}
"""What is drawn and compared between the smallest mesh and the largest."""


def cases(scale: Scale) -> Iterator[Parameters]:
    for preset in PRESETS:
        for devices in SIZES[scale]:
            if preset is Preset.PAPER and devices > PAPER_LARGEST:
                continue
            seeds = SEEDS if scale is Scale.FULL and devices <= SMALL else 1
            for seed in range(1, seeds + 1):
                yield {"preset": preset, "devices": devices, "seed": seed, "seconds": SECONDS[preset]}


def run(case: Parameters) -> list[Row]:
    routines = max(4, case["devices"] // DEVICES_PER_ROUTINE)
    wanted = Wanted(
        preset=case["preset"],
        devices=case["devices"],
        seed=case["seed"],
        seconds=case["seconds"],
        routines=routines,
    )
    measured = measured_apart(wanted)
    per_second = {
        "wall_per_simulated_s": measured.wall_s / wanted.seconds,
        "cpu_per_simulated_s": measured.cpu_s / wanted.seconds,
        "events_per_simulated_s": measured.events / wanted.seconds,
    }
    return [{"routines": routines, **msgspec.structs.asdict(measured), **per_second}]


def about_s(case: Parameters) -> float:
    """Measured with 100 and 500 devices, 80 s and 20 s of simulated time."""
    second_s, exponent = (0.5, 1.5) if case["preset"] == Preset.PAPER else (0.045, 1.3)
    return 1 + second_s * float(case["seconds"]) * math.pow(case["devices"] / 500, exponent)


def compare(table: Table) -> list[Comparison]:
    found = [_reached(table)] if table.where(devices=LARGEST).rows else []
    for preset in table.distinct("preset"):
        rows = table.where(preset=preset)
        sizes = sorted(rows.distinct("devices"))
        small, large = rows.where(devices=sizes[0]), rows.where(devices=sizes[-1])
        for column, name in GROWING.items():
            found.append(_growth(f"{name}, {preset}", column, small, large))
        found += [_fired(preset, rows), _suspected(preset, rows)]
    return found


def _reached(table: Table) -> Comparison:
    """The bar is on everything that a point takes, also making the mesh."""
    largest = table.where(devices=LARGEST)
    minutes = max(row["wall_s"] + row["made_s"] for row in largest) / 60
    memory_gb = max(largest.numbers("memory_mb")) / 1024
    return Comparison(
        what=f"the point with {LARGEST:,} devices",
        ours=f"{minutes:.1f} minutes of wall time, {memory_gb:.1f} GB",
        verdict=Verdict.OURS,
        bar=f"under {MAX_MINUTES:g} minutes and {MAX_MEMORY_GB:g} GB",
        met=minutes < MAX_MINUTES and memory_gb < MAX_MEMORY_GB,
    )


def _growth(what: str, column: str, small: Table, large: Table) -> Comparison:
    return Comparison(
        what=what,
        ours=f"{_grown(column, small, large)} (N = {_size(small):,} to {_size(large):,})",
        verdict=Verdict.OURS,
        why=_why(column, small, large),
    )


def _grown(column: str, small: Table, large: Table) -> str:
    before, after = small.mean(column), large.mean(column)
    exponent = math.log(after / before) / math.log(_size(large) / _size(small))
    return f"{before:,.3g} -> {after:,.3g}, as N^{exponent:.2f}"


def _size(rows: Table) -> int:
    devices: int = rows.rows[0]["devices"]
    return devices


def _becomes_quiet(small: Table, large: Table) -> bool:
    """With epochs of 200 hops, as the paper has them, listings are pushed in meshes of all sizes."""
    sizes = small.mean("nodes"), large.mean("nodes")
    return large.distinct("preset") != [Preset.PAPER] and sizes[0] < QUIET_FROM_NODES <= sizes[1]


def _why(column: str, small: Table, large: Table) -> str:
    match column:
        case "bytes_per_s":
            return (
                f"Every node hears of the leader and config of every group: {_grown('groups', small, large)}."
            )
        case "messages_per_s" if _becomes_quiet(small, large):
            return (
                "In the small mesh who leads a group is pushed to everybody in messages of its own. From "
                f"{QUIET_FROM_NODES} nodes on it rides on messages that are sent anyway."
            )
        case "delay_hops":
            times = [rows.mean("delay_hops") / rows.mean("ideal_hops") for rows in (small, large)]
            return (
                f"The ideal: {_grown('ideal_hops', small, large)}. The delay is {times[0]:.2f} times that in "
                f"the small mesh, {times[1]:.2f} times in the large one."
            )
        case _:
            return ""


def _fired(preset: str, rows: Table) -> Comparison:
    fired, wanted = sum(rows.numbers("fired")), sum(rows.numbers("routines"))
    return Comparison(
        what=f"firings that came to their first command, {preset}",
        ours=f"{fired:.0f} of {wanted:.0f}",
        verdict=Verdict.OURS,
        bar="all",
        met=fired == wanted,
    )


def _suspected(preset: str, rows: Table) -> Comparison:
    """A mesh in which living nodes are suspected all the time would cost that, whatever its size."""
    most = max(row["false_suspicions"] / (row["nodes"] * row["seconds"]) for row in rows)
    return Comparison(
        what=f"false suspicions per node and second at most, {preset}",
        ours=f"{most:.3g}",
        verdict=Verdict.OURS,
        bar="under 0.01",
        met=most < 0.01,
    )


def draw(table: Table) -> Figure:
    figure, axes = new_figure(2, len(GROWING) // 2, width=4.0)
    for one, (column, name) in zip(axes.flat, GROWING.items(), strict=True):
        lines(one, of_presets(table.curves("preset", "devices", column)))
        if column == "delay_hops":
            lines(one, {"ideal": table.curves("preset", "devices", "ideal_hops")["default"]}, first=2)
        one.set_xscale("log")
        finish(one, x="devices (40 % of them nodes)", y=name)
    return figure


CAMPAIGN = Campaign("scale", cases, run, about_s)
EXPERIMENT = Experiment(
    id="E",
    title="Ten thousand devices",
    campaign=CAMPAIGN,
    paper="How do cost, traffic and client delay grow beyond the paper's 1,000 devices?",
    compare=compare,
    draw=draw,
    about=(
        "Each point is one process with nothing before it. CPU time is compared, because wall time depends "
        "still more on what else the machine does; the bar is on wall time. Traffic is end to end, of a mesh "
        "whose "
        "nodes know each other, from five seconds on. Grids are cubes, so distances grow with the third root "
        "of N. Times and memory are of the simulator with all of its nodes, not of one node. With the "
        "paper's unit of time probes cannot cross a larger mesh than its own in time: it ends at 1,000."
    ),
)
