"""Looks ahead with a plan: who will be where, how busy, and what an outage would stop.

Pure functions of a plan. Epoch 0 is the genesis that the plan pins; each later epoch is selected with the one
before as its table, as the nodes themselves will do if nobody fails in between.

A device has no power domain of its own: only one that a node hosts (`on`) goes dark, with that node.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import DEPLOYMENT, Plan
from comesh.core.selection import Selector
from comesh.deployment.model import Deployment

WARNED_EPOCHS = 10
"""Number of epochs in which validation looks for outages that would stop a cluster."""

Members = dict[GroupId, tuple[NodeId, ...]]
"""Each group's members in rank order, in one epoch."""

Hosts = Mapping[DeviceId, NodeId]
"""Which node hosts a device; those that no node hosts are not in it."""


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The load of one node, averaged over epochs. `deployment` has no devices and is left out."""

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
    """The effect of losing one power domain: on which groups, in which epochs."""

    domain: str
    nodes: tuple[NodeId, ...]
    stops: dict[GroupId, tuple[int, ...]]
    """Epochs in which fewer than a majority of the members would be left: the group waits for power."""
    leaderless: dict[GroupId, tuple[int, ...]]
    """Epochs in which the majority is left but the leader is not: the group elects another."""
    dark: tuple[DeviceId, ...] = ()
    """Devices that its nodes host: nobody reaches them until the power is back."""
    routines_hit: tuple[RoutineId, ...] = ()
    """Routines that are triggered by those devices or command them."""


class Outage(NamedTuple):
    """A loss that stops a group, in words, and what would prevent it."""

    loss: DomainLoss
    what: str
    fix: str


class ShortGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that cannot act in one epoch: at most half of its members are left."""

    group: GroupId
    epoch: int
    left: int
    members: int


def hosts_of(deployment: Deployment) -> dict[DeviceId, NodeId]:
    """Which devices a node hosts, by a wire or as part of it."""
    return {
        DeviceId(name): NodeId(device.on)
        for name, device in sorted(deployment.devices.items())
        if device.on is not None
    }


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


def short_groups(ahead: Sequence[Members], gone: Collection[NodeId]) -> tuple[ShortGroup, ...]:
    """The groups of a forecast without some nodes that have no majority left, from epoch 1 on."""
    short = []
    for group in sorted(ahead[0], key=group_order):
        for epoch, members_of in enumerate(ahead[1:], start=1):
            members = members_of[group]
            left = sum(node not in gone for node in members)
            if left <= len(members) // 2:
                short.append(ShortGroup(group=group, epoch=epoch, left=left, members=len(members)))
    return tuple(short)


def short_warnings(short: Sequence[ShortGroup]) -> list[str]:
    """Returns one sentence per group and number of members left."""
    epochs_of: dict[tuple[GroupId, int, int], list[int]] = {}
    for one in short:
        epochs_of.setdefault((one.group, one.left, one.members), []).append(one.epoch)
    return [
        f"{group} cannot act in {'epoch' if len(epochs) == 1 else 'epochs'} {spans(epochs)}: "
        f"{left} of {members} members left"
        for (group, left, members), epochs in epochs_of.items()
    ]


def domain_losses(plan: Plan, ahead: Sequence[Members], hosts: Hosts | None = None) -> tuple[DomainLoss, ...]:
    """Returns the effect of each power domain's loss, by name; with the devices that go dark where it is
    known which nodes host them."""
    nodes_of: dict[str, list[NodeId]] = {}
    for node in plan.nodes:
        if node.power_domain is not None:
            nodes_of.setdefault(node.power_domain, []).append(node.id)
    losses = [_loss(domain, tuple(nodes_of[domain]), ahead) for domain in sorted(nodes_of)]
    return tuple(_with_devices(plan, loss, hosts or {}) for loss in losses)


def lone_losses(plan: Plan, ahead: Sequence[Members], hosts: Hosts) -> tuple[DomainLoss, ...]:
    """Returns the effect of losing each node that has a domain of its own and hosts devices; the domain is
    the node's name."""
    hosting = set(hosts.values())
    lone = [node.id for node in plan.nodes if node.power_domain is None and node.id in hosting]
    return tuple(_with_devices(plan, _loss(node, (node,), ahead), hosts) for node in lone)


def outages(plan: Plan) -> list[Outage]:
    """The power domains whose outage would stop a group, at the start or soon after."""
    found = []
    for loss in domain_losses(plan, forecast(plan, WARNED_EPOCHS)):
        if loss.stops:
            share = f"{len(loss.nodes)} of {len(plan.nodes)} nodes"
            what = (
                f"an outage of power domain {loss.domain!r} ({share}) would stop {_stopped(loss.stops)}, "
                "until the power is back"
            )
            fix = "nodes in more power domains, or fewer in this one, prevent that"
            found.append(Outage(loss, what, fix))
    return found


def domain_warnings(plan: Plan) -> list[str]:
    """Returns one sentence per power domain whose loss stops a group."""
    return [f"{outage.what}; {outage.fix}" for outage in outages(plan)]


def dark_words(loss: DomainLoss) -> str:
    """`2 devices go dark: smoke, pump; routines hit: fire`; empty where none does."""
    if not loss.dark:
        return ""
    count = "1 device goes" if len(loss.dark) == 1 else f"{len(loss.dark)} devices go"
    hit = f"; routines hit: {', '.join(loss.routines_hit)}" if loss.routines_hit else ""
    return f"{count} dark: {', '.join(loss.dark)}{hit}"


def spans(numbers: Sequence[int]) -> str:
    """`0, 2-4`"""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _with_devices(plan: Plan, loss: DomainLoss, hosts: Hosts) -> DomainLoss:
    dark = tuple(device.id for device in plan.devices if hosts.get(device.id) in loss.nodes)
    hit = tuple(routine.id for routine in plan.routines if not set(dark).isdisjoint(routine.touches))
    return msgspec.structs.replace(loss, dark=dark, routines_hit=hit)


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
