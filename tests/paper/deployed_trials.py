"""Trials of the paper's 11-node deployment for tests: simulated ones, each run once."""

from functools import cache
from typing import cast

from comesh.experiments.reproduction import table_of
from comesh.experiments.stage import Row, Table
from comesh.experiments.store import Outcome
from comesh.experiments.trials import EPOCH_S, SIMULATED, run


@cache
def simulated(
    shape: str, routines: int, mode: str = "mesh", preset: str = "default", epochs: int = 2
) -> Table:
    """Some epochs of a mesh, with two leaders killed at the end; less of a hub."""
    mesh = mode == "mesh"
    case = {
        "where": SIMULATED,
        "mode": mode,
        "preset": preset,
        "shape": shape,
        "routines": routines,
        "seed": 3,
        "epoch_s": EPOCH_S,
        "seconds": float(epochs * EPOCH_S) if mesh else 15.0,
        "kills": 2 if mesh else 0,
    }
    return table_of([Outcome(commit="", parameters=case, rows=cast("list[Row]", run(case)))])


def together(*tables: Table) -> Table:
    return Table(row for table in tables for row in table)
