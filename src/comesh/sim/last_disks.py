"""Disks that must not be lost for good: the last ones that have the newest state of a group.

With such a disk the group is gone, and no protocol and no operator brings it back. It can be any member's:
where a config began without its third member, two disks are all that there is of it. A seat that was given by
another member's word alone has no state.
"""

from collections.abc import Iterable

from comesh.core.ids import GroupId
from comesh.core.stamps import NO_BALLOT
from comesh.sim.machine import Machine


def is_last_of_a_group(machine: Machine, machines: Iterable[Machine]) -> bool:
    """Nobody else among these machines has the newest config of some group that this one has."""
    others: dict[GroupId, int] = {}
    for other in machines:
        if other is not machine and not other.away and not other.revoked:
            for group, number in _installed(other).items():
                others[group] = max(number, others.get(group, 0))
    return any(number > others.get(group, 0) for group, number in _installed(machine).items())


def _installed(machine: Machine) -> dict[GroupId, int]:
    """By group, the number of the newest config whose state is on the disk."""
    found: dict[GroupId, int] = {}
    for kept in machine.disk.image().configs.values():
        if kept.installed and kept.accepted != NO_BALLOT:
            found[kept.config.group] = max(kept.config.number, found.get(kept.config.group, 0))
    return found
