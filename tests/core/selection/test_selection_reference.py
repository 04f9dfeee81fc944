"""The fast code against the plain one."""

from hypothesis import given
from hypothesis import settings as limits
from selection_plans import situations
from selection_reference import Reference

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import Plan
from comesh.core.selection import Selector

Situation = tuple[Plan, int, list[NodeId], dict[GroupId, tuple[NodeId, ...]]]


@limits(max_examples=150, deadline=None)
@given(situations())
def test_the_fast_code_selects_what_the_reference_does(situation: Situation) -> None:
    plan, epoch, alive, table = situation
    selector = Selector(plan)
    view = selector.at(epoch, alive, table)
    reference = Reference(plan, epoch, alive, table)
    assert (view.size, view.cap) == (reference.size, reference.cap)
    for group in selector.groups:
        assert view.members(group) == reference.members(group)
    for cluster in plan.clusters:
        centre = selector.centre(cluster.group, epoch)
        assert centre == reference.centre(cluster.group)
        assert list(view.candidates(cluster.group)) == reference.candidates(centre)
