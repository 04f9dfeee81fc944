"""Whether the parts of a document fit together. Each check reads a draft and tells what does not.

A new check is a function from Draft to complaints, added to CHECKS. Checks that need a plan stand in
`outlook.py`, because a plan can only be made of a document without errors.
"""

from collections.abc import Callable, Iterable

from comesh.deployment.draft import Draft
from comesh.deployment.problems import Complaint

Check = Callable[[Draft], Iterable[Complaint]]

CHECKS: tuple[Check, ...] = ()
