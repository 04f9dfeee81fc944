"""What only a plan shows: that there is one, and which outages would stop what it says."""

from collections.abc import Iterator

from comesh.core.selection.planning import PlanningError
from comesh.deployment.checks.settings import survive_one
from comesh.deployment.model import Deployment
from comesh.deployment.outlook import WARNED_EPOCHS, domain_losses, domain_warnings, forecast
from comesh.deployment.planning import plan_of
from comesh.deployment.problems import Complaint, complain, warn


def outages(deployment: Deployment) -> Iterator[Complaint]:
    """One warning per power domain whose loss would stop a group, at its first node."""
    try:
        plan = plan_of(deployment)
    except PlanningError as wrong:
        yield complain("nodes", what=f"no plan can be made: {wrong}")
        return
    losses = domain_losses(plan, forecast(plan, WARNED_EPOCHS))
    stopping = [loss for loss in losses if loss.stops]
    for loss, sentence in zip(stopping, domain_warnings(plan), strict=True):
        what, _, fix = sentence.partition("; ")
        if deployment.settings.f == 0:
            fix = survive_one(len(deployment.nodes))
        yield warn("nodes", loss.nodes[0], "power_domain", what=what, fix=fix)
