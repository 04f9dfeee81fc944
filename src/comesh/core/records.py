"""The committed state of a group, as records that replace each other by key. States never merge.

A leader stages changed records; whoever applies an update puts each in the place of the one with the same
key. So followers need no logic, and a state is the same as its history.
"""

from enum import IntEnum, StrEnum

import msgspec

from comesh.core.actions import Action, Origin, RoutineStep
from comesh.core.group.config import Config
from comesh.core.ids import Counter, DeviceId, GroupId, RoutineId
from comesh.core.stamps import FIRST_ERA, Era, Fence, RunId, Stamp
from comesh.core.strategies import Strategy, StrategyName
from comesh.core.traces import Cause
from comesh.core.values import Value
from comesh.core.words import Word


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """Base of all records; each has a key."""


class GroupRecord(_Record, frozen=True, tag=1):
    """What the group as a whole must not forget."""

    era: Era = FIRST_ERA
    eras: dict[GroupId, Era] = {}
    """Eras of other groups that asked about runs: grants of an older era, not committed here, are ignored."""

    @property
    def key(self) -> str:
        return "group"


class HandoffRecord(_Record, frozen=True, tag=2):
    """The last entry of a config: its one successor."""

    successor: Config

    @property
    def key(self) -> str:
        return "handoff"


class DocumentRecord(_Record, frozen=True, tag=3):
    """In the group `deployment`: the newest version, and the request that brought it."""

    version: Counter
    text: str
    request: str = ""

    @property
    def key(self) -> str:
        return "document"


class VersionRecord(_Record, frozen=True, tag=8):
    """In the group `deployment`: who applied a version, and when."""

    version: Counter
    by: str
    at_ms: float
    why: str = ""

    @property
    def key(self) -> str:
        return f"version/{self.version}"


# -- orders of people --------------------------------------------------------------------------------------


class Kind(StrEnum):
    PAUSED = "paused"
    """A routine does not fire. Of nothing: no routine of the group does."""
    MAINTAINED = "maintained"
    """A device is commanded by hand only, and what it senses reaches no routine."""
    BREAKING = "breaking"
    """The run that holds a device is to be stopped, so that it gives the device back."""


class Standing(_Record, frozen=True, tag=9):
    """An order that stands until it is lifted or carried out."""

    kind: Kind
    of: str
    """A routine or a device; empty: all of the group."""
    by: str
    at_ms: float
    run: RunId | None = None
    """The holder whose lock is broken."""

    @property
    def key(self) -> str:
        return standing_key(self.kind, self.of)


class AuditRecord(_Record, frozen=True, tag=10):
    """An action of a person in this group. A later one takes the place of the oldest."""

    slot: Counter
    number: Counter
    at_ms: float
    by: str
    what: str
    request: str
    run: RunId | None = None

    @property
    def key(self) -> str:
        return f"audit/{self.slot}"


# -- devices -----------------------------------------------------------------------------------------------


class Status(Word):
    UNKNOWN = 1
    UP = 2
    DOWN = 3


class Hold(msgspec.Struct, frozen=True, array_like=True):
    """A held lock. A grant is irrevocable: only the holder's release, a reconciliation or an operator ends
    it."""

    run: RunId
    attempt: Counter
    strategy: Strategy
    fired_ms: float
    stamp: Stamp
    """Stamp of the grant."""
    fence: Fence | None = None
    """The highest fence of the routine's leaders that was committed here; lower ones are refused."""
    home: GroupId | None = None
    """The group that asked: also where a newer deployment version no longer has the routine."""


class Waiter(msgspec.Struct, frozen=True, array_like=True):
    run: RunId
    attempt: Counter
    strategy: Strategy
    fired_ms: float
    fence: Fence | None = None
    home: GroupId | None = None


class Outcome(Word):
    DONE = 1
    FAILED = 2
    UNKNOWN = 3
    """It may have happened or not."""
    REFUSED = 4
    """It was not tried: the run does not hold the lock, or its fence is old."""


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A command on its way to a device, committed before it leaves, and its outcome until the release."""

    origin: Origin
    action: Action
    flight_ms: float
    """How long after its timeout it may still land."""
    outcome: Outcome | None = None
    detail: str = ""
    landed: bool = False
    """Nothing of it can happen any more: it was confirmed, or its flight is over."""


class ReleaseMark(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The highest (run, attempt) of a routine that was released; older requests are refused with it."""

    run: RunId
    attempt: Counter


class EventRecord(msgspec.Struct, frozen=True, array_like=True):
    sequence: Counter
    values: dict[str, Value]
    at_ms: float
    """Wall time at which it was committed."""


class DeviceRecord(_Record, frozen=True, tag=4):
    device: DeviceId
    status: Status = Status.UNKNOWN
    status_version: Counter = 0
    hold: Hold | None = None
    queue: tuple[Waiter, ...] = ()
    released: dict[RoutineId, ReleaseMark] = {}
    calls: tuple[Call, ...] = ()
    """Calls of the holder's run; and of former holders as long as they may still land."""
    sequence: Counter = 0
    """Number of the last event."""
    token: str = ""
    """By which the device knew the last event: what comes again with it is no new one."""
    events: tuple[EventRecord, ...] = ()
    """Not seen by every routine that they concern."""
    settled: Era = FIRST_ERA
    """The era of this group in which every routine that names the device said what it holds. Older than the
    group's: grants and commands are withheld."""
    tokens: tuple[str, ...] = ()
    """Tokens of the events before the last one: a device may repeat several that it heard no acknowledgement
    of."""

    @property
    def key(self) -> str:
        return "device/" + self.device


# -- routines ----------------------------------------------------------------------------------------------


class Stage(IntEnum):
    ACQUIRING_LOCKS = 1
    EXECUTING = 2
    RELEASING_LOCKS = 3


class Firing(msgspec.Struct, frozen=True, array_like=True):
    """A firing that waits for the live run of its routine to end."""

    run: RunId
    fired_ms: float
    cause: Cause


class Ended(msgspec.Struct, frozen=True, array_like=True):
    run: RunId
    reason: str
    """Empty: finished."""


class RoutineRecord(_Record, frozen=True, tag=5):
    routine: RoutineId
    birth: Counter
    truth: bool | None = None
    """Last known truth of the clause."""
    true_since_ms: float | None = None
    """When `for:` began to count; None: it does not."""
    instant_ms: float | None = None
    """The last instant of the schedule that was fired for, or passed over."""
    requests: tuple[tuple[str, RunId], ...] = ()
    """The last firings by hand, by request id."""
    marks: dict[DeviceId, int] = {}
    """The last event of each device that was taken."""
    cooldown_until_ms: float = 0.0
    waiting: tuple[Firing, ...] = ()
    ended: Ended | None = None
    """The last run that ended."""

    @property
    def key(self) -> str:
        return "routine/" + self.routine


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A lock that the run's group has committed as held."""

    device: DeviceId
    stamp: Stamp
    era: Era


class StepResult(msgspec.Struct, frozen=True, array_like=True):
    outcome: Outcome
    detail: str = ""


class RunRecord(_Record, frozen=True, tag=6):
    """The live run of a routine. There is none while it is NOT_TRIGGERED."""

    run: RunId
    stage: Stage
    attempt: Counter
    fired_ms: float
    cause: Cause
    strategy: StrategyName
    steps: tuple[RoutineStep, ...]
    groups: dict[DeviceId, GroupId]
    """The devices that it needs, in the order of its steps, and who looks after them."""
    held: tuple[Held, ...] = ()
    """Locks of this attempt."""
    to_release: tuple[tuple[DeviceId, GroupId, int], ...] = ()
    """Locks to give back: device, its group, up to which attempt; until acknowledged."""
    progress: tuple[StepResult, ...] = ()
    """Results of the first steps, in order."""
    era: Era = FIRST_ERA
    """Era of this group in which the run's locks were confirmed; if it is older than the group's, they must
    be confirmed again."""
    reason: str = ""
    """Why it failed; empty: it did not."""

    @property
    def key(self) -> str:
        return "run/" + self.run.routine


class Gone(_Record, frozen=True, tag=7):
    """No record has this key any more."""

    gone: str

    @property
    def key(self) -> str:
        return self.gone


class Changed(_Record, frozen=True, tag=11):
    """Stands in a message for a record: what differs from the one that had its key (`group/ledger.py`)."""

    key: str
    patch: bytes


Record = (
    GroupRecord
    | HandoffRecord
    | DocumentRecord
    | DeviceRecord
    | RoutineRecord
    | RunRecord
    | Gone
    | VersionRecord
    | Standing
    | AuditRecord
)
Entry = tuple[Record, ...]
"""What one update carries: one record per key."""
SaidEntry = tuple[Record | Changed, ...]
"""The same on its way, for who has all entries before it."""


def standing_key(kind: Kind, of: str) -> str:
    return f"{kind.value}/{of}"


def device_key(device: DeviceId) -> str:
    return "device/" + device


def routine_key(routine: RoutineId) -> str:
    return "routine/" + routine


def run_key(routine: RoutineId) -> str:
    return "run/" + routine
