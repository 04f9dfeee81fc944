"""Records proposals, as far as the world reports what members write to their journals.

A new leader may serve more than was seen to be committed: entries that its predecessor proposed and could not
count any more. With all proposals known, a state is either reached by them from the history, or invented.
"""

from typing import Final

from comesh.core.group.ledger import DIGEST_MASK, record_hash
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, JournalRecord
from comesh.core.records import Entry, Gone
from comesh.core.stamps import Ballot
from comesh.sim.checks.violation import Promise, Verdicts

KEPT_ENTRIES: Final = 512
"""Maximum entries remembered per config before the last committed one: twice what a leader keeps."""
KEPT_CONFIGS: Final = 512
"""Maximum configs remembered, of all groups."""
MAX_TRIED: Final = 5000
"""Maximum steps of one search; entries of different ballots under one number are few."""


class Proposals:
    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._configs: dict[int, dict[int, list[tuple[Ballot, Entry]]]] = {}
        """Proposals of each config (by mark) and number, whoever made them."""
        self.watching = False
        """True if the world reports journals."""

    def on_written(self, at_ms: float, node: NodeId, record: JournalRecord) -> None:
        self.watching = True
        if not isinstance(record, Appended):
            return
        entries = self._configs.get(record.mark)
        if entries is None:
            entries = self._configs[record.mark] = {}
            if len(self._configs) > KEPT_CONFIGS:
                del self._configs[next(iter(self._configs))]
        proposed = entries.setdefault(record.number, [])
        for ballot, entry in proposed:
            if ballot == record.ballot:
                if entry is not record.entry and entry != record.entry:
                    what = f"{node} wrote another entry as {record.number} of ballot {ballot} than others did"
                    self._verdicts.broken(Promise.ONE_HISTORY, at_ms, what)
                return
        proposed.append((record.ballot, record.entry))

    def settle(self, mark: int, number: int) -> None:
        """Forget entries long before this number: everything up to it is committed."""
        entries = self._configs.get(mark)
        if entries is not None:
            entries.pop(number - KEPT_ENTRIES, None)

    def path(
        self, mark: int, start: int, hashes: dict[str, int], *, to: int, digest: int
    ) -> list[Entry] | None:
        """Returns proposed entries that lead from one state to another, if there are any.

        One under each number, of whatever ballots: what a new leader inherits may be of several.
        """
        entries = self._configs.get(mark)
        if entries is None or to - start > KEPT_ENTRIES:
            return None
        tried = 0
        # Depth first, the highest ballot first. A frame: remaining choices, hashes of the state there.
        frames = [(_choices(entries, start + 1), hashes)]
        chosen: list[Entry] = []
        while frames and tried < MAX_TRIED:
            choices, here = frames[-1]
            if not choices:
                frames.pop()
                if chosen:
                    chosen.pop()
                continue
            tried += 1
            entry = choices.pop()
            after = _hashes_with(entry, here)
            chosen.append(entry)
            if start + len(chosen) < to:
                frames.append((_choices(entries, start + len(chosen) + 1), after))
            elif sum(after.values()) & DIGEST_MASK == digest:
                return chosen
            else:
                chosen.pop()
        return None


def _choices(entries: dict[int, list[tuple[Ballot, Entry]]], number: int) -> list[Entry]:
    return [entry for _, entry in sorted(entries.get(number, ()), key=lambda one: one[0])]


def _hashes_with(entry: Entry, hashes: dict[str, int]) -> dict[str, int]:
    after = dict(hashes)
    for record in entry:
        if isinstance(record, Gone):
            after.pop(record.gone, None)
        else:
            after[record.key] = record_hash(record)
    return after
