"""Checks that need a plan: that there is one, and which outages would stop a group."""

from collections.abc import Iterator

from comesh.core.selection.planning import PlanningError
from comesh.core.selection.policies import PolicyError
from comesh.deployment import outlook
from comesh.deployment.checks.settings import survive_one
from comesh.deployment.clauses.compiler import WrongClauseError
from comesh.deployment.model import Deployment
from comesh.deployment.planning import plan_of
from comesh.deployment.problems import Complaint, complain, warn


def outages(deployment: Deployment) -> Iterator[Complaint]:
    """Yields one warning per power domain whose loss would stop a group, at its first node."""
    try:
        plan = plan_of(deployment)
        found = list(outlook.outages(plan))
    except (PlanningError, PolicyError) as wrong:
        yield complain("nodes", what=f"no plan can be made: {wrong}")
        return
    except WrongClauseError as wrong:
        yield complain("routines", what=f"no plan can be made: {wrong}")
        return
    for outage in found:
        fix = survive_one(len(deployment.nodes)) if deployment.settings.f == 0 else outage.fix
        yield warn("nodes", outage.loss.nodes[0], "power_domain", what=outage.what, fix=fix)
