"""The campaign of P14, P15 and P16: trials of the paper's 11-node deployment, real and simulated ones.

Real trials run several at once, which shares the processors: the longest first, so that few are left at the
end, and simulated ones after them. In full that changes little of what is sent (P14 tells how much), but how
long it takes: so some *quiet* ones come last, two at a time, whose delays are held to those of the authors'
program. A hub's rate is the same at all times: its trials are short. The first ten seconds of all are
dropped. Leaders are killed (kill -9) at the end of every trial of a mesh, when all else is measured.

In full, trials last as long as the paper's, those of ten routines ten epochs, which is longer. Quick, epochs
are shorter: real trials see three of them, simulated ones twelve.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from comesh.experiments.measures.deployed_workload import ROUTINES
from comesh.experiments.measures.presets import Preset
from comesh.experiments.measures.real_trial import real_trial, reread
from comesh.experiments.measures.simulated_trial import simulated_trial
from comesh.experiments.measures.trial import Mode, Trial
from comesh.experiments.stage import Campaign, Parameters, Recorded, Row, Scale, Table
from comesh.lab.shapes import Shape

REAL, SIMULATED, QUIET = "real", "simulated", "quiet"
EPOCH_S, QUICK_EPOCH_S = 60, 20
EPOCHS = 10
"""Over which the busiest node is judged."""
SHAPES = tuple(Shape)
QUICK_ROUTINES = PAPER_ROUTINES = HUB_ROUTINES = (1, 10, 20)
"""All of the paper's with our defaults, in full; these with its preset, with a hub, and quick."""
QUICK_SEED = 3
QUICK_S = {REAL: 60.0, SIMULATED: 240.0}
QUICK_HUB_S, HUB_S = 15.0, 60.0
QUICK_KILLS, KILLS = 2, 4
LONG_ROUTINES = 10
QUIET_S = 300.0
SEEDS = range(1, 6)


def cases(scale: Scale) -> Iterator[Parameters]:
    for where in (SIMULATED, REAL):
        yield from _quick(where) if scale is Scale.QUICK else _full(where)
    if scale is Scale.FULL:
        for seed, preset in itertools.product(SEEDS, Preset):
            yield _mesh(QUIET, Shape.GRID, LONG_ROUTINES, preset, seed=seed, seconds=QUIET_S, kills=KILLS)


def _quick(where: str) -> Iterator[Parameters]:
    quick: Parameters = {
        "seed": QUICK_SEED,
        "seconds": QUICK_S[where],
        "kills": QUICK_KILLS,
        "epoch_s": QUICK_EPOCH_S,
    }
    for shape in SHAPES:
        for routines in QUICK_ROUTINES:
            yield _mesh(where, shape, routines, Preset.DEFAULT, **quick)
    for shape in SHAPES:
        yield _mesh(where, shape, LONG_ROUTINES, Preset.PAPER, **quick)
        yield _hub(where, shape, LONG_ROUTINES, seed=QUICK_SEED, seconds=QUICK_HUB_S, epoch_s=QUICK_EPOCH_S)


def _full(where: str) -> Iterator[Parameters]:
    lengths = {**ROUTINES, LONG_ROUTINES: float(EPOCHS * EPOCH_S)}
    for seed, shape in itertools.product(SEEDS, SHAPES):
        for preset, (routines, seconds) in itertools.product(Preset, lengths.items()):
            if preset is Preset.DEFAULT or routines in PAPER_ROUTINES:
                yield _mesh(where, shape, routines, preset, seed=seed, seconds=seconds, kills=KILLS)
        for routines in HUB_ROUTINES:
            yield _hub(where, shape, routines, seed=seed, seconds=HUB_S)


def _mesh(
    where: str,
    shape: Shape,
    routines: int,
    preset: Preset,
    *,
    seed: int,
    seconds: float,
    kills: int,
    epoch_s: int = EPOCH_S,
) -> Parameters:
    return {
        "where": where,
        "mode": str(Mode.MESH),
        "preset": str(preset),
        "shape": str(shape),
        "routines": routines,
        "seed": seed,
        "epoch_s": epoch_s,
        "seconds": seconds,
        "kills": kills,
    }


def _hub(where: str, shape: Shape, routines: int, **asked: Any) -> Parameters:
    """A hub is a preset of its own; who leads it is killed nowhere, since nobody takes its place."""
    mesh = _mesh(where, shape, routines, Preset.DEFAULT, kills=0, **asked)
    return {**mesh, "mode": str(Mode.CENTRAL)}


def run(case: Parameters) -> list[Row] | Recorded:
    asked = dict(case)
    measure = simulated_trial if asked.pop("where") == SIMULATED else real_trial
    return measure(msgspec.convert(asked, Trial))


def about_s(case: Parameters) -> float:
    """A simulated second takes some milliseconds."""
    seconds = float(case["seconds"])
    return seconds / 150 if case["where"] == SIMULATED else seconds + 40


def is_quiet(case: Parameters) -> bool:
    return bool(case["where"] == QUIET)


def held_to_authors(table: Table) -> str:
    """Which trials are compared with the authors' program, which had a machine for itself."""
    return QUIET if len(table.where(where=QUIET)) else REAL


CAMPAIGN = Campaign("deployment", cases, run, about_s, real=True, is_quiet=is_quiet, reread=reread)
