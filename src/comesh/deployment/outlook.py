"""What a plan means for the next epochs: who will be where, how busy, and what an outage would stop.

Pure functions of a plan. Epoch 0 is the genesis that the plan pins; each later epoch is selected with the
one before as its table, as the nodes themselves will do if nobody fails in between.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

import msgspec

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import DEPLOYMENT, Plan
from comesh.core.selection import Selector

WARNED_EPOCHS = 10
"""How far ahead validation looks for outages that would stop a cluster."""

Members = dict[GroupId, tuple[NodeId, ...]]
"""Each group's members in rank order, in one epoch."""


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How much one node looks after, averaged over epochs. `deployment` has no devices and is left out."""

    node: NodeId
    led_devices: float
    """Devices that it senses and commands as a leader, at a time."""
    held_devices: float
    """Devices whose state it holds as a member, the leader included, at a time."""
    member_share: float
    """The share of epochs in which it is a member of any cluster's group."""
    groups_at_most: int
    """The most groups that it is a member of at once."""


class DomainLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What losing one power domain does to which groups, in which epochs."""

    domain: str
    nodes: tuple[NodeId, ...]
    stops: dict[GroupId, tuple[int, ...]]
    """Epochs in which fewer than a majority of the members would be left: the group waits for power."""
    leaderless: dict[GroupId, tuple[int, ...]]
    """Epochs in which the majority is left but the leader is not: the group elects another."""


def forecast(plan: Plan, epochs: int, without: Collection[NodeId] = ()) -> list[Members]:
    """Each group's members in epochs 0, 1, ... epochs - 1; from epoch 1 on without some nodes."""
    selector = Selector(plan)
    alive = [node for node in selector.node_ids if node not in without]
    ahead = [{group: plan.genesis[group] for group in selector.groups}]
    for epoch in range(1, epochs):
        ahead.append(selector.select_all(epoch, alive, ahead[-1]))
    return ahead[:epochs]


def node_loads(plan: Plan, ahead: Sequence[Members]) -> tuple[NodeLoad, ...]:
    """The load of every node over the epochs of a forecast, by id."""
    led = {node.id: [0] * len(ahead) for node in plan.nodes}
    held = {node.id: [0] * len(ahead) for node in plan.nodes}
    groups = {node.id: [0] * len(ahead) for node in plan.nodes}
    for epoch, members_of in enumerate(ahead):
        for cluster in plan.clusters:
            members = [node for node in members_of[cluster.group] if node in led]
            for node in members:
                held[node][epoch] += len(cluster.devices)
                groups[node][epoch] += 1
            for leader in members[:1]:
                led[leader][epoch] += len(cluster.devices)
    return tuple(
        NodeLoad(
            node=node.id,
            led_devices=fmean(led[node.id]),
            held_devices=fmean(held[node.id]),
            member_share=fmean(count > 0 for count in groups[node.id]),
            groups_at_most=max(groups[node.id]),
        )
        for node in plan.nodes
    )


def domain_losses(plan: Plan, ahead: Sequence[Members]) -> tuple[DomainLoss, ...]:
    """What the loss of each power domain that the plan names would do, by name."""
    nodes_of: dict[str, list[NodeId]] = {}
    for node in plan.nodes:
        if node.power_domain is not None:
            nodes_of.setdefault(node.power_domain, []).append(node.id)
    return tuple(_loss(domain, tuple(nodes_of[domain]), ahead) for domain in sorted(nodes_of))


def domain_warnings(plan: Plan) -> list[str]:
    """One sentence per power domain whose outage would stop a group, at the start or soon after."""
    warnings = []
    for loss in domain_losses(plan, forecast(plan, WARNED_EPOCHS)):
        if loss.stops:
            share = f"{len(loss.nodes)} of {len(plan.nodes)} nodes"
            stopped = _stopped(loss.stops)
            warnings.append(
                f"an outage of power domain {loss.domain!r} ({share}) would stop {stopped}, until the power "
                "is back; nodes in more power domains, or fewer in this one, prevent that"
            )
    return warnings


def _loss(domain: str, nodes: tuple[NodeId, ...], ahead: Sequence[Members]) -> DomainLoss:
    stops: dict[GroupId, list[int]] = {}
    leaderless: dict[GroupId, list[int]] = {}
    lost = frozenset(nodes)
    for epoch, members_of in enumerate(ahead):
        for group, members in members_of.items():
            left = sum(node not in lost for node in members)
            if left <= len(members) // 2:
                stops.setdefault(group, []).append(epoch)
            elif members[0] in lost:
                leaderless.setdefault(group, []).append(epoch)
    return DomainLoss(domain=domain, nodes=nodes, stops=_frozen(stops), leaderless=_frozen(leaderless))


def _frozen(epochs_of: Mapping[GroupId, list[int]]) -> dict[GroupId, tuple[int, ...]]:
    return {group: tuple(epochs_of[group]) for group in sorted(epochs_of, key=group_order)}


def _stopped(stops: Mapping[GroupId, tuple[int, ...]]) -> str:
    """Which groups stop, in words: those that always do first."""
    always = [group for group, epochs in stops.items() if len(epochs) == WARNED_EPOCHS]
    sometimes = [group for group in stops if group not in always]
    parts = [_named(always)] if always else []
    if sometimes:
        parts.append(f"{_named(sometimes)} in some epochs")
    return " and ".join(parts)


def _named(groups: Sequence[GroupId]) -> str:
    clusters = [group for group in groups if group != DEPLOYMENT]
    parts = []
    if clusters:
        parts.append(("cluster " if len(clusters) == 1 else "clusters ") + ", ".join(clusters))
    if DEPLOYMENT in groups:
        parts.append("changes of the deployment")
    return " and ".join(parts)


def group_order(group: GroupId) -> tuple[int, str]:
    """c2 before c10, and `deployment` last."""
    number = group.removeprefix("c")
    return (int(number), "") if number.isdigit() else (1 << 62, group)
