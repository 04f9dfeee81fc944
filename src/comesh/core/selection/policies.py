"""Which nodes become members and who of them leads: policies, ours and anybody's (paper, sections 3.1, 3.6).

A member policy looks at a `Choice` and takes nodes into a `Draft`, in the order in which it wants them. A
leader policy looks at the same and at who was chosen, and names those who come first in rank. Both are pure
functions.

    def nearest(choice: Choice, draft: Draft) -> None:
        draft.take(choice.nearest(), choice.size)

    register_member_policy("nearest", nearest)

Rules:
- a policy cannot break a config: the draft takes nobody twice, nobody above the cap of its power domain and
  no more than the config has; what a policy leaves open is filled by hash, and so are the ranks that a
  leader policy does not name;
- in integers only, and a function of the choice only: every node computes it, and all must agree to the
  bit. No floats, no clock, no draws, nothing of the order of a set. To draw, take `choice.hashes`: 64 bits
  per node, other ones in each epoch and for each group;
- it is asked with every number of nodes alive, also none, and never for `deployment`, which has no place: its
  members and ranks go by hash.

The built-in ones, for a config of 2g+1 members:
- members `random`: the lowest hashes;
- members `lsh-mix`: first g+1 local members, then g by lowest hash from the rest. Local are the candidates
  nearest to the cluster's centre (ties by hash, which spreads load on grids); if they don't suffice, the
  candidates of the centre's neighbours are borrowed, the nearest neighbour's first, each neighbour's in
  order of distance to the centre; what is still missing is taken by hash;
- leaders `locality`: of those that the member policy took, the g+1 nearest to the centre, by hash; then the
  others by hash. Under `lsh-mix` those are the local members;
- leaders `spread`: the same nodes first, but of those who leads the fewest devices now, of equals by hash;
- leaders `random`: all by hash.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from comesh.core.arithmetic import Point, Words
from comesh.core.ids import GroupId
from comesh.core.registry import Registry
from comesh.core.selection.members import Draft

if TYPE_CHECKING:
    from comesh.core.selection.selector import View


class PolicyError(ValueError):
    """A policy that did not give an answer; says which, and why."""


class Choice:
    """One group in one epoch, for a policy to look at. Nodes alive are positions from 0, in order of ids."""

    def __init__(self, view: "View", group: GroupId, hashes: Words) -> None:
        self._view = view
        self.group = group
        self._hashes = hashes
        self.size = view.size
        """The number of members."""
        self.majority = (view.size + 1) // 2
        """g+1 of them: enough to commit."""
        self.epoch = view.epoch
        self.places = view.points
        """Places of the nodes, in millimetres: (x, y, z)."""
        self.domains: Sequence[int] = view.domains
        """Power domains of the nodes; equal numbers lose power together."""

    @cached_property
    def hashes(self) -> list[int]:
        """Returns the hash of each node, for this group in this epoch; lower comes first."""
        return [int(word) for word in self._hashes]

    @property
    def served(self) -> list[int]:
        """Returns how many devices each node looked after in the last epoch; once per group that had them."""
        return self._view.served

    @property
    def led(self) -> list[int]:
        """Returns how many devices there are in the groups that each node was to lead in the last epoch."""
        return self._view.led

    @cached_property
    def _centre_row(self) -> int:
        return self._view.centre_row(self.group)

    @cached_property
    def centre(self) -> Point:
        """The place (x, y, z) of the device that stands for the group's cluster in this epoch."""
        return self._view.device_point(self._centre_row)

    def candidates(self) -> list[int]:
        """The nodes that share a bucket with the centre (paper, section 3.6)."""
        return self._view.sharing(self._centre_row)

    def borrowed(self) -> Iterator[list[int]]:
        """The nodes that share one with each neighbour of the centre, the nearest neighbour's first."""
        return map(self._view.sharing, self._view.neighbour_rows(self._centre_row))

    def nearest(self, among: Sequence[int] | None = None) -> list[int]:
        """Returns nodes by distance to the centre, equal ones by hash. None: of all nodes alive."""
        positions = range(len(self.places)) if among is None else among
        return self._view.nearest_first(positions, self.centre, self._hashes)

    def lowest(self) -> Iterator[int]:
        """Returns all nodes by hash; sorts no more than what is taken."""
        return self._view.lowest_first(self._hashes)

    def by_hash(self, among: Iterable[int]) -> list[int]:
        return self._view.by_hash(among, self._hashes)


class Chosen(NamedTuple):
    """The members of a config before they are ranked."""

    taken: tuple[int, ...]
    """Nodes taken by the member policy, in its order."""
    members: tuple[int, ...]
    """All members: those first, then what was filled by hash."""


MemberFunction: TypeAlias = Callable[[Choice, Draft], None]
LeaderFunction: TypeAlias = Callable[[Choice, Chosen], Iterable[int]]

MEMBER_POLICIES: Registry[MemberFunction] = Registry("member policy")
LEADER_POLICIES: Registry[LeaderFunction] = Registry("leader policy")


def register_member_policy(name: str, function: MemberFunction) -> None:
    """ValueError: the name is taken, or none."""
    MEMBER_POLICIES.register(name, function)


def register_leader_policy(name: str, function: LeaderFunction) -> None:
    """ValueError: the name is taken, or none."""
    LEADER_POLICIES.register(name, function)


def lsh_mix(choice: Choice, draft: Draft) -> None:
    draft.take(choice.nearest(choice.candidates()), choice.majority)
    if len(draft.chosen) < choice.majority:
        for candidates in choice.borrowed():
            draft.take(choice.nearest(candidates), choice.majority)


def random_members(choice: Choice, draft: Draft) -> None:
    draft.take(choice.lowest(), choice.size)


def local_leaders(choice: Choice, chosen: Chosen) -> list[int]:
    return choice.by_hash(choice.nearest(chosen.taken)[: choice.majority])


def spread_leaders(choice: Choice, chosen: Chosen) -> list[int]:
    local = local_leaders(choice, chosen)
    return sorted(local, key=choice.led.__getitem__)


def random_leaders(choice: Choice, chosen: Chosen) -> tuple[int, ...]:
    return ()


register_member_policy("lsh-mix", lsh_mix)
register_member_policy("locality", lsh_mix)  # As plans and the published vectors call it.
register_member_policy("random", random_members)
register_leader_policy("locality", local_leaders)
register_leader_policy("spread", spread_leaders)
register_leader_policy("random", random_leaders)
