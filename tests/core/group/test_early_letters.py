"""Letters that come with an update are acted on at once by a member that can tell of the commit."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from comesh.core.effects import CommitKnown, Observe
from comesh.core.group.config import Config, Seat
from comesh.core.group.ledger import Ledger
from comesh.core.group.letters import take_letters
from comesh.core.group_messages import Lettered
from comesh.core.ids import GroupId, NodeId
from comesh.core.records import GroupRecord
from comesh.core.stamps import OPENING
from comesh.core.step import Step
from comesh.core.work_messages import Letter, NotLeader

CONFIG = Config(GroupId("c1"), 1, 0, tuple(Seat(NodeId(name), 7) for name in ("n1", "n2", "n3")), 1000, 1)
LETTER = Letter(None, None, None, 1, NotLeader(GroupId("c1"), None, cast("Any", None)))


@pytest.mark.parametrize("given_whole", [False, True])
def test_who_was_given_the_whole_state_since_does_not_act_on_what_it_cannot_tell(given_whole: bool) -> None:
    """Entries 3 and 4 are committed with its acknowledgement; of 3 it may have the state only."""
    ledger = Ledger((), 2)
    ledger.append((GroupRecord(),))
    if given_whole:
        ledger.replace(ledger.snapshot(), 3)
    ledger.append((GroupRecord(),))
    delivered: list[Letter] = []
    host = SimpleNamespace(deliver_early=lambda _node, letter, _step: delivered.append(letter))
    replica = SimpleNamespace(quorum=2, config=CONFIG, committed=2, ledger=ledger, host=host)
    update = Lettered(OPENING, 3, ((GroupRecord(),), (GroupRecord(),)), 2, 0, False, (LETTER,))
    step = Step(1.0, 1.0)
    take_letters(cast("Any", replica), 0, update, step)
    known = [one.observation for one in step.effects if isinstance(one, Observe)]
    assert [len(one.entries) for one in known if isinstance(one, CommitKnown)] == ([] if given_whole else [2])
    assert delivered == ([] if given_whole else [LETTER])
    assert replica.committed == (2 if given_whole else 4)
