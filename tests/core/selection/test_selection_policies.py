"""Tests of registered policies: their decisions, and their limits."""

from collections.abc import Callable, Iterator

import pytest
from selection_plans import grid_plan

from comesh.core.arithmetic import squared
from comesh.core.plan import DEPLOYMENT
from comesh.core.selection import PlanningError, Selector
from comesh.core.selection.members import Draft, config_size
from comesh.core.selection.policies import (
    LEADER_POLICIES,
    MEMBER_POLICIES,
    Choice,
    Chosen,
    LeaderFunction,
    MemberFunction,
    PolicyError,
    register_leader_policy,
    register_member_policy,
)

Members = Callable[[MemberFunction], str]
Leaders = Callable[[LeaderFunction], str]


@pytest.fixture
def members() -> Iterator[Members]:
    def add(function: MemberFunction) -> str:
        register_member_policy("own", function)
        return "own"

    yield add
    if MEMBER_POLICIES.find("own") is not None:
        MEMBER_POLICIES.remove("own")


@pytest.fixture
def leaders() -> Iterator[Leaders]:
    def add(function: LeaderFunction) -> str:
        register_leader_policy("own", function)
        return "own"

    yield add
    if LEADER_POLICIES.find("own") is not None:
        LEADER_POLICIES.remove("own")


def nearest(choice: Choice, draft: Draft) -> None:
    draft.take(choice.nearest(), choice.size)


def test_a_policy_chooses_members(members: Members) -> None:
    selector = Selector(grid_plan(100, 1, f=2, members=members(nearest)))
    chosen = selector.select_all(3, selector.node_ids, {})
    for group in selector.watched:
        centre = selector.device_points[selector.centre_row(group, 3)]
        away = [squared(point, centre) for point in selector.node_points]
        of_members = sorted(away[selector.node_row[node]] for node in chosen[group])
        assert of_members == sorted(away)[:5]


def test_deployment_goes_by_hash_whatever_the_policy(members: Members) -> None:
    own, ours = (
        Selector(grid_plan(60, 1, members=members(nearest))),
        Selector(grid_plan(60, 1, members="random", leaders="random")),
    )
    for epoch in range(4):
        assert own.select(DEPLOYMENT, epoch, own.node_ids, {}) == ours.select(
            DEPLOYMENT, epoch, ours.node_ids, {}
        )


@pytest.mark.parametrize(
    "greedy",
    [
        lambda choice, draft: draft.take([0] * 50 * bool(len(choice.hashes)), choice.size),
        lambda choice, draft: draft.take(range(len(choice.hashes)), 50),
        lambda choice, draft: None,
    ],
    ids=["the same again", "too many", "nobody"],
)
def test_no_policy_makes_a_wrong_config(members: Members, greedy: MemberFunction) -> None:
    selector = Selector(grid_plan(60, 1, f=2, members=members(greedy)))
    for alive in (selector.node_ids, selector.node_ids[:3], selector.node_ids[:1], []):
        chosen = selector.select_all(1, alive, {})
        for config in chosen.values():
            assert len(set(config)) == len(config) == config_size(2, len(alive), len(selector.node_ids))


def test_a_policy_sees_what_nodes_served(members: Members) -> None:
    seen: list[int] = []

    def look(choice: Choice, draft: Draft) -> None:
        seen.append(sum(choice.served))

    plan = grid_plan(60, 1, members=members(look))
    selector = Selector(plan)
    group = plan.clusters[0].group
    selector.select(group, 1, selector.node_ids, plan.genesis)
    assert seen[-1] == sum(3 * len(cluster.devices) for cluster in plan.clusters)
    selector.select(group, 1, selector.node_ids, {})
    assert seen[-1] == 0


def test_a_leader_policy_ranks_and_changes_no_member(leaders: Leaders) -> None:
    def far_first(choice: Choice, chosen: Chosen) -> list[int]:
        return [*reversed(choice.nearest(chosen.members)), *range(len(choice.hashes)), -7]

    plain, own = (
        Selector(grid_plan(100, 1, f=2)),
        Selector(grid_plan(100, 1, f=2, leaders=leaders(far_first))),
    )
    for group in plain.watched:
        before, after = (one.select(group, 1, one.node_ids, {}) for one in (plain, own))
        assert sorted(before) == sorted(after)
        centre = own.device_points[own.centre_row(group, 1)]
        away = [squared(own.node_points[own.node_row[node]], centre) for node in after]
        assert away == sorted(away, reverse=True)


def test_spread_takes_the_near_node_that_leads_the_fewest_devices() -> None:
    local, spread = (Selector(grid_plan(100, 1, f=2, leaders=name)) for name in ("locality", "spread"))
    for group in local.watched:
        others = [one for one in local.watched if one != group]
        by_place = local.select(group, 1, local.node_ids, {})
        assert spread.select(group, 1, spread.node_ids, {}) == by_place, "nobody leads anything"
        first, second, third, *_ = by_place
        table = {others[0]: (first, third), others[1]: (second, third), others[2]: (first, third)}
        ranked = spread.select(group, 1, spread.node_ids, table)
        near = local.select(group, 1, local.node_ids, table)
        led = {node: sum(table[one][0] == node for one in table) for node in near}
        assert set(ranked[:3]) == set(near[:3]), "the same three are near"
        assert [led[node] for node in ranked[:3]] == sorted(led[node] for node in near[:3])
        assert ranked[3:] == near[3:]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda choice, draft: draft.take([-1], 1),
        lambda choice, draft: draft.take([10_000], 1),
        lambda choice, draft: 1 // 0,
    ],
    ids=["before the first", "after the last", "raises"],
)
def test_a_policy_that_fails_is_reported_by_its_name(members: Members, wrong: MemberFunction) -> None:
    with pytest.raises(PlanningError, match="member policy 'own' failed for c1: "):
        grid_plan(60, 1, members=members(wrong))


def test_a_leader_policy_that_fails_is_reported_by_its_name(leaders: Leaders) -> None:
    def wrong(choice: Choice, chosen: Chosen) -> list[int]:
        raise KeyError(choice.group)

    with pytest.raises(PlanningError, match="leader policy 'own' failed for c1: KeyError"):
        grid_plan(60, 1, leaders=leaders(wrong))


def test_unknown_names_are_reported_with_the_known_ones() -> None:
    with pytest.raises(
        PlanningError, match="unknown member policy 'nobody'; known: locality, lsh-mix, random"
    ):
        grid_plan(20, 1, members="nobody")
    with pytest.raises(PlanningError, match="unknown leader policy 'nobody'; known: locality, random"):
        grid_plan(20, 1, leaders="nobody")
    assert issubclass(PolicyError, ValueError)


def test_a_name_can_be_registered_once(members: Members) -> None:
    register_member_policy("own", nearest)
    register_member_policy("own", nearest)
    with pytest.raises(ValueError, match="there is a member policy 'own' already"):
        register_member_policy("own", lambda choice, draft: None)
    with pytest.raises(ValueError, match="there is a member policy 'lsh-mix' already"):
        register_member_policy("lsh-mix", nearest)
    for name in ("", "-own", "Own", "my own", "o" * 41):
        with pytest.raises(ValueError, match="is no name for a member policy"):
            register_member_policy(name, nearest)


def test_lsh_mix_has_two_names() -> None:
    one, other = (Selector(grid_plan(100, 1, members=name)) for name in ("lsh-mix", "locality"))
    assert one.select_all(1, one.node_ids, {}) == other.select_all(1, other.node_ids, {})
