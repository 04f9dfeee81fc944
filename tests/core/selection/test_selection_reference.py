"""The code, with either arithmetic, against the plain reference."""

import pytest
from hypothesis import given
from hypothesis import settings as limits
from selection_plans import ARITHMETICS, computed_by, grid_plan, situations
from selection_reference import Reference

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import Locality, Plan
from comesh.core.selection import Selector, make_plan

Situation = tuple[Plan, int, list[NodeId], dict[GroupId, tuple[NodeId, ...]]]


@limits(max_examples=150, deadline=None)
@given(situations())
def test_the_code_selects_what_the_reference_does(situation: Situation) -> None:
    plan, epoch, alive, table = situation
    reference = Reference(plan, epoch, alive, table)
    for arithmetic in ARITHMETICS:
        with computed_by(arithmetic):
            again = make_plan(1, plan.settings, plan.nodes, plan.devices, plan.routines)
            assert again == plan
            selector = Selector(plan)
        view = selector.at(epoch, alive, table)
        assert (view.size, view.cap) == (reference.size, reference.cap)
        for group in selector.groups:
            assert view.members(group) == reference.members(group)
        for cluster in plan.clusters:
            centre = selector.centre(cluster.group, epoch)
            assert centre == reference.centre(cluster.group)
            assert list(view.candidates(cluster.group)) == reference.candidates(centre)


@pytest.mark.parametrize("clusters", Locality)
@pytest.mark.parametrize("members", Locality)
def test_both_arithmetics_select_alike_in_a_larger_mesh(clusters: Locality, members: Locality) -> None:
    found = []
    for arithmetic in ARITHMETICS:
        with computed_by(arithmetic):
            plan = grid_plan(250, 7, f=2, cluster_size=9, clusters=clusters, members=members)
            selector = Selector(plan)
        table = selector.select_all(1, selector.node_ids, plan.genesis)
        found.append((plan, table, selector.select_all(2, selector.node_ids[::2], table)))
    assert found[0] == found[1]
