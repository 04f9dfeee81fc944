"""What members of a config say to each other (protocol, sections 3 to 5), each inside an `InConfig`."""

import msgspec

from comesh.core.group.config import Address, Config
from comesh.core.ids import Counter, DeviceId, DurationMs, GroupId
from comesh.core.records import Record, SaidEntry
from comesh.core.stamps import Ballot, Era
from comesh.core.values import Value
from comesh.core.work_messages import GroupMessage


class _Body(msgspec.Struct, frozen=True, array_like=True):
    """Base of all bodies."""


class Ask(_Body, frozen=True, tag=1):
    """Would you promise me this ballot? For none: do you lead?"""

    ballot: Ballot


class Answer(_Body, frozen=True, tag=2):
    """would: yes. able: it could lead itself. leader: the rank that it hears, if any."""

    ballot: Ballot
    would: bool
    able: bool
    whole: bool
    leader: int | None
    promised: Ballot


class Claim(_Body, frozen=True, tag=3):
    ballot: Ballot


class Promise(_Body, frozen=True, tag=4):
    """To follow nobody below this ballot; and the newest state that the member accepted."""

    ballot: Ballot
    accepted: Ballot
    number: Counter
    digest: Counter
    whole: bool
    era: Era


class Refuse(_Body, frozen=True, tag=5):
    """Not this ballot: a higher one was promised, or another leader's lease still runs."""

    ballot: Ballot
    promised: Ballot
    lease_left_ms: DurationMs


class Pull(_Body, frozen=True, tag=6):
    """Give me the state; this is what I have. nonce comes back."""

    accepted: Ballot
    number: Counter
    digest: Counter
    nonce: Counter


class State(_Body, frozen=True, tag=7):
    """The accepted state at `number`: all records, or the entries since `base`."""

    ballot: Ballot
    accepted: Ballot
    number: Counter
    digest: Counter
    committed: Counter
    base: int
    """-1: records holds everything."""
    records: tuple[Record, ...]
    entries: tuple[SaidEntry, ...]
    nonce: Counter
    config: Config
    sent_ms: Counter = 0


class Sync(_Body, frozen=True, tag=8):
    """A new leader opens its ballot with this state; who has another one pulls."""

    ballot: Ballot
    number: Counter
    digest: Counter
    era: Era
    sent_ms: Counter


class Update(_Body, frozen=True, tag=9):
    """Entries from number `first` on; none at all is a touch. sent_ms: by the leader's clock, whole
    milliseconds since it opened its ballot."""

    ballot: Ballot
    first: Counter
    entries: tuple[SaidEntry, ...]
    committed: Counter
    sent_ms: Counter
    busy: bool = False


class UpdateWithMessages(Update, frozen=True, tag=25):
    """With messages that wait for the commit of these entries or earlier ones. The receiver knows of it
    before the leader does: once it has accepted them, two have, and two are a quorum here."""

    messages: tuple[GroupMessage, ...] = ()


class Acked(_Body, frozen=True, tag=10):
    """The member has everything up to number, written. sent_ms: of what it answers."""

    ballot: Ballot
    number: Counter
    sent_ms: Counter


class Gap(_Body, frozen=True, tag=11):
    """The member cannot follow: this is what it has. The leader answers with a State."""

    ballot: Ballot
    accepted: Ballot
    number: Counter
    digest: Counter


class GiveUp(_Body, frozen=True, tag=12):
    """The leader of this ballot stops; members need not wait for its lease."""

    ballot: Ballot


class Recover(_Body, frozen=True, tag=13):
    """I lost power, and perhaps what I acknowledged last. Only a leader may answer, with State."""

    nonce: Counter
    promised: Ballot


class Invite(_Body, frozen=True, tag=14):
    """You are to be a member of this next config; here is the state so far."""

    successor: Config
    number: Counter
    digest: Counter
    records: tuple[Record, ...] | None
    """None: you are sent a digest only, for you should have this state."""


class Ready(_Body, frozen=True, tag=15):
    """The base is on disk. store: the journal that will sit. number -1: it lacks the base, send all."""

    successor: int
    """The mark of the config that this is for."""
    store: int
    number: int
    digest: Counter


class Start(_Body, frozen=True, tag=16):
    """The handoff is committed: the config, its first state, and what lacks from the base."""

    successor: Config
    number: Counter
    digest: Counter
    base: int
    records: tuple[Record, ...]
    entries: tuple[SaidEntry, ...]


class Installed(_Body, frozen=True, tag=17):
    """The first state of this config is on disk. To the old leader and to rank 0 of the new config."""

    successor: int
    number: Counter


class Retire(_Body, frozen=True, tag=18):
    """A quorum of the successor is installed: forget the state, keep the tombstone."""

    successor: Config


class Moved(_Body, frozen=True, tag=19):
    """That config is over; this one is the newest that I know."""

    newest: Config


class Stranger(_Body, frozen=True, tag=20):
    """I do not sit in that config. Under the store of the seat: I was Ready, but never started; under
    another: the journal that sat is gone."""


class Probe(_Body, frozen=True, tag=21):
    """Would you ask this device? I got no answer."""

    device: DeviceId
    number: Counter


class Probed(_Body, frozen=True, tag=22):
    device: DeviceId
    number: Counter
    readings: dict[str, Value]
    error: str | None


class SeatGiven(_Body, frozen=True, tag=24):
    """That config came to be: this is it. The receiver has acknowledged nothing in it, and knows so: it may
    promise, and gets the state from the leader that is elected."""

    config: Config


Body = (
    Ask
    | Answer
    | Claim
    | Promise
    | Refuse
    | Pull
    | State
    | Sync
    | Update
    | Acked
    | Gap
    | GiveUp
    | Recover
    | Invite
    | Ready
    | Start
    | Installed
    | Retire
    | Moved
    | Stranger
    | Probe
    | Probed
    | SeatGiven
    | UpdateWithMessages
)


class InConfig(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """A message between members of a config, or to those invited to be. group, number, check: the address of
    the config. store: that the sender sits with, or OF_THE_SEAT."""

    group: GroupId
    number: Counter
    check: Counter
    store: int
    body: Body

    @property
    def address(self) -> Address:
        return Address(self.group, self.number, self.check)
