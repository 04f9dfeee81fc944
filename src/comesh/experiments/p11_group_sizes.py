"""P11: election, quorum and state transfer in groups of 3 to 11 members.

The paper's defaults: 250 devices, 100 of them nodes. What is measured: measures/mesh_operations.py.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.mesh_operations import OPERATIONS, operations
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import delay, joined, panels, presets_of
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
FAILURES = (1, 2, 3, 4, 5)
QUICK_FAILURES = {Preset.PAPER: FAILURES[::2], Preset.DEFAULT: FAILURES[::4]}
SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
SEEDS, OTHER_SEEDS = 10, 3
"""The paper does not say on which topology it was; the others show whether it matters."""
EPOCHS = {Preset.PAPER: 4.0, Preset.DEFAULT: 1.1}
"""That a mesh is at work for: every group moves at least once."""
FLAT = 0.25
"""Who does not depend on k changes by no more than this from the least k to the greatest."""
WHY_TRANSFERS_GROW = (
    "Our transfer holds two quorums, the commit of the old config's end and the installation of the next "
    "one, and both reach to the f-th nearest member, who is farther away in larger groups, as quorums show."
)


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
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


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape(case["shape"]), devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], f=(case["k"] - 1) // 2, seed=case["seed"])
    return operations(topology, setup, seed=case["seed"], epochs=EPOCHS[Preset(case["preset"])])


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        sizes = sorted(table.where(preset=preset).distinct("k"))
        least, most = sizes[0], sizes[-1]
        for shape in table.distinct("shape"):
            rows = table.where(preset=preset, shape=shape)
            for operation in OPERATIONS:
                by_size = {k: delay(rows, operation, k=k) for k in sizes}
                found.append(_scales(f"{operation} by k, {shape}, {preset}", by_size, most / least))
            by_size = {k: delay(rows, "state transfer", k=k) for k in sizes}
            found.append(_flat(f"state transfer at k = {most} against {least}, {shape}, {preset}", by_size))
            apart = {k: delay(rows, "until suspicion", k=k) for k in sizes}
            found.append(
                Comparison(
                    what=f"from a crash to suspicion by k, {shape}, {preset} (not in the election)",
                    ours=f"{joined(apart)} hops",
                    verdict=Verdict.OURS,
                )
            )
    return found


def _scales(what: str, by_size: dict[int, float], growth: float) -> Comparison:
    """Scales well: grows less than the group does."""
    ratio = max(by_size.values()) / by_size[min(by_size)]
    return Comparison(
        what=what,
        ours=f"{joined(by_size)} hops",
        paper="scales well",
        verdict=judged(agrees=ratio < growth),
    )


def _flat(what: str, by_size: dict[int, float]) -> Comparison:
    ratio = by_size[max(by_size)] / by_size[min(by_size)]
    flat = abs(ratio - 1) <= FLAT
    return Comparison(
        what=what,
        ours=f"{ratio:.2f} times",
        paper="does not depend on k",
        verdict=judged(agrees=flat),
        why="" if flat else WHY_TRANSFERS_GROW,
    )


def draw(table: Table) -> Figure:
    grid = table.where(shape=Shape.GRID)
    return panels(grid, lambda rows: rows.curves("preset", "k", "median"), x="members of a group")


CAMPAIGN = Campaign("group-sizes", cases, run)
EXPERIMENT = Experiment(
    id="P11",
    title="Operations inside groups, by their size",
    campaign=CAMPAIGN,
    paper=(
        "Election, quorum and state transfer all scale well from k = 3 to 11; state transfer does not "
        "depend on k."
    ),
    compare=compare,
    draw=draw,
    about=(
        "The mean over seeds of each seed's median, in hops. Quorums and state transfers are those of a "
        "mesh at work, elections follow crashes of leaders, from the winner's first Ask; the time until "
        "somebody suspects the leader is a number of leases, and is told apart. In the simulations of P11 "
        "to P13 the paper's unit of time is 10 ms (measures/running.py says why)."
    ),
)
