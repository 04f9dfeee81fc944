"""Chooses the next node to probe: near nodes more often, and everyone within a bounded time.

Every other probe goes to the node's ward, the next living node in the ring, so that each node is probed by
its guard at least every second period: that bounds the time until a crash is first noticed, for any mesh
size. The probes between come from a schedule: one slot for every other node, and up to as many again shared
out by weight (1 / distance^m), each node's slots spread evenly from a random start. A schedule that is empty
is filled anew, so everyone is probed once per schedule.
"""

import math
from array import array
from collections.abc import Sequence

from comesh.core.draws import Draws
from comesh.core.membership.roster import Roster
from comesh.core.membership.settings import MembershipSettings
from comesh.core.membership.table import Table

MAX_SHARE = 4
"""However near a node is, it gets at most others / 2 slots: a quarter of a full schedule, more in a small
mesh."""


class ProbeSchedule:
    __slots__ = ("_at", "_counts", "_draws", "_near", "_order", "_own", "_roster", "_turn", "_wards")

    def __init__(self, roster: Roster, own: int, settings: MembershipSettings, draws: Draws) -> None:
        self._roster = roster
        self._own = own
        self._draws = draws
        self._wards = settings.spatial
        self._counts = array("H", self._slots(settings))
        self._near = self._nearby()
        self._order = array("H")
        self._at = 0
        self._turn = draws.below(2)

    def renumbered(self, roster: Roster, own: int, settings: MembershipSettings) -> "ProbeSchedule":
        """Returns the same schedule for another roster: new nodes come next, in random order; the others keep
        their turn, so that everyone is still probed once per schedule."""
        other = ProbeSchedule(roster, own, settings, self._draws)
        other._turn = self._turn
        if self._order:
            new = [number for number, name in enumerate(roster.ids) if name not in self._roster.index]
            self._draws.shuffle(new)
            numbers = self._roster.numbers_in(roster)
            left = [numbers[number] for number in self._order[self._at :]]
            other._order = array("H", new + [number for number in left if number is not None])
        return other

    @property
    def size(self) -> int:
        """Probes from the schedule until everyone had one."""
        return sum(self._counts)

    def next_target(self, table: Table) -> int | None:
        """A living node to probe, or None where this node is alone."""
        self._turn ^= 1
        if self._turn and self._wards:
            return self.ward(table)
        return self._draw(table)

    def ward(self, table: Table) -> int | None:
        """The next living node after this one in the ring."""
        ring = self._roster.ring
        at = self._roster.ring_position[self._own]
        for step in range(1, len(ring)):
            number = ring[(at + step) % len(ring)]
            if table.is_living(number):
                return number
        return None

    def some(self, count: int, table: Table, *, but: int) -> list[int]:
        """Up to count different living nodes, drawn from the whole schedule."""
        if not self._order:
            self._fill()
        return self._pick(self._order, count, table, but)

    def anyone(self, count: int, table: Table) -> list[int]:
        """Up to count different living nodes from anywhere."""
        chosen = self._pick(range(len(self._roster)), count, table, self._own)
        if len(chosen) == count:
            return chosen
        others = [number for number in table.living_numbers() if number != self._own]
        return self._draws.sample(others, count)

    def helpers(self, count: int, table: Table, *, target: int) -> list[int]:
        """Up to count different living nodes that could try a target in this one's stead.

        Near ones, since far ones answer too late; from anywhere where those are few.
        """
        chosen = self._pick(self._near, count, table, target)
        if len(chosen) < count:
            chosen += [n for n in self.anyone(count + 1, table) if n != target and n not in chosen]
        return chosen[:count]

    def _pick(self, slots: Sequence[int], count: int, table: Table, but: int) -> list[int]:
        chosen: list[int] = []
        for _ in range(8 * count if slots else 0):
            number = slots[self._draws.below(len(slots))]
            if number != but and number not in chosen and table.is_living(number):
                chosen.append(number)
                if len(chosen) == count:
                    break
        return chosen

    def _draw(self, table: Table) -> int | None:
        for _ in range(2 * len(self._counts)):
            if self._at >= len(self._order):
                self._fill()
                if not self._order:
                    return None
            number = self._order[self._at]
            self._at += 1
            if table.is_living(number):
                return number
        return None

    def _fill(self) -> None:
        """Each node's slots at even distances, from a start drawn for this filling."""
        self._order = array("H", self._roster.probe_order(self._draws.word(), self._counts))
        self._at = 0

    def _nearby(self) -> Sequence[int]:
        """The slots that weight alone gives; all, where there are no weights."""
        spare = 1 if self._wards else 0
        return array("H", [number for number, count in enumerate(self._counts) for _ in range(count - spare)])

    def _slots(self, settings: MembershipSettings) -> list[int]:
        others = len(self._roster) - 1
        counts = [1] * len(self._roster)
        counts[self._own] = 0
        if not settings.spatial or others < 1:
            return counts
        weights = self._roster.weights(self._own, settings.exponent)
        total = math.fsum(weights)
        most = max(1, 2 * others // MAX_SHARE)
        for number, weight in enumerate(weights):
            if weight:
                counts[number] = min(most, 1 + int(others * weight / total))
        return counts
