"""Keeps what one node believes of every other, state and incarnation, in compact arrays.

Of two updates about a member the one with the greater (boot, nonce, refutation, state) stays, so that all
nodes that heard the same updates, in any order, believe the same. Members start as presumed alive at
incarnation NEVER: the deployment says that they exist, and probing finds out who is not there.

The digest is a 64-bit sum over those who are gone, and at which incarnation. That is what nodes have to agree
on: of the living the deployment tells, whoever speaks to one hears its incarnation, and suspicions pass by
themselves. So a mesh that starts from nothing has nothing to exchange.
"""

from array import array
from collections.abc import Iterator

from comesh.core.draws import mix64
from comesh.core.ids import Incarnation
from comesh.core.membership.roster import Roster
from comesh.core.messages import MemberState, MemberUpdate

_WORD = (1 << 64) - 1
_NEVER_HEARD = float("-inf")
_STATES = tuple(MemberState)


class Table:
    __slots__ = (
        "_boot",
        "_nonce",
        "_refutation",
        "_state",
        "digest",
        "heard_ms",
        "living",
        "roster",
        "version",
    )

    def __init__(self, roster: Roster) -> None:
        self.version = 0
        """A number that rises when the set of living members changes."""
        self._forget(roster)

    def _forget(self, roster: Roster) -> None:
        size = len(roster)
        self.roster = roster
        self._state = bytearray(size)
        self._boot = array("Q", bytes(8 * size))
        self._nonce = array("Q", bytes(8 * size))
        self._refutation = array("Q", bytes(8 * size))
        self.heard_ms = array("d", [_NEVER_HEARD]) * size
        """Times at which members' own present lives were last heard directly."""
        self.digest = 0
        self.living = size
        """Number of members that are alive or suspect."""

    def adopt(self, roster: Roster) -> None:
        """Takes another deployment version: members of both stay as believed, new ones never spoke."""
        before = self.copy()
        self._forget(roster)
        for old, new in enumerate(before.roster.numbers_in(roster)):
            if new is not None:
                self.set(new, before.incarnation(old), before.state(old))
                self.heard_ms[new] = before.heard_ms[old]
        self.version = before.version + 1

    def copy(self) -> "Table":
        """Copies the beliefs, for another node."""
        other = Table.__new__(Table)
        other.roster = self.roster
        other._state = self._state[:]
        other._boot = self._boot[:]
        other._nonce = self._nonce[:]
        other._refutation = self._refutation[:]
        other.heard_ms = self.heard_ms[:]
        other.digest = self.digest
        other.living = self.living
        other.version = self.version
        return other

    def state(self, number: int) -> MemberState:
        return _STATES[self._state[number]]

    def is_living(self, number: int) -> bool:
        return self._state[number] <= MemberState.SUSPECT

    def incarnation(self, number: int) -> Incarnation:
        return Incarnation(self._boot[number], self._nonce[number], self._refutation[number])

    def is_plainly(self, number: int, incarnation: Incarnation) -> bool:
        """Says if a member is alive at just this incarnation: then hearing it teaches nothing."""
        return (
            self._refutation[number] == incarnation.refutation
            and self._state[number] == 0
            and self._nonce[number] == incarnation.nonce
            and self._boot[number] == incarnation.boot
        )

    def compare(self, number: int, incarnation: Incarnation, state: MemberState) -> int:
        """Compares an update with the entry. 1: it overrides the entry; 0: it is the entry; -1: it is
        older."""
        entry = (self._boot[number], self._nonce[number], self._refutation[number], self._state[number])
        update = (incarnation.boot, incarnation.nonce, incarnation.refutation, int(state))
        return (update > entry) - (update < entry)

    def set(self, number: int, incarnation: Incarnation, state: MemberState) -> None:
        before = self._state[number]
        self.digest = (self.digest - self._summand(number)) & _WORD
        if (self._boot[number], self._nonce[number]) != incarnation.life:
            self.heard_ms[number] = _NEVER_HEARD
        self._boot[number] = incarnation.boot
        self._nonce[number] = incarnation.nonce
        self._refutation[number] = incarnation.refutation
        self._state[number] = state
        self.digest = (self.digest + self._summand(number)) & _WORD
        lived, lives = before <= MemberState.SUSPECT, state <= MemberState.SUSPECT
        if lived != lives:
            self.living += lives - lived
            self.version += 1

    def update(self, number: int) -> MemberUpdate:
        """Returns the entry as an update to spread."""
        return MemberUpdate(self.roster.ids[number], self.state(number), self.incarnation(number))

    def is_spoken_of(self, number: int) -> bool:
        """Says if any update about this member ever came."""
        return bool(self._boot[number] or self._state[number])

    def updates(self) -> Iterator[MemberUpdate]:
        """Yields all entries that any update was about."""
        for number in range(len(self._state)):
            if self._boot[number] or self._state[number]:
                yield self.update(number)

    def living_numbers(self) -> list[int]:
        return [number for number, state in enumerate(self._state) if state <= MemberState.SUSPECT]

    def gone_numbers(self) -> list[int]:
        """Returns the members believed dead or away: somebody should try them now and then."""
        return [number for number, state in enumerate(self._state) if state > MemberState.SUSPECT]

    def _summand(self, number: int) -> int:
        state = self._state[number]
        if state <= MemberState.SUSPECT:
            return 0
        word = self.roster.hashes[number] ^ state
        for part in (self._boot[number], self._nonce[number], self._refutation[number]):
            word = mix64(word ^ part)
        return word
