"""What groups say to each other about devices and routines (protocol, sections 6 and 7), each in a
`GroupMessage`.

A message goes from the leader of one group to the leader of another, after what it speaks of is committed.
Every request is repeated until answered, and every one may come twice, late, or never.
"""

import msgspec

from comesh.core.actions import Action, Origin
from comesh.core.ids import Counter, DeviceId, GroupId, NodeId, RoutineId
from comesh.core.records import Held, Outcome, Stage
from comesh.core.stamps import Era, Fence, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.core.values import Value


class _Body(msgspec.Struct, frozen=True, array_like=True):
    """Base of all bodies."""


# -- to the group of a device ------------------------------------------------------------------------------


class Home(msgspec.Struct, frozen=True, array_like=True):
    """The group of a run, and who leads it."""

    group: GroupId
    leader: NodeId


class LockRequest(_Body, frozen=True, tag=1):
    """All these devices, of one group. Answered by LockState, again whenever the state changes."""

    run: RunId
    attempt: Counter
    devices: tuple[DeviceId, ...]
    fired_ms: float
    strategy: Strategy
    fence: Fence
    home: Home | None = None
    """Where another group passed the request on; None: who sent it. By the fence above."""
    onward: tuple[tuple[GroupId, tuple[DeviceId, ...]], ...] = ()
    """Groups to ask next: a group that grants all of it at once asks the first of these for its devices, and
    so on."""


class Release(_Body, frozen=True, tag=2):
    """Frees what this run has or waits for, of attempts up to this one. Answered by Released."""

    run: RunId
    attempt: Counter
    devices: tuple[DeviceId, ...]


class FenceAsked(_Body, frozen=True, tag=3):
    """A new leader of the routine speaks from now on. Answered by Fenced."""

    run: RunId
    attempt: Counter
    fence: Fence
    devices: tuple[DeviceId, ...]


class Command(_Body, frozen=True, tag=4):
    """Answered by CommandState, at once and when the outcome is known."""

    origin: Origin
    device: DeviceId
    action: Action
    fence: Fence


class Watch(_Body, frozen=True, tag=5):
    """A new leader of routines wants the current readings of these devices. Answered by Reading, of each."""

    devices: tuple[DeviceId, ...]


class Seen(_Body, frozen=True, tag=6):
    """The reading of this version has come."""

    device: DeviceId
    version: Stamp


class EventsSeen(_Body, frozen=True, tag=7):
    """A routine has committed all events of a device up to this one."""

    device: DeviceId
    routine: RoutineId
    sequence: Counter


class RunState(_Body, frozen=True, tag=8):
    """The state of a run that was asked about. stage None: it has ended, or never was. held: committed locks
    of this attempt, of the devices asked about. era: the one that was asked with, now committed here."""

    run: RunId | None
    routine: RoutineId
    stage: Stage | None
    attempt: Counter
    held: tuple[Held, ...]
    devices: tuple[DeviceId, ...]
    era: Era | None
    fired_ms: float = 0.0
    strategy: Strategy = Strategy.SEQUENTIAL


# -- to the group of a routine -----------------------------------------------------------------------------


class LockAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer about one device: granted (with its stamp and the era of its group), queued, or refused (and
    why)."""

    device: DeviceId
    granted: Stamp | None
    era: Era
    refused: str = ""
    """held: somebody has it (optimistic). released: the mark is at or beyond the request. unknown: no such
    device at this deployment version."""

    @property
    def queued(self) -> bool:
        return self.granted is None and not self.refused


class LockState(_Body, frozen=True, tag=20):
    run: RunId
    attempt: Counter
    answers: tuple[LockAnswer, ...]
    passed_on: GroupId | None = None
    """The group that has been asked for its devices after that."""


class Released(_Body, frozen=True, tag=21):
    run: RunId
    attempt: Counter
    devices: tuple[DeviceId, ...]


class StepState(msgspec.Struct, frozen=True, array_like=True):
    """outcome None: still under way."""

    step: Counter
    outcome: Outcome | None
    detail: str


class FencedDevice(msgspec.Struct, frozen=True, array_like=True):
    device: DeviceId
    held: Stamp | None
    """The stamp of the run's grant; None: it does not hold the lock."""
    steps: tuple[StepState, ...]


class Fenced(_Body, frozen=True, tag=22):
    run: RunId
    attempt: Counter
    fence: Fence
    devices: tuple[FencedDevice, ...]
    era: Era


class CommandState(_Body, frozen=True, tag=23):
    run: RunId
    attempt: Counter
    device: DeviceId
    fence: Fence
    state: StepState


class Wound(_Body, frozen=True, tag=24):
    """An older run waits for this device: give it back, unless you are executing. stop: a person wants the
    lock broken: the run fails, also if it executes, and so gives all of its devices back."""

    run: RunId
    attempt: Counter
    device: DeviceId
    stop: str = ""


class RunQuery(_Body, frozen=True, tag=25):
    """What of these devices does the routine hold? run None: whatever run is live. era: of a group that
    reconciles; to be committed before the answer."""

    run: RunId | None
    routine: RoutineId
    devices: tuple[DeviceId, ...]
    era: Era | None


class Reading(_Body, frozen=True, tag=26):
    """The latest of a device. values None: it is down, or nobody has asked it yet."""

    device: DeviceId
    version: Stamp
    values: dict[str, Value] | None
    up: bool
    watched: Fence | None = None
    """Fence of the node that asked, where this answers a Watch."""


class DeviceEvents(_Body, frozen=True, tag=27):
    """Events in order, all that this routine has not confirmed."""

    device: DeviceId
    routine: RoutineId
    events: tuple["SequencedEvent", ...]


class SequencedEvent(msgspec.Struct, frozen=True, array_like=True):
    sequence: Counter
    values: dict[str, Value]
    at_ms: float


class Fire(_Body, frozen=True, tag=28):
    """By hand. The same request id fires once. Answered by Ordered."""

    routine: RoutineId
    request: str
    by: str = ""


# -- orders of people --------------------------------------------------------------------------------------


class _Wish(msgspec.Struct, frozen=True, array_like=True):
    """Base of all wishes."""


class Pause(_Wish, frozen=True, tag=1):
    """It does not fire any more, and its live run fails before its next command. None: no routine of the
    group does, and all of its runs fail."""

    routine: RoutineId | None


class Resume(_Wish, frozen=True, tag=2):
    routine: RoutineId | None


class Maintain(_Wish, frozen=True, tag=3):
    """Routines neither command the device nor hear of it; people command it."""

    device: DeviceId


class Restore(_Wish, frozen=True, tag=4):
    """The maintenance is over."""

    device: DeviceId


class BreakLock(_Wish, frozen=True, tag=5):
    """The run that holds the device is stopped first; it is granted to others once that is known."""

    device: DeviceId
    run: str | None = None
    """The holder that is meant, as people are told it; None: whoever it is."""


class SetDevice(_Wish, frozen=True, tag=6):
    """A command by hand: a run of one step, through the lock like any other."""

    device: DeviceId
    action: Action


class Remember(_Wish, frozen=True, tag=7):
    """Something that was done by other means, for the audit log."""

    what: str


class Reach(_Wish, frozen=True, tag=8):
    """Answered once the group works by this deployment version; it hands off early for that."""

    version: Counter


Wish = Pause | Resume | Maintain | Restore | BreakLock | SetDevice | Remember | Reach


class Order(_Body, frozen=True, tag=29):
    """What a person wants of a group. The same request is carried out once. Answered by Ordered."""

    request: str
    by: str
    at_ms: float
    """By the wall clock of the node that was asked."""
    wish: Wish


# -- to whoever asked, and about the group itself ----------------------------------------------------------


class Ordered(_Body, frozen=True, tag=40):
    """What a person wanted is committed, or why it is not done. run: the one that it fired."""

    request: str
    run: RunId | None
    why_not: str = ""


class NotLeader(_Body, frozen=True, tag=41):
    """I do not serve that group; this is who might, if I know. about: the fence of that claim."""

    group: GroupId
    leader: NodeId | None
    about: Fence


class Apply(_Body, frozen=True, tag=43):
    """To the group `deployment`: this text is the version after base. Answered by Applied."""

    base: Counter
    text: str
    request: str
    by: str = ""
    why: str = ""


class Applied(_Body, frozen=True, tag=44):
    request: str
    version: Counter
    why_not: str = ""


ToDevices = LockRequest | Release | FenceAsked | Command | Watch | Seen | EventsSeen | RunState
ToRoutines = LockState | Released | Fenced | CommandState | Wound | RunQuery | Reading | DeviceEvents | Fire
Work = ToDevices | ToRoutines | Order | Ordered | NotLeader | Apply | Applied
Asking = (
    LockRequest
    | Release
    | FenceAsked
    | Command
    | Watch
    | RunQuery
    | Reading
    | DeviceEvents
    | Fire
    | Order
    | Apply
)
"""Bodies that are repeated until they are answered."""


def part_for(body: Work) -> str:
    """The part of a served group that a message is for."""
    if isinstance(body, ToDevices):
        return "devices"
    if isinstance(body, Order):
        return "orders"
    return "deployment" if isinstance(body, Apply) else "routines"


class GroupMessage(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """From the leader of one group (or, without one, from a node) to the leader of another, or back."""

    to: GroupId | None
    """None: to the node itself."""
    sender: GroupId | None
    by: Fence | None
    """Leader of the sender, so that the receiver knows where to answer."""
    version: Counter
    """The deployment version that the sender works by."""
    body: Work


class DocumentAsked(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Give me the deployment document of this version."""

    version: Counter


class DocumentGiven(msgspec.Struct, frozen=True, array_like=True, tag=23):
    version: Counter
    text: str
