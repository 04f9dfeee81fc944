"""Tests of plans: clusters within their cap, kept assignments, and names that are never reused."""

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from selection_plans import device, grid, node, plans, routine, settings

from comesh.core.arithmetic import Point, mean_point, point_of, squared
from comesh.core.ids import DeviceId, GroupId
from comesh.core.plan import (
    Locality,
    Lsh,
    Plan,
    PlannedDevice,
    PlannedNode,
    PlannedRoutine,
    SelectionSettings,
)
from comesh.core.selection import PlanningError, make_plan
from comesh.core.selection.clustering import clusters_by_place


def cluster_of(plan: Plan) -> dict[DeviceId, GroupId]:
    return {device: cluster.group for cluster in plan.clusters for device in cluster.devices}


def inertia(points: list[Point], clusters: list[list[int]]) -> int:
    """The sum of squared distances to the clusters' means."""
    means = [mean_point(points[row] for row in rows) for rows in clusters]
    return sum(squared(points[row], mean) for rows, mean in zip(clusters, means, strict=True) for row in rows)


@limits(max_examples=60, deadline=None)
@given(plans())
def test_every_device_is_in_one_cluster_and_none_is_too_large(plan: Plan) -> None:
    clustered = [device for cluster in plan.clusters for device in cluster.devices]
    assert sorted(clustered) == [device.id for device in plan.devices]
    sizes = [len(cluster.devices) for cluster in plan.clusters]
    assert max(sizes) <= plan.settings.cluster_size
    assert min(sizes) >= 1
    assert plan.groups_made == len(sizes) <= -(-len(plan.devices) // plan.settings.cluster_size)


@pytest.mark.parametrize("count", (250, 500, 1000))
def test_clusters_of_a_grid_are_full_and_compact(count: int) -> None:
    """Not a third wider than boxes of 3 x 3 x 2.8, which no grid can be cut into."""
    places = [point_of(one.place) for one in grid(count, 0)[1]]
    near = clusters_by_place(places, 25)
    assert [len(rows) for rows in near] == [25] * (count // 25)
    box_mm2 = 1000**2 * (2 * (3**2 - 1) + 2.8**2 - 1) / 12
    assert inertia(places, near) / count < 4 / 3 * box_mm2


def test_k_means_finds_clusters_that_are_there() -> None:
    """Rooms of uneven size, whose devices' ids are mixed: halving alone would cut through them."""
    rooms = [(0, 0)] * 5 + [(50_000, 0)] * 8 + [(0, 70_000)] * 7
    places = [device(f"d{i * 7 % 20:02}", x + i * 10, y + i) for i, (x, y) in enumerate(rooms)]
    plan = make_plan(1, SelectionSettings(cluster_size=8), [node("n")], places, [])
    found = {frozenset(cluster.devices) for cluster in plan.clusters}
    assert found == {frozenset(one.id for one in part) for part in (places[:5], places[5:13], places[13:])}


def test_random_clusters_are_even_and_depend_on_the_seed() -> None:
    devices = grid(250, 0)[1]
    made = [
        make_plan(1, SelectionSettings(seed=seed, clusters=Locality.RANDOM), [node("n")], devices, [])
        for seed in (1, 2)
    ]
    assert {len(cluster.devices) for cluster in made[0].clusters} == {25}
    assert made[0].clusters != made[1].clusters


@limits(max_examples=60, deadline=None)
@given(plans(), settings(), st.data())
def test_existing_devices_keep_their_cluster(
    before: Plan, changed: SelectionSettings, data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(before.devices), unique=True))
    new = [device(f"e{i}", 400 * i, 3 * i * i) for i in range(data.draw(st.integers(0, 12)))]
    after = make_plan(2, changed, before.nodes, [*kept, *new], [], previous=before)
    was, now = cluster_of(before), cluster_of(after)
    for one in kept:
        assert now[one.id] == was[one.id]
    for cluster in after.clusters:
        grew = len(cluster.devices) > sum(one.id in cluster.devices for one in kept)
        assert not grew or len(cluster.devices) <= changed.cluster_size
        if cluster.group in before.genesis:
            assert after.genesis[cluster.group] == before.genesis[cluster.group]
        else:
            assert int(cluster.group[1:]) > before.groups_made
    assert after.groups_made >= before.groups_made


def test_a_new_device_goes_to_the_nearest_cluster_with_room() -> None:
    settings = SelectionSettings(cluster_size=2)
    first = make_plan(1, settings, [node("n")], [device("a", 0), device("b", 10), device("c", 9000)], [])
    assert {(one.group, one.devices) for one in first.clusters} == {("c1", ("a", "b")), ("c2", ("c",))}
    second = make_plan(2, settings, first.nodes, [*first.devices, device("d", 20)], [], previous=first)
    assert cluster_of(second)[DeviceId("d")] == "c2"
    third = make_plan(3, settings, first.nodes, [*second.devices, device("e", 20)], [], previous=second)
    assert cluster_of(third)[DeviceId("e")] == "c3"


def test_the_name_of_a_vanished_cluster_is_never_used_again() -> None:
    settings = SelectionSettings(cluster_size=1)
    first = make_plan(1, settings, [node("n")], [device("a"), device("b", 9)], [])
    second = make_plan(2, settings, first.nodes, [device("a")], [], previous=first)
    assert [one.group for one in second.clusters] == ["c1"]
    third = make_plan(3, settings, first.nodes, [device("a"), device("b", 9)], [], previous=second)
    assert [one.group for one in third.clusters] == ["c1", "c3"]
    assert set(third.genesis) == {"c1", "c3", "deployment"}


def test_genesis_is_kept_when_nodes_come_and_go() -> None:
    nodes = [node(f"n{i}", 1000 * i) for i in range(5)]
    first = make_plan(1, SelectionSettings(), nodes, [device("a")], [])
    second = make_plan(2, SelectionSettings(), [node("other"), *nodes[2:]], [device("a")], [], previous=first)
    assert second.genesis == first.genesis


def test_routines_are_anchored_and_stay_where_they_touch() -> None:
    settings = SelectionSettings(cluster_size=1)
    devices = [device("a"), device("b", 9000), device("c", 20_000)]
    first = make_plan(1, settings, [node("n")], devices, [routine("night", "a", "b", "c")])
    anchor = first.anchors[routine("night").id]
    home = cluster_of(first)[anchor]
    assert {one.group: one.routines for one in first.clusters}[home] == ("night",)
    others = [one.id for one in devices if one.id != anchor]
    for touched in ((anchor,), (anchor, others[0]), (anchor, others[1])):
        again = make_plan(2, settings, first.nodes, devices, [routine("night", *touched)], previous=first)
        assert again.anchors["night"] == anchor
    moved = make_plan(2, settings, first.nodes, devices, [routine("night", *others)], previous=first)
    assert moved.anchors["night"] in others


def test_anchors_are_spread_over_what_routines_touch() -> None:
    devices = [device(f"d{i}", 1000 * i) for i in range(5)]
    routines = [routine(f"r{i}", *(one.id for one in devices)) for i in range(200)]
    plan = make_plan(1, SelectionSettings(), [node("n")], devices, routines)
    counts = [list(plan.anchors.values()).count(one.id) for one in devices]
    assert min(counts) > 20


@pytest.mark.parametrize(
    ("nodes", "devices", "routines", "changes", "what"),
    [
        ([], [], [], {}, "at least one node"),
        ([node("n"), node("n")], [], [], {}, "node 'n' is there twice"),
        ([node("n")], [device("a", 100_000_001)], [], {}, "'a' is more than 100 km from the origin"),
        ([node("n", 0, -100_000_001)], [], [], {}, "'n' is more than 100 km"),
        ([node("n")], [], [routine("r", "a")], {}, "unknown device 'a'"),
        ([node("n")], [], [routine("r")], {}, "touches no device"),
        ([node("n")], [], [], {"f": -1}, "f is -1; it can be from 0 to 50"),
        ([node("n")], [], [], {"lsh": Lsh(r_milli=0)}, "lsh.r_milli is 0"),
    ],
)
def test_a_document_without_a_plan_is_refused_with_the_reason(
    nodes: list[PlannedNode],
    devices: list[PlannedDevice],
    routines: list[PlannedRoutine],
    changes: dict[str, int],
    what: str,
) -> None:
    with pytest.raises(PlanningError, match=what):
        make_plan(1, SelectionSettings(**changes), nodes, devices, routines)


def test_a_deployment_without_devices_has_a_plan() -> None:
    plan = make_plan(1, SelectionSettings(), [node("a"), node("b"), node("c")], [], [])
    assert plan.clusters == ()
    assert set(plan.genesis) == {"deployment"}
