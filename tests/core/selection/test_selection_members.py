"""Tests of the properties of selection: spread, near, capped, stable, and the same everywhere."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from msgspec.structs import replace
from selection_plans import device, grid_plan, node, plans, situations

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import DEPLOYMENT, Locality, Lsh, Plan, SelectionSettings
from comesh.core.selection import Selector, make_plan, select

Situation = tuple[Plan, int, list[NodeId], dict[GroupId, tuple[NodeId, ...]]]
RANDOM = {"clusters": Locality.LOCALITY, "members": Locality.RANDOM, "leaders": Locality.RANDOM}


def changed(before: tuple[NodeId, ...], after: tuple[NodeId, ...]) -> int:
    """Returns how many members are new."""
    return len(set(after) - set(before))


@limits(max_examples=100, deadline=None)
@given(situations())
def test_members_are_distinct_alive_and_of_the_right_number(situation: Situation) -> None:
    plan, epoch, alive, table = situation
    view = Selector(plan).at(epoch, alive, table)
    for members in view.all_members().values():
        assert len(members) == len(set(members)) == view.size
        living = [member for member in members if member in alive]
        assert len(living) == min(view.size, len(alive))
        assert living == list(members[: len(living)]), "absent nodes come last"


@limits(max_examples=100, deadline=None)
@given(situations(nodes_at_least=7))
def test_no_power_domain_has_more_members_than_the_cap(situation: Situation) -> None:
    given_plan, epoch, _, table = situation
    plan = replace(given_plan, settings=replace(given_plan.settings, power_domain_rule=True))
    alive = [one.id for one in plan.nodes]
    view = Selector(plan).at(epoch, alive, table)
    domain_of = {one.id: one.power_domain or one.id for one in plan.nodes}
    domains = Counter(domain_of[one] for one in alive)
    fits = sum(min(count, plan.settings.f) for count in domains.values()) >= plan.settings.k
    assert plan.settings.f == 0 or (view.cap == plan.settings.f) == fits
    for members in view.all_members().values():
        assert max(Counter(domain_of[member] for member in members).values()) <= view.cap


@limits(max_examples=60, deadline=None)
@given(situations())
def test_order_does_not_matter(situation: Situation) -> None:
    plan, epoch, alive, table = situation
    straight = Selector(plan).select_all(epoch, alive, table)
    turned = {group: tuple(reversed(members)) for group, members in reversed(table.items())}
    assert straight == Selector(plan).select_all(epoch, [*reversed(alive), NodeId("stranger")], turned)
    assert straight == Selector(plan).select_all(epoch, set(alive), turned)
    shuffled = make_plan(1, plan.settings, plan.nodes[::-1], plan.devices[::-1], [])
    assert shuffled == plan
    for group, members in straight.items():
        assert select(plan, group, epoch, frozenset(alive), table) == members


@limits(max_examples=100, deadline=None)
@given(situations(nodes_at_least=8), st.data())
def test_a_node_that_leaves_changes_little(situation: Situation, data: st.DataObject) -> None:
    """Groups without it stay as they are, as long as size and cap do. Of those that had it, `random` and
    `deployment` replace it and nobody else; `lsh-mix` too where no domain is at its cap, and otherwise
    at most two more: a local member's successor can take the room that a distant one had."""
    plan, epoch, _, table = situation
    alive = [one.id for one in plan.nodes]
    leaver = data.draw(st.sampled_from(alive))
    selector = Selector(plan)
    before = selector.at(epoch, alive, table)
    after = selector.at(epoch, [one for one in alive if one != leaver], table)
    assume(before.cap == after.cap)
    for group in selector.groups:
        old, new = before.members(group), after.members(group)
        if leaver not in old:
            assert set(new) == set(old)
        elif plan.settings.members == Locality.RANDOM or group == DEPLOYMENT or before.cap == before.size:
            assert changed(old, new) == 1
        else:
            assert 1 <= changed(old, new) <= 3


@limits(max_examples=60, deadline=None)
@given(situations())
def test_an_unchanged_view_keeps_the_ranks(situation: Situation) -> None:
    """Asking twice, or for one group instead of all, gives the same tuple in the same order."""
    plan, epoch, alive, table = situation
    selector = Selector(plan)
    everything = selector.select_all(epoch, alive, table)
    assert list(everything) == list(selector.groups)
    for group, members in everything.items():
        assert selector.select(group, epoch, alive, table) == members


def memberships(plan: Plan, epochs: int) -> list[dict[GroupId, tuple[NodeId, ...]]]:
    selector = Selector(plan)
    ahead = [plan.genesis]
    for epoch in range(1, epochs + 1):
        ahead.append(selector.select_all(epoch, selector.node_ids, ahead[-1]))
    return ahead[1:]


def test_random_spreads_load_evenly() -> None:
    """Chi-square over nodes: member counts are no more uneven than independent draws would be."""
    plan = grid_plan(250, 3, f=2, **RANDOM)
    load = Counter(member for members in memberships(plan, 120) for one in members.values() for member in one)
    counts = [load[one.id] for one in plan.nodes]
    mean = fmean(counts)
    chi_square = sum((count - mean) ** 2 / mean for count in counts)
    freedom = len(counts) - 1
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5
    leads = Counter(one[0] for members in memberships(plan, 120) for one in members.values())
    assert max(leads.values()) < 3 * fmean(leads.values())


@pytest.mark.parametrize("seed", range(3))
def test_lsh_mix_leaves_nobody_idle_and_nobody_overwhelmed(seed: int) -> None:
    plan = grid_plan(250, seed, f=2)
    load: Counter[NodeId] = Counter()
    for members in memberships(plan, 80):
        for cluster in plan.clusters:
            load.update(members[cluster.group])
    counts = [load[one.id] for one in plan.nodes]
    assert max(counts) < 2.5 * fmean(counts)
    assert min(counts) > fmean(counts) / 5


def mean_distance_mm(plan: Plan, epochs: int) -> float:
    """From a cluster's mean place to the nearest f+1 members."""
    place_of = {one.id: one.place for one in (*plan.nodes, *plan.devices)}
    distances = []
    for members in memberships(plan, epochs):
        for cluster in plan.clusters:
            at = [place_of[one] for one in cluster.devices]
            middle = [fmean(getattr(place, axis) for place in at) for axis in ("x_mm", "y_mm", "z_mm")]
            away = sorted(
                sum(
                    (getattr(place_of[one], axis) - mean) ** 2
                    for axis, mean in zip(("x_mm", "y_mm", "z_mm"), middle, strict=True)
                )
                ** 0.5
                for one in members[cluster.group]
            )
            distances += away[: plan.settings.f + 1]
    return fmean(distances)


@pytest.mark.parametrize("seed", range(3))
def test_lsh_mix_is_nearer_and_keeps_more_members_than_random(seed: int) -> None:
    near, anywhere = grid_plan(500, seed, f=2), grid_plan(500, seed, f=2, members=Locality.RANDOM)
    assert mean_distance_mm(near, 10) < 0.65 * mean_distance_mm(anywhere, 10)

    def kept(plan: Plan) -> float:
        ahead = memberships(plan, 10)
        pairs = [
            (before[one.group], after[one.group])
            for before, after in pairwise(ahead)
            for one in plan.clusters
        ]
        return fmean(len(set(before) & set(after)) for before, after in pairs)

    assert kept(near) > 2 * kept(anywhere)


def test_the_leader_is_near_with_policy_locality_and_anyone_otherwise() -> None:
    """Rank 0 is one of the local majority; with leader policy random it is the lowest hash of all."""
    near, anyone = grid_plan(500, 1, f=2), grid_plan(500, 1, f=2, leaders=Locality.RANDOM)
    epoch, alive = 4, [one.id for one in near.nodes]
    same_members = 0
    for cluster in near.clusters:
        one, other = (select(plan, cluster.group, epoch, alive, {}) for plan in (near, anyone))
        assert set(one) == set(other)
        same_members += one[0] == other[0]
    assert 0 < same_members < len(near.clusters)


def test_larger_m_gives_fewer_candidates_and_larger_l_and_r_more() -> None:
    """Figure 5 of the paper, in the large."""

    def candidates(**lsh: int) -> float:
        counts = []
        for seed in range(4):
            plan = grid_plan(250, seed, f=2, lsh=Lsh(**lsh))
            selector = Selector(plan)
            for epoch in range(6):
                view = selector.at(epoch, selector.node_ids, {})
                counts += [len(view.candidates(cluster.group)) for cluster in plan.clusters]
        return fmean(counts)

    default = candidates()
    assert candidates(m=3) < default < candidates(m=1)
    assert candidates(l=1) < default < candidates(l=3)
    assert candidates(r_milli=2000) < default < candidates(r_milli=8000)


def test_members_are_borrowed_from_the_candidates_of_neighbours() -> None:
    """Tiny buckets leave the centre without candidates, but not its neighbours: whoever stands with one of
    them is still preferred to a lower hash."""
    devices = [device(f"d{i}", 1000 * i) for i in range(3)]
    nodes = [node(f"near{i}", 1000 * i) for i in range(3)] + [node(f"far{i}", 90_000 + i) for i in range(40)]
    settings = SelectionSettings(f=1, cluster_size=3, lsh=Lsh(m=4, l=1, r_milli=1))
    plan = make_plan(1, settings, nodes, devices, [])
    selector = Selector(plan)
    for epoch in range(20):
        view = selector.at(epoch, selector.node_ids, {})
        assert len(view.candidates(GroupId("c1"))) == 1
        assert sum(member.startswith("near") for member in view.members(GroupId("c1"))) >= 2


def test_one_node_and_no_failures_allowed_is_the_central_case() -> None:
    plan = make_plan(1, SelectionSettings(f=0, cluster_size=9), [node("hub")], [device("lamp")], [])
    assert plan.genesis == {"c1": ("hub",), "deployment": ("hub",)}
    assert select(plan, GroupId("c1"), 7, [NodeId("hub")], {}) == ("hub",)
    assert select(plan, GroupId("c1"), 7, [], {}) == ("hub",)


@limits(max_examples=20, deadline=None)
@given(plans())
def test_genesis_is_what_epoch_zero_selects(plan: Plan) -> None:
    selector = Selector(plan)
    assert plan.genesis == selector.select_all(0, selector.node_ids, {})
    assert set(plan.genesis) == {cluster.group for cluster in plan.clusters} | {DEPLOYMENT}


def test_python_s_hash_seed_does_not_matter() -> None:
    script = (
        "from selection_plans import grid_plan\n"
        "from comesh.core.selection import Selector\n"
        "plan = grid_plan(120, 5, f=2)\n"
        "selector = Selector(plan)\n"
        "print(plan)\n"
        "print(selector.select_all(3, set(selector.node_ids), plan.genesis))\n"
    )
    here = os.path.dirname(__file__)
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": here},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(answers) == 1
