"""Checks that the parts of a document fit together. Each check reads a draft and yields what does not fit.

A new check is a function from Draft to complaints, added to CHECKS. Checks that need a plan stand in plan.py
and run last, because a plan can only be made of a document without errors.
"""

from collections.abc import Callable, Iterable

from comesh.deployment.checks import devices, ids, routines, settings, triggers
from comesh.deployment.draft import Draft
from comesh.deployment.problems import Complaint

Check = Callable[[Draft], Iterable[Complaint]]

CHECKS: tuple[Check, ...] = (
    ids.well_formed,
    ids.not_shared,
    settings.enough_nodes,
    settings.times_fit,
    settings.time_zone_exists,
    devices.have_a_place,
    devices.near_each_other,
    devices.parts_fit,
    devices.no_secrets_in_the_open,
    routines.one_trigger,
    routines.steps_fit,
    triggers.clauses_fit,
    triggers.schedules_fire,
)
"""All checks, in the order in which they run; problems are sorted by line afterwards."""
