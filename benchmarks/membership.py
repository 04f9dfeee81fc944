"""Membership in simulation: how soon a crash is known, false alarms, and traffic; Medley beside SWIM.

Grid of nodes at unit spacing, 10 ms per hop, 1 s period. Loss is end to end, of each message. SWIM is the
same code with uniform targets and no wards. Crashes come at random instants, one at a time; each crashed
node restarts later. "first" and "last" are seconds from the crash until the first and the last of the
others has declared it dead. False deaths count every (observer, living subject) belief.

Then the power domains of the example documents: each is switched off, by itself, once per seed, and the time
is taken in periods until all survivors know of all that are lost. Where the loss cuts survivors off from
each other, only those of the largest part that is still joined are asked: the others have nobody to hear
from, are counted as "cut off", and their domain is held to no bar.

    python benchmarks/membership.py [--quick] [--json]

The exit code is 1 if a bar is missed; a crash that somebody never noticed misses it.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.membership.settings import SWIM
from comesh.deployment.load import load
from comesh.deployment.model import Deployment
from comesh.sim import Simulation
from comesh.sim.building import Building
from comesh.sim.fault_schedules import Schedule
from comesh.sim.faults import Crash, PowerLoss, Restart
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.world_settings import WorldSettings

CRASH_EVERY_MS = 20_000.0
CRASH_LASTS_MS = 12_000.0
WARM_MS = 15_000.0
BAR_SECONDS = 4.0
"""All of ten nodes know of a crash within this; Serf took 4.3 to 9 on this class of machine."""

EXAMPLES = Path(__file__).parent.parent / "examples"
POWER_SEEDS = 6
POWER_BAR_PERIODS = 5.0
"""All survivors know of all nodes of a power domain within this, where the loss cuts nobody off."""
POWER_WAIT_PERIODS = 60
POWER_LOOKS_PER_PERIOD = 10


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
        first_median_s=statistics.median(firsts or [math.inf]),
        first_worst_s=max(firsts, default=math.inf),
        last_median_s=statistics.median(lasts or [math.inf]),
        last_worst_s=max(lasts, default=math.inf),
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


class PowerRow(msgspec.Struct):
    document: str
    domain: str
    lost: int
    nodes: int
    cut_off: int
    periods: list[float]
    """Of each seed, until all knew; those that never came are not in it."""
    undetected: int

    @property
    def met(self) -> bool | None:
        """None: held to no bar."""
        if self.cut_off:
            return None
        return not self.undetected and max(self.periods) <= POWER_BAR_PERIODS


def deployment_of(document: Path) -> Deployment:
    outcome = load(document)
    assert outcome.deployment is not None, f"{document} has errors"
    return outcome.deployment


def joined_survivors(building: Building) -> list[NodeId]:
    """The largest set of running nodes that all reach each other."""
    radio, stations, running = building.world.radio, building.world.topology.nodes, building.running()

    def both_ways(one: NodeId, other: NodeId) -> bool:
        here, there = stations[one], stations[other]
        return radio.reaches(here, there) and radio.reaches(there, here)

    return max(([other for other in running if both_ways(node, other)] for node in running), key=len)


def switch_off(document: Path, domain: str, seed: int) -> tuple[float | None, int]:
    """Periods until all survivors that are joined know, or None; and how many are not joined."""
    building = Building(deployment_of(document), seed=seed)
    period_s = building.deployment.settings.membership_period_ms / 1000
    building.run(WARM_MS / 1000 * period_s + Draws(seed).between(0.0, period_s))
    began_ms = building.world.now_ms
    building.happen(PowerLoss(at_ms=began_ms, domain=domain))
    building.run(0.0)
    lost = set(building.world.topology.power_domains[domain])
    asked = joined_survivors(building)
    cut_off = len(building.running()) - len(asked)
    for _ in range(POWER_WAIT_PERIODS * POWER_LOOKS_PER_PERIOD):
        building.run(period_s / POWER_LOOKS_PER_PERIOD)
        views = building.views()
        if not any(lost & set(views[node]) for node in asked):
            return (building.world.now_ms - began_ms) / 1000 / period_s, cut_off
    return None, cut_off


def power_rows(seeds: int) -> Iterator[PowerRow]:
    for document in sorted(EXAMPLES.glob("*.yaml")):
        topology = Building(deployment_of(document), seed=0).world.topology
        for domain, nodes in sorted(topology.power_domains.items()):
            found = [switch_off(document, domain, seed) for seed in range(seeds)]
            periods = [took for took, _ in found if took is not None]
            yield PowerRow(
                document=document.stem,
                domain=domain,
                lost=len(nodes),
                nodes=len(topology.nodes),
                cut_off=max(cut_off for _, cut_off in found),
                periods=periods,
                undetected=seeds - len(periods),
            )


def show_power(rows: list[PowerRow]) -> None:
    print("\npower domains of the examples: periods until all joined survivors know of all that are lost")
    for row in rows:
        median, worst = statistics.median(row.periods or [math.inf]), max(row.periods, default=math.inf)
        what = f"{row.document}, {row.domain}: {row.lost} of {row.nodes} lost, {row.cut_off} cut off"
        verdict = {True: "ok", False: "MISSED", None: ""}[row.met]
        print(f"{what:62} {median:5.1f} median {worst:5.1f} worst {row.undetected:2} never  {verdict}")
    for name, some in (
        ("nobody cut off", [row for row in rows if not row.cut_off]),
        ("some cut off", [row for row in rows if row.cut_off]),
    ):
        periods = [took for row in some for took in row.periods]
        if periods:
            told = f"{statistics.median(periods):.1f} median, {max(periods):.1f} worst"
            print(f"all domains, {name}: {told}, {sum(row.undetected for row in some)} never")


def missed(rows: list[Row], power: list[PowerRow]) -> list[str]:
    """The bars that were missed, one line each."""
    ten = [row for row in rows if row.protocol == "medley" and row.nodes == 10]
    told = [
        f"ten nodes, loss {row.loss:.0%}: worst {row.last_worst_s:.2f} s, "
        f"{row.undetected} never known to all; the bar is {BAR_SECONDS} s"
        for row in ten
        if row.undetected or row.last_worst_s >= BAR_SECONDS
    ]
    return told + [
        f"{row.document}, {row.domain}: worst {max(row.periods, default=math.inf):.1f} periods, "
        f"{row.undetected} never known to all; the bar is {POWER_BAR_PERIODS} periods"
        for row in power
        if row.met is False
    ]


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


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="10 and 100 nodes only, fewer crashes")
    arguments.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = arguments.parse_args()
    if not options.json:
        print(HEADINGS)
    crashes: list[Row] = []
    for row in rows(QUICK if options.quick else FULL):
        crashes.append(row)
        if not options.json:
            show(row)
    power = list(power_rows(2 if options.quick else POWER_SEEDS))
    wrong = missed(crashes, power)
    if options.json:
        told = {"crashes": crashes, "power_domains": power, "missed": wrong}
        print(msgspec.json.format(msgspec.json.encode(told)).decode())
        return int(bool(wrong))
    show_power(power)
    print("\nbars: " + ("\nMISSED: ".join(["", *wrong]) if wrong else "all met"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
