"""Real nodes, measured beside the systems they are compared with, in one run on this machine.

    python benchmarks/nodes.py [locks] [firings] [failover] [detection] [rest] [idle]

All but idle (ten minutes per lease) unless named: about six minutes. Peers are installed with apt-get if we
are root and started on loopback; a peer that is missing leaves its ratios out, and says what to do. What each
figure means: docs/benchmarks.md.
"""

import sys
from collections.abc import Callable, Iterator

from peers import MEASURES, Effort, MissingError, Result, rate_ratio, ratio
from processes import detection, failover, firings, idle, locks, rest
from protocol_rows import Row, at_least, at_most, main_of

EFFORT = Effort()
FAILOVERS = 5
IDLE_MINUTES = 10.0


def of_locks() -> Iterator[Row]:
    alone, together = locks.measure(EFFORT.count, 1), locks.measure(EFFORT.count, EFFORT.at_once)
    yield Row("lock + release, k=3, p50, ms", alone.p50, "", None, _spread(alone))
    yield Row("lock + release, 32 at once, per second", together.per_second or 0.0, "", None)
    for name in ("etcd", "zookeeper", "etcd-grpc"):
        for theirs in _peer(name):
            if theirs.unit == "ms" and "at once" not in theirs.name:
                what = f"times as fast as {theirs.name}"
                told = f"theirs {theirs.p50:.2f} ms"
                bar = None if name == "etcd-grpc" else 2.0
                yield _held(what, ratio(alone, theirs), bar, told)
            elif theirs.per_second is not None:
                what = f"times as many as {theirs.name}"
                bar = None if name == "etcd-grpc" else 1.0
                yield _held(what, rate_ratio(together, theirs), bar, f"theirs {theirs.per_second:.0f}/s")


def of_firings() -> Iterator[Row]:
    for together, max_ms, min_rate in ((True, 2.9, 300.0), (False, 6.0, 150.0)):
        how = "in parallel" if together else "one after the other"
        one = firings.measure(1, together=together)
        many = firings.measure(20, together=together)
        yield at_most(f"firing of five devices {how}, p50, ms", one.p50, max_ms, _spread(one))
        yield at_least(f"firings of five devices {how}, per second", many.per_second or 0.0, min_rate)
    far = firings.measure(1, clusters=5)
    yield Row("firing of five devices in five clusters, p50, ms", far.p50, "", None, _spread(far))


def of_failover() -> Iterator[Row]:
    for lease, max_ms in (("1s", 2000.0), ("250ms", 500.0)):
        took = failover.measure(lease, FAILOVERS)
        what = f"leader killed, next command, lease {lease}, worst of {FAILOVERS}, ms"
        yield at_most(what, took.p99, max_ms, f"median {took.p50:.0f}")


def of_detection() -> Iterator[Row]:
    ours = detection.measure(EFFORT.trials)
    what = f"ten nodes, kill -9, all others know, worst of {EFFORT.trials}, s"
    yield at_most(what, ours.p99, 4.0, f"median {ours.p50:.2f}")
    for theirs in _peer("serf"):
        yield Row(
            "times as fast as Serf, median", ratio(ours, theirs), "", None, f"theirs {theirs.p50:.2f} s"
        )


def of_rest() -> Iterator[Row]:
    found = rest.measure(60.0)
    yield at_most("11 nodes ready, s", found.ready_s, 8.0)
    yield at_most("a node at rest, MiB resident", found.max_memory_mib, 55.0)
    yield at_most(
        "a node at rest, percent of a core", found.mean_cpu_percent, 2.0, f"most {found.max_cpu_percent:.2f}"
    )


def of_idle() -> Iterator[Row]:
    for lease in ("1s", "250ms"):
        elections = idle.measure(lease, IDLE_MINUTES)
        yield at_most(f"elections in {IDLE_MINUTES:.0f} idle minutes, lease {lease}", elections, 0.0)


def _held(what: str, measured: float, bar: float | None, told: str) -> Row:
    return Row(what, measured, "", None, told) if bar is None else at_least(what, measured, bar, told)


def _spread(one: Result) -> str:
    return f"p90 {one.p90:.2f}, p99 {one.p99:.2f}"


def _peer(name: str) -> Iterator[Result]:
    try:
        yield from MEASURES[name](EFFORT)
    except MissingError as missing:
        print(f"{name} is left out: {missing}")


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "locks": of_locks,
    "firings": of_firings,
    "failover": of_failover,
    "detection": of_detection,
    "rest": of_rest,
    "idle": of_idle,
}


USUAL = tuple(name for name in PARTS if name != "idle")


if __name__ == "__main__":
    sys.exit(main_of(PARTS, USUAL))
