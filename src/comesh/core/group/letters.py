"""Letters that come with an update: their receiver knows of the commit that they wait for (decision 24).

Where two are a quorum, an entry that its leader has written and one member has accepted is committed. A
leader sends letters with an update only after it has written what they wait for; so the member that accepts
it may act on them at once, while its acknowledgement is still on its way.
"""

from typing import TYPE_CHECKING, Final

from comesh.core.effects import CommitKnown
from comesh.core.group_messages import Lettered
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.replica import Replica

TWO: Final = 2


def take_letters(replica: "Replica", rank: int, update: Lettered, step: Step) -> None:
    """The update was accepted and acknowledged."""
    if not completes_quorum(replica):
        return
    # Not what came after it: the leader sends entries without letters before it writes them.
    number = update.first + len(update.entries) - 1
    if number > replica.committed:
        entries = replica.ledger.since(replica.committed)
        if entries is None:
            return  # it was given the whole state since, and cannot tell what it knows to be committed
        config, first = replica.config, replica.committed + 1
        known = entries[: number - replica.committed]
        step.observe(CommitKnown(config.group, config, update.ballot, first, known))
        replica.committed = number
    for letter in update.letters:
        replica.host.deliver_early(replica.config.seats[rank].node, letter, step)


def completes_quorum(replica: "Replica") -> bool:
    """A leader and one member, or this member and its leader."""
    return replica.quorum == replica.config.quorum == TWO
