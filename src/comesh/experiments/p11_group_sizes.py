"""P11: election, quorum and state transfer in groups of 3 to 11 members.

The paper's defaults: 250 devices, 100 of them nodes. What is measured: measures/mesh_operations.py.
Means are over all operations of all seeds, in hops. An election lasts from the winner's first question, the
pre-vote, which the paper has not.
"""

from comesh.experiments import stage
from comesh.experiments.measures.mesh_operations import (
    draw_operations,
    operations,
    table_operations,
)
from comesh.experiments.measures.presets import PRESETS, Preset, running
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
FAILURES = (1, 2, 3, 4, 5)
QUICK_FAILURES = {Preset.PAPER: FAILURES[::2], Preset.DEFAULT: FAILURES[::4]}
SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
SEEDS, OTHER_SEEDS = 10, 5
"""The paper does not say on which topology it was; the others show whether it matters."""
EPOCHS = {Preset.PAPER: 4.0, Preset.DEFAULT: 1.1}
"""That a mesh is at work for: every group moves at least once."""


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    for preset in PRESETS:
        for shape in SHAPES if full else SHAPES[:1]:
            for f in FAILURES if full else QUICK_FAILURES[preset]:
                for seed in range(1, (SEEDS if shape is Shape.GRID else OTHER_SEEDS) + 1 if full else 2):
                    yield {
                        "preset": preset,
                        "shape": shape,
                        "devices": DEVICES,
                        "k": 2 * f + 1,
                        "seed": seed,
                    }


def run(case: stage.Parameters) -> list[stage.Row]:
    topology = make_topology(Shape(case["shape"]), devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], f=(case["k"] - 1) // 2, seed=case["seed"])
    return operations(topology, setup, seed=case["seed"], epochs=EPOCHS[Preset(case["preset"])])


def tables(table: stage.Table) -> dict[str, stage.Table]:
    return table_operations(table, ("preset", "shape"), "k")


def draw(table: stage.Table) -> stage.Figure:
    return draw_operations(table.where(shape=str(Shape.GRID)), {"k": "members of a group, on the grid"})


CAMPAIGN = stage.Campaign("group-sizes", cases, run, about_s=lambda _: 5.0)
EXPERIMENT = stage.Experiment(
    id="P11",
    title="Operations inside groups, by their size",
    campaign=CAMPAIGN,
    paper="Election, quorum and state transfer scale well from k = 3 to 11; transfer does not depend on k.",
    tables=tables,
    draw=draw,
    about=__doc__,
)
