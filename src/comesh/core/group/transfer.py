"""States on their way from one member to another: whole, or as the entries that lack."""

from typing import TYPE_CHECKING

from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import Gap, Pull, Recover, State
from comesh.core.stamps import NO_BALLOT, Ballot
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.replica import Replica


def state_for(replica: "Replica", asked: Gap | Pull | Recover, ballot: Ballot, step: Step) -> State:
    """The accepted state, for a member that has what it says it accepted."""
    if isinstance(asked, Recover):
        accepted, number = NO_BALLOT, 0
    else:
        accepted, number = asked.accepted, asked.number
    nonce = 0 if isinstance(asked, Gap) else asked.nonce
    ledger = replica.ledger
    entries = ledger.said_since(number) if _is_prefix(replica, accepted, number) else None
    return State(
        ballot=ballot,
        accepted=replica.accepted,
        number=ledger.number,
        digest=ledger.digest,
        committed=replica.committed,
        base=-1 if entries is None else number,
        records=ledger.snapshot() if entries is None else (),
        entries=entries or (),
        nonce=nonce,
        config=replica.config,
        sent_ms=0 if replica.leadership is None else replica.leadership.sent_ms(step),
    )


def _is_prefix(replica: "Replica", accepted: Ballot, number: int) -> bool:
    """One leader's history only grows: what was accepted under its ballot is a beginning of it."""
    if accepted == replica.accepted and accepted != NO_BALLOT:
        return number <= replica.ledger.number
    return accepted == replica.opened_with != NO_BALLOT and number <= replica.opened_number


def adopt(ledger: Ledger, state: State) -> bool:
    """Make the ledger what the state says; False if it does not fit what is held."""
    if state.base < 0:
        ledger.replace(state.records, state.number)
        return True
    if state.base != ledger.number:
        return False
    before = ledger.snapshot()
    follows = all(ledger.follow(entry) is not None for entry in state.entries)
    if not follows or ledger.digest != state.digest:
        ledger.replace(before, state.base)
        return False
    return True
