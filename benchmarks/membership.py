"""Membership in simulation: how soon a crash is known, false alarms, and traffic; Medley beside SWIM.

Grid of nodes at unit spacing, 10 ms per hop, 1 s period. Loss is end to end, of each message. SWIM is the
same code with uniform targets and no wards. Crashes come at random instants, one at a time; each crashed
node restarts later. "first" and "last" are seconds from the crash until the first and the last of the
others has declared it dead. False deaths count every (observer, living subject) belief.

    python benchmarks/membership.py [--quick] [--json]
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from comesh.core.draws import Draws
from comesh.core.membership import MembershipSettings
from comesh.core.membership.settings import SWIM
from comesh.sim import Simulation
from comesh.sim.faults import Crash, Restart, Schedule
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.world import WorldSettings

CRASH_EVERY_MS = 20_000.0
CRASH_LASTS_MS = 12_000.0
WARM_MS = 15_000.0
BAR_SECONDS = 4.0
"""All of ten nodes know of a crash within this; Serf took 4.3 to 9 on this class of machine."""


class Size(NamedTuple):
    nodes: int
    calm_minutes: float
    crashes: int
    seeds: int


FULL = (Size(10, 60, 40, 5), Size(100, 10, 40, 2), Size(1000, 2, 12, 1))
QUICK = (Size(10, 10, 20, 1), Size(100, 2, 10, 1))
LOSSES = (0.0, 0.01, 0.05, 0.1)


class Row(msgspec.Struct):
    protocol: str
    nodes: int
    loss: float
    crashes: int
    first_median_s: float
    first_worst_s: float
    last_median_s: float
    last_worst_s: float
    undetected: int
    false_deaths_per_node_hour: float
    false_suspicions_per_node_hour: float
    bytes_per_node_s: float
    hop_bytes_per_node_s: float
    cpu_s: float


def simulation(
    topology: Topology, settings: MembershipSettings, loss: float, seed: int, faults: Schedule | None
) -> Simulation:
    world = WorldSettings(radio=RadioSettings(loss_per_message=loss), start_spread_ms=0.0)
    return Simulation(topology, seed=seed, settings=world, membership=settings, joined=True, faults=faults)


def one_crash_at_a_time(topology: Topology, count: int, seed: int) -> Schedule:
    draws = Draws(seed)
    faults: list[Crash | Restart] = []
    for turn in range(count):
        at_ms = WARM_MS + CRASH_EVERY_MS * turn + draws.between(0, 4000)
        node = draws.choice(sorted(topology.nodes))
        faults += [Crash(at_ms=at_ms, node=node), Restart(at_ms=at_ms + CRASH_LASTS_MS, node=node)]
    return Schedule(tuple(faults))


def measure(protocol: str, settings: MembershipSettings, size: Size, loss: float) -> Row:
    began = time.process_time()
    firsts: list[float] = []
    lasts: list[float] = []
    undetected = 0
    for seed in range(size.seeds):
        topology = make_topology(Shape.GRID, devices=size.nodes, smart=1.0, seed=seed)
        crashing = simulation(
            topology, settings, loss, seed, one_crash_at_a_time(topology, size.crashes // size.seeds, seed)
        )
        crashing.run(seconds=(WARM_MS + CRASH_EVERY_MS * size.crashes / size.seeds) / 1000)
        for crash in crashing.report().detections:
            if crash.known_by < crash.of or crash.first_after_ms is None or crash.last_after_ms is None:
                undetected += 1
                continue
            firsts.append(crash.first_after_ms / 1000)
            lasts.append(crash.last_after_ms / 1000)
    topology = make_topology(Shape.GRID, devices=size.nodes, smart=1.0, seed=99)
    calm = simulation(topology, settings, loss, 99, None)
    calm.run(minutes=size.calm_minutes)
    report = calm.report()
    node_hours = size.nodes * size.calm_minutes / 60
    return Row(
        protocol=protocol,
        nodes=size.nodes,
        loss=loss,
        crashes=len(lasts) + undetected,
        first_median_s=statistics.median(firsts),
        first_worst_s=max(firsts),
        last_median_s=statistics.median(lasts),
        last_worst_s=max(lasts),
        undetected=undetected,
        false_deaths_per_node_hour=report.false_deaths / node_hours,
        false_suspicions_per_node_hour=report.false_suspicions / node_hours,
        bytes_per_node_s=report.end_to_end_bytes_per_s.mean,
        hop_bytes_per_node_s=report.hop_by_hop_bytes_per_s.mean,
        cpu_s=time.process_time() - began,
    )


def rows(sizes: tuple[Size, ...]) -> Iterator[Row]:
    for size in sizes:
        for loss in LOSSES:
            yield measure("medley", MembershipSettings(), size, loss)
            yield measure("swim", SWIM, size, loss)


HEADINGS = (
    "protocol nodes loss  crashes | first known, s | last known, s | miss | deaths, suspicions "
    "| bytes/s/node  |\n"
    "                              | median   worst | median  worst |      | per node-hour, false "
    "|  e2e  by hop | cpu s"
)


def show(row: Row) -> None:
    cells = (
        f"{row.protocol:8} {row.nodes:5} {row.loss:5.0%} {row.crashes:8}",
        f"{row.first_median_s:6.2f} {row.first_worst_s:7.2f}",
        f"{row.last_median_s:6.2f} {row.last_worst_s:6.2f}",
        f"{row.undetected:4}",
        f"{row.false_deaths_per_node_hour:8.3f} {row.false_suspicions_per_node_hour:11.1f}",
        f"{row.bytes_per_node_s:4.0f} {row.hop_bytes_per_node_s:7.0f}",
        f"{row.cpu_s:5.1f}",
    )
    print(" | ".join(cells), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="10 and 100 nodes only, fewer crashes")
    arguments.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = arguments.parse_args()
    sizes = QUICK if options.quick else FULL
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(list(rows(sizes)))).decode())
        return
    print(HEADINGS)
    worst = 0.0
    for row in rows(sizes):
        show(row)
        if row.protocol == "medley" and row.nodes == 10:
            worst = max(worst, row.last_worst_s)
    print(
        f"\nbar: ten nodes, all know of a crash within {BAR_SECONDS} s: worst {worst:.2f} s, "
        f"{'met' if worst < BAR_SECONDS else 'NOT met'}"
    )


if __name__ == "__main__":
    main()
