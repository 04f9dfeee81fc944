"""The systems that CoMesh is measured against: started, measured and ended here, all on loopback.

    from peers import MEASURES, Effort
    for result in MEASURES["etcd"](Effort()): ...

or `python -m peers` from `benchmarks/`. What each figure means is in docs/benchmarks.md. Every module has one
context manager that starts its system and ends it again (`etcd_cluster`, `zookeeper_ensemble`, `serf_agents`)
and one function that measures it; `stage.py` is what they share. A system that is missing and cannot be
installed is a MissingError that says what to do.
"""

from collections.abc import Callable, Iterator
from typing import Final

from peers import etcd, etcd_grpc, serf, zookeeper
from peers.results import Effort, Result, rate_ratio, ratio, table
from peers.stage import MissingError

MEASURES: Final[dict[str, Callable[[Effort], Iterator[Result]]]] = {
    "etcd": etcd.measure,
    "etcd-grpc": etcd_grpc.measure,
    "zookeeper": zookeeper.measure,
    "serf": serf.measure,
}

__all__ = ["MEASURES", "Effort", "MissingError", "Result", "rate_ratio", "ratio", "table"]
