"""`make_plan`: clusters, anchors and first members, computed once per deployment version.

Rules:
- clusters are named c1, c2, ... and a name is never given twice; the group `deployment` is always there;
- planning is sticky: a device that the previous plan had keeps its cluster, wherever it is now. New ones,
  in order of their ids, go to the cluster with room whose mean place is nearest (policy random: whose
  hash with the device is lowest); where none has room a new cluster begins, which then has room. A
  cluster without devices vanishes;
- the anchor of a routine is the device with the lowest hash among those that it touches (paper, section
  3.6: "a random device it touches"), and a routine that the previous plan had stays in its cluster as
  long as it touches a device there;
- the first members of a group are selected for epoch 0 with all nodes alive and an empty table, when the
  group appears, and are kept for ever (protocol, section 4).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from comesh.core.arithmetic import FARTHEST_MM, arithmetic_for, point_of, squared
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import (
    Cluster,
    Locality,
    Plan,
    PlannedDevice,
    PlannedNode,
    PlannedRoutine,
    SelectionSettings,
)
from comesh.core.selection.clustering import clusters_by_hash, clusters_by_place
from comesh.core.selection.hashing import chain, id_hash
from comesh.core.selection.policies import PolicyError
from comesh.core.selection.selector import Selector


class PlanningError(ValueError):
    """A deployment that no plan can be made for; says what is wrong with it."""


def make_plan(
    version: int,
    settings: SelectionSettings,
    nodes: Sequence[PlannedNode],
    devices: Sequence[PlannedDevice],
    routines: Sequence[PlannedRoutine],
    *,
    previous: Plan | None = None,
) -> Plan:
    """The plan of a deployment version. previous is the plan of the version before, if there is one."""
    nodes = tuple(sorted(nodes, key=lambda node: node.id))
    devices = tuple(sorted(devices, key=lambda device: device.id))
    routines = tuple(sorted(routines, key=lambda routine: routine.id))
    _check(settings, nodes, devices, routines)
    if previous is None:
        clusters, groups_made = _first_clusters(settings, devices)
    else:
        clusters, groups_made = _sticky_clusters(settings, devices, previous)
    cluster_of = {device: group for group, members in clusters.items() for device in members}
    anchors = {
        routine.id: _anchor(routine, cluster_of, _cluster_of_routine(routine.id, previous), settings.seed)
        for routine in routines
    }
    anchored: dict[GroupId, list[RoutineId]] = {group: [] for group in clusters}
    for routine in routines:
        anchored[cluster_of[anchors[routine.id]]].append(routine.id)
    plan = Plan(
        version=version,
        settings=settings,
        nodes=nodes,
        devices=devices,
        routines=routines,
        clusters=tuple(
            Cluster(group=group, devices=tuple(sorted(clusters[group])), routines=tuple(anchored[group]))
            for group in sorted(clusters)
        ),
        anchors=anchors,
        genesis={},
        spacing_mm=_spacing_mm(nodes),
        groups_made=groups_made,
    )
    return replace(plan, genesis=_genesis(plan, previous))


def _first_clusters(
    settings: SelectionSettings, devices: Sequence[PlannedDevice]
) -> tuple[dict[GroupId, list[DeviceId]], int]:
    """The clusters of a deployment without a past, and how many there are."""
    if settings.clusters is Locality.LOCALITY:
        found = clusters_by_place([point_of(device.place) for device in devices], settings.cluster_size)
    else:
        words = [id_hash("device", device.id) for device in devices]
        found = clusters_by_hash(words, settings.cluster_size, settings.seed)
    return {
        _group_name(number): [devices[row].id for row in rows] for number, rows in enumerate(found, 1)
    }, len(found)


def _sticky_clusters(
    settings: SelectionSettings, devices: Sequence[PlannedDevice], previous: Plan
) -> tuple[dict[GroupId, list[DeviceId]], int]:
    """The clusters of the previous plan without what left and with what is new."""
    place_of = {device.id: device.place for device in devices}
    clusters: dict[GroupId, list[DeviceId]] = {}
    sums: dict[GroupId, list[int]] = {}
    for cluster in previous.clusters:
        kept = [device for device in cluster.devices if device in place_of]
        if kept:
            clusters[cluster.group] = kept
            sums[cluster.group] = [
                sum(axis) for axis in zip(*(point_of(place_of[device]) for device in kept), strict=True)
            ]
    known = {device for members in clusters.values() for device in members}
    groups_made = previous.groups_made
    for device in devices:
        if device.id in known:
            continue
        point = point_of(device.place)
        roomy = [group for group in sorted(clusters) if len(clusters[group]) < settings.cluster_size]
        if not roomy:
            groups_made += 1
            group = _group_name(groups_made)
        elif settings.clusters is Locality.RANDOM:
            group = _lowest_group(roomy, device.id, settings.seed)
        else:
            group = min(
                roomy, key=lambda one: squared([total // len(clusters[one]) for total in sums[one]], point)
            )
        clusters.setdefault(group, []).append(device.id)
        sums[group] = [total + at for total, at in zip(sums.get(group, (0, 0, 0)), point, strict=True)]
    return clusters, groups_made


def _spacing_mm(nodes: Sequence[PlannedNode]) -> int:
    arithmetic = arithmetic_for(len(nodes))
    return arithmetic.mean_spacing_mm(arithmetic.places([point_of(node.place) for node in nodes]))


def _group_name(number: int) -> GroupId:
    return GroupId(f"c{number}")


def _lowest_group(groups: Iterable[GroupId], device: DeviceId, seed: int) -> GroupId:
    word = id_hash("device", device)
    return min(groups, key=lambda group: (chain(seed, 0, id_hash("group", group), word), group))


def _cluster_of_routine(routine: RoutineId, previous: Plan | None) -> GroupId | None:
    if previous is None:
        return None
    return next((cluster.group for cluster in previous.clusters if routine in cluster.routines), None)


def _anchor(
    routine: PlannedRoutine, cluster_of: dict[DeviceId, GroupId], group_before: GroupId | None, seed: int
) -> DeviceId:
    """The touched device with the lowest hash, in the cluster where the routine was if it touches that."""
    stayed = [device for device in routine.touches if cluster_of[device] == group_before]
    word = id_hash("routine", routine.id)
    return min(
        stayed or routine.touches,
        key=lambda device: (chain(seed, 0, word, id_hash("device", device)), device),
    )


def _genesis(plan: Plan, previous: Plan | None) -> dict[GroupId, tuple[NodeId, ...]]:
    """First members: those of the previous plan for groups that it had, selected for new ones."""
    selector = Selector(plan)
    before = {} if previous is None else previous.genesis
    try:
        view = selector.at(0, selector.node_ids, {})
        return {group: before.get(group) or view.members(group) for group in selector.groups}
    except PolicyError as error:
        raise PlanningError(str(error)) from error


def _check(
    settings: SelectionSettings,
    nodes: Sequence[PlannedNode],
    devices: Sequence[PlannedDevice],
    routines: Sequence[PlannedRoutine],
) -> None:
    """Refuse what would overflow or has no answer."""
    if not nodes:
        raise PlanningError("a deployment needs at least one node")
    for kind, ids in (
        ("node", [node.id for node in nodes]),
        ("device", [device.id for device in devices]),
        ("routine", [routine.id for routine in routines]),
    ):
        twice = next((one for one, other in pairwise(ids) if one == other), None)
        if twice is not None:
            raise PlanningError(f"{kind} {twice!r} is there twice")
    for name, place in [(node.id, node.place) for node in nodes] + [(one.id, one.place) for one in devices]:
        if max(abs(place.x_mm), abs(place.y_mm), abs(place.z_mm)) > FARTHEST_MM:
            raise PlanningError(f"{name!r} is more than {FARTHEST_MM // 1_000_000} km from the origin")
    known = {device.id for device in devices}
    for routine in routines:
        if not routine.touches:
            raise PlanningError(f"routine {routine.id!r} touches no device")
        for device in routine.touches:
            if device not in known:
                raise PlanningError(f"routine {routine.id!r} touches the unknown device {device!r}")
    _check_settings(settings)


def _check_settings(settings: SelectionSettings) -> None:
    lsh = settings.lsh
    for name, number, low, high in (
        ("f", settings.f, 0, 50),
        ("cluster_size", settings.cluster_size, 1, 10_000),
        ("lsh.m", lsh.m, 1, 16),
        ("lsh.l", lsh.l, 1, 16),
        ("lsh.r_milli", lsh.r_milli, 1, 1_000_000),
        ("lsh.jitter_milli", lsh.jitter_milli, 0, 1_000),
    ):
        if not low <= number <= high:
            raise PlanningError(f"{name} is {number}; it can be from {low} to {high}")
