"""P4, the paper's figure of overlaps by N: how many of a group's members are members in the next epoch too.

Grids of 50 to 1,000 devices, 40 % of them nodes, m = 2, l = 2, r = 4; f = 2, so groups have five members. Who
stays has the group's data already, which makes epochs cheaper to change.
"""

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, judged, within
from comesh.experiments.measures.presets import F, by_preset
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, NOTE, SIZES, cases, run
from comesh.experiments.measures.selections import LSH, RANDOM
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.sim.topology import SMART_SHARE

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

WELL_ABOVE = 2.0
NEAR = 0.25
"""What random selection keeps, and what chance does: no further apart they are the same."""
MEMBERS = 2 * F + 1


def overlaps(table: Table) -> dict[str, dict[int, float]]:
    """By policy: from N to members kept."""
    return table.where(**DEFAULTS).curves("members", "devices", "kept")


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        curves = overlaps(rows)
        lsh, random = curves[LSH], curves[RANDOM]
        crowded = _crowded(lsh, random)
        found += [_at(preset, devices, lsh, random, crowded) for devices in lsh]
        found.append(_falls(preset, lsh, random))
    return found


def _most_added(lsh: dict[int, float], random: dict[int, float]) -> float:
    """To what stays at random: the most that LSH adds at any size."""
    return max(lsh[at] - random[at] for at in lsh)


def _crowded(lsh: dict[int, float], random: dict[int, float]) -> list[int]:
    """Where chance alone keeps so many that what LSH adds at any size would not make it well more, though it
    does in others."""
    most = _most_added(lsh, random)
    if all(lsh[devices] < WELL_ABOVE * random[devices] for devices in lsh):
        return []
    return [
        devices
        for devices in lsh
        if most < (WELL_ABOVE - 1) * random[devices] and within(random[devices], _by_chance(devices), NEAR)
    ]


def _nodes(devices: int) -> int:
    return round(devices * SMART_SHARE)


def _by_chance(devices: int) -> float:
    """How many are in both of two draws of all members."""
    return MEMBERS**2 / _nodes(devices)


def _at(
    preset: str, devices: int, lsh: dict[int, float], random: dict[int, float], crowded: list[int]
) -> Comparison:
    kept, at_random = lsh[devices], random[devices]
    agrees = kept >= WELL_ABOVE * at_random
    why = (
        f"LSH adds {kept - at_random:.2f} to the {at_random:.2f} that stay at random, and "
        f"{(WELL_ABOVE - 1) * at_random:.2f} would make it {WELL_ABOVE:.0f} times as many"
    )
    short = f"At N = {devices} LSH keeps less than {WELL_ABOVE:.0f} times as many members as random."
    if devices in crowded:
        why = (
            f"Here a group has {MEMBERS} of only {_nodes(devices)} nodes, so {_by_chance(devices):.2f} stay "
            f"by chance. {why}; the most that it adds at any size is {_most_added(lsh, random):.2f}"
        )
        short = (
            f"At N = {' and '.join(map(str, crowded))} a group has so many of the few nodes that chance "
            "alone keeps more members than LSH adds at any size."
        )
    return Comparison(
        what=f"members kept at N = {devices}, {preset}",
        ours=f"{kept:.2f} of {MEMBERS}, random {at_random:.2f}: {kept / at_random:.1f} times as many",
        paper=f"much larger than random: at least {WELL_ABOVE:.0f} times as many",
        verdict=judged(agrees=agrees),
        why="" if agrees else f"{why}.",
        in_short="" if agrees else short,
    )


def _falls(preset: str, lsh: dict[int, float], random: dict[int, float]) -> Comparison:
    small, large = min(lsh), max(lsh)
    falls = lsh[large] < lsh[small]
    return Comparison(
        what=f"members kept, LSH, N = {small} to {large}, {preset}",
        ours=f"{lsh[small]:.2f} to {lsh[large]:.2f} of {MEMBERS}",
        paper="falls for large N: fewer in the largest than in the smallest",
        verdict=judged(agrees=falls),
        why=""
        if falls
        else f"what stays at random goes from {random[small]:.2f} to {random[large]:.2f}, and what LSH adds "
        f"to that from {lsh[small] - random[small]:.2f} to {lsh[large] - random[large]:.2f}",
        in_short="" if falls else "LSH keeps no fewer members in the largest mesh than in the smallest.",
    )


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    for number, (preset, rows) in enumerate(by_preset(table).items()):
        curves = {f"{members}, preset {preset}": points for members, points in overlaps(rows).items()}
        lines(axes, curves, first=2 * number)
    axes.set_xlim(0, max(SIZES) * 1.05)
    finish(axes, x="devices (40 % of them nodes)", y=f"members kept, of {MEMBERS}")
    return figure


EXPERIMENT = Experiment(
    id="P4",
    title="Members kept from epoch to epoch",
    campaign=CAMPAIGN,
    paper="Section 3.6: the overlap under LSH falls for large N, and is much larger than under random.",
    compare=compare,
    draw=draw,
    about=f"{NOTE} f = 2: groups of five.",
    looks_at=lambda case: DEFAULTS.items() <= case.items(),
)
