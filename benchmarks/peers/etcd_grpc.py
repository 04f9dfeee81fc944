"""etcd over gRPC: the same pairs against the same leader, through the same lock service, without the gateway.

grpcio lives in an environment of its own, so `etcd_grpc_client.py` runs there, as a process of its own. This
client is slower than one in Go: the figure says what a Python program gets.
"""

from collections.abc import Iterator

from peers.clients import run_client
from peers.etcd import LEASE_S, etcd_cluster
from peers.results import Effort, Result, result
from peers.stage import LOOPBACK, python_with, scratch


def measure(effort: Effort) -> Iterator[Result]:
    with scratch() as directory:
        python = python_with(directory, "grpcio")
        with etcd_cluster() as leader:
            address = f"{LOOPBACK}:{leader.port}"
            for workers in (1, effort.at_once):
                asked = [address, LEASE_S, effort.warm_up, effort.count, workers]
                told = "" if workers == 1 else f", {workers} at once"
                yield result(
                    f"etcd, gRPC: lock + unlock{told}", "ms", *run_client(python, "etcd_grpc_client", asked)
                )
