"""The result of a run, as data: the CLI prints it, `--json` writes it, experiments read it."""

import msgspec

from comesh.core.ids import GroupId, NodeId
from comesh.sim.fault_model import Fault
from comesh.sim.group_watch import Span, Split
from comesh.sim.lives import Life, LifeChange
from comesh.sim.protocol_watch import ProtocolReport
from comesh.sim.traffic import Amount, Totals, Traffic
from comesh.sim.watch import Detection
from comesh.sim.world import World


class KindTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """Traffic of one kind of message: end to end (sent, received) and hop by hop (transmitted)."""

    kind: str
    sent: Amount
    received: Amount
    relayed: Amount
    transmitted: Amount
    lost: dict[str, int]
    """Lost messages by reason."""


class NodeTraffic(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    sent: Amount
    received: Amount
    relayed: Amount


class Spread(msgspec.Struct, frozen=True):
    """Distribution over the nodes, in bytes per simulated second."""

    mean: float
    median: float
    most: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    topology: str
    seed: int
    stations: int
    nodes: int
    devices: int
    simulated_s: float
    cpu_s: float
    events: int
    traffic: tuple[KindTraffic, ...]
    end_to_end_bytes_per_s: Spread
    """Bytes that a node sends."""
    hop_by_hop_bytes_per_s: Spread
    """Bytes that a node transmits: those that it sends and those that it relays."""
    per_node: tuple[NodeTraffic, ...]
    detections: tuple[Detection, ...]
    false_suspicions: int
    false_deaths: int
    stopped: tuple[Life, ...]
    """Processes that ended themselves, and why."""
    trace_digest: str | None
    faults: tuple[Fault, ...] = ()
    """The schedule of faults that was run, if the caller set it, as `comesh sim` does."""
    without_majority: dict[GroupId, tuple[Span, ...]] | None = None
    """When each group had no majority; None: there are no groups, or they were not watched."""
    unserved: dict[GroupId, tuple[Span, ...]] | None = None
    """When each group was not served; None likewise."""
    splits: tuple[Split, ...] = ()
    """When the running nodes could not all reach each other; empty also if they were not watched."""
    protocol: ProtocolReport | None = None
    """What groups and runs did; None: membership only, or not watched."""


def traffic_by_kind(traffic: Traffic) -> tuple[KindTraffic, ...]:
    lost: dict[str, dict[str, int]] = {}
    for (kind, why), count in traffic.losses().items():
        lost.setdefault(kind, {})[why] = count
    rows = []
    for kind in traffic.kinds:
        totals = traffic.total(kind=kind)
        if totals != Totals() or kind in lost:
            rows.append(
                KindTraffic(
                    kind=kind,
                    sent=totals.sent,
                    received=totals.received,
                    relayed=totals.relayed,
                    transmitted=totals.transmitted,
                    lost=lost.get(kind, {}),
                )
            )
    return tuple(rows)


def traffic_by_node(world: World) -> tuple[NodeTraffic, ...]:
    rows = []
    for node, station in sorted(world.topology.nodes.items()):
        totals = world.traffic.total(station=station)
        rows.append(
            NodeTraffic(node=node, sent=totals.sent, received=totals.received, relayed=totals.relayed)
        )
    return tuple(rows)


def spread(amounts_bytes: list[int], seconds: float) -> Spread:
    if not amounts_bytes or seconds <= 0:
        return Spread(0.0, 0.0, 0.0)
    rates = sorted(amount / seconds for amount in amounts_bytes)
    middle = len(rates) // 2
    median = rates[middle] if len(rates) % 2 else (rates[middle - 1] + rates[middle]) / 2
    return Spread(sum(rates) / len(rates), median, rates[-1])


def stops(world: World) -> tuple[Life, ...]:
    return tuple(life for life in world.lives if life.change is LifeChange.STOPPED)
