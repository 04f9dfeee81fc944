"""Selects the members of groups: zero messages, exact arithmetic (paper, sections 3.1, 3.4 and 3.6; protocol,
section 2).

Every node holds the same plan and computes the same members from it. All of it is integers (decision 0003),
so that machines of different make agree to the bit; nothing depends on the order of a dict or a set.
docs/selection.md goes through the rules one by one, with test vectors.

`select` proposes. What a group's config is, is decided by a committed handoff only.
"""

from comesh.core.plan import DEPLOYMENT
from comesh.core.selection.planning import PlanningError, make_plan
from comesh.core.selection.selector import Selector, Table, View, select

__all__ = ["DEPLOYMENT", "PlanningError", "Selector", "Table", "View", "make_plan", "select"]
