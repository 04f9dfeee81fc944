"""E: how the cost of a simulation, its traffic and the client delay grow with the mesh, up to 10,000 devices.

Not in the paper, whose largest mesh has 1,000. Grids at unit spacing, 40 % of the devices nodes, k = 5, a
routine per cluster, each fired once. A run is long enough for a change of epoch: 80 s by our defaults, 20 s
as the paper has it (epochs of 200 hops). Each point is measured in a process of its own (measures/scale.py).
"""

import math

from comesh.experiments import stage
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.scale import measured_apart
from comesh.sim.topology import SMART_SHARE

SIZES = {stage.Scale.QUICK: (100, 250, 500), stage.Scale.FULL: (250, 500, 1000, 2500, 5000, 10_000)}
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


def cases(scale: stage.Scale) -> stage.Cases:
    for preset in PRESETS:
        for devices in SIZES[scale]:
            if preset is Preset.PAPER and devices > PAPER_LARGEST:
                continue
            seeds = SEEDS if scale is stage.Scale.FULL and devices <= SMALL else 1
            for seed in range(1, seeds + 1):
                yield {"preset": preset, "devices": devices, "seed": seed, "seconds": SECONDS[preset]}


def run(case: stage.Parameters) -> list[stage.Row]:
    routines = max(4, case["devices"] // DEVICES_PER_ROUTINE)
    return [{"routines": routines, **measured_apart({**case, "routines": routines})}]


def about_s(case: stage.Parameters) -> float:
    """Measured with 100 and 500 devices, 80 s and 20 s of simulated time."""
    second_s, exponent = (0.5, 1.5) if case["preset"] == Preset.PAPER else (0.045, 1.3)
    return 1 + second_s * float(case["seconds"]) * math.pow(case["devices"] / 500, exponent)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    columns = {**GROWING, "ideal_hops": "ideal, hops", "groups": "groups"}
    return {
        "By size": stage.means(table, ("preset", "devices"), columns),
        "How many times as much in the largest mesh": stage.growths(table, ("preset",), "devices", columns),
    }


def bars(table: stage.Table) -> list[stage.Bar]:
    found = []
    largest = table.where(devices=LARGEST)
    if len(largest):
        minutes = max(row["wall_s"] + row["made_s"] for row in largest) / 60
        found += [
            stage.Bar(f"minutes of wall time, N = {LARGEST:,}", minutes, MAX_MINUTES, "<"),
            stage.Bar(
                f"memory in GB, N = {LARGEST:,}", max(largest.numbers("memory_mb")) / 1024, MAX_MEMORY_GB, "<"
            ),
        ]
    for (preset,), rows in table.groups("preset"):
        lost = rows.total("routines") - rows.total("fired")
        suspected = max(row["false_suspicions"] / (row["nodes"] * row["seconds"]) for row in rows)
        found += [
            stage.Bar(f"firings that came to no command, {preset}", lost, 0),
            stage.Bar(f"false suspicions per node and second at most, {preset}", suspected, 0.01, "<"),
        ]
    return found


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(2, len(GROWING) // 2, width=4.0)
    for one, (column, name) in zip(axes.flat, GROWING.items(), strict=True):
        stage.draw_means(one, table, "preset", "devices", column)
        if column == "delay_hops":
            ideal = table.where(preset=str(Preset.DEFAULT)).summary("devices", "ideal_hops")
            stage.draw_lines(one, {"ideal": ideal}, first=2)
        one.set_xscale("log")
        stage.finish(one, x=f"devices ({SMART_SHARE:.0%} of them nodes)", y=name)
    return figure


CAMPAIGN = stage.Campaign("scale", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="E",
    title="Ten thousand devices",
    campaign=CAMPAIGN,
    paper="How do cost, traffic and client delay grow beyond the paper's 1,000 devices?",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)
