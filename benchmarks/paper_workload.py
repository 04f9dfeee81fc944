"""Writes the workload of the paper's 11-node deployment: a document, and the readings that its devices get.

    python benchmarks/paper_workload.py [--shape grid|line] [--routines N] [--seed N] > mesh.yaml
    python benchmarks/paper_workload.py --readings readings.json > mesh.yaml

What it is: `comesh.experiments.measures.deployed_workload`.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from comesh.experiments.measures.deployed_workload import MESH, PLACES, ROUTINES, make_workload
from comesh.lab.shapes import Shape

__all__ = ["PLACES", "ROUTINES", "Shape", "make_workload"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--shape", type=Shape, choices=list(Shape), default=Shape.GRID)
    arguments.add_argument("--routines", type=int, choices=list(ROUTINES), default=10)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--push", action="store_true", help="devices report changes by themselves")
    arguments.add_argument("--readings", type=Path, help="write the readings there, as JSON")
    options = arguments.parse_args()
    settings = {**MESH, "push": str(options.push).lower()}
    made = make_workload(options.shape, routines=options.routines, seed=options.seed, settings=settings)
    if options.readings is not None:
        options.readings.write_bytes(msgspec.json.encode(made.readings))
    print(made.document, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
