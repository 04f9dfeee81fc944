"""How a run gets the locks of its devices (protocol, section 7), and how to add a way of one's own.

A strategy is a list of manners, one per attempt, the last for all further ones. A manner says three things:
what the group of a device does with a request that it cannot grant at once (AtDevices), which devices are
asked for together (rounds), and how long the run pauses after an attempt that was given back (rest).

Rules:
- what travels and what is journaled of a request is the word of its AtDevices, one of three: a group of
  devices need not know the strategy. Only a run's own record names it;
- safety is none of a strategy's business. Grants are committed by the device's group and given back by the
  run, whatever was asked for in which order; a strategy decides how long it takes;
- no strategy can close a circle of waiting. Who queues first come, first served asks in the global order, so
  a manner with QUEUE has no rounds of its own. Who is refused does not wait, and BY_AGE everybody waits for
  older runs only: those two may ask in any order;
- what a run asked for in an attempt stays asked for until it is granted or the attempt is given back: rounds
  depend on the run's devices only, never on what it holds, so that the next leader finds the same ones;
- a mean pause is at least a round trip and at most MAX_REST_MS; each is half to one and a half of it.
"""

from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from comesh.core.ids import DeviceId, GroupId
from comesh.core.registry import Registry
from comesh.core.words import Word


class Strategy(Word):
    """The built-in ones. In requests, holds and queues: what the group of the device does."""

    SEQUENTIAL = 1
    OPTIMISTIC = 2
    PRIORITY = 3


StrategyName: TypeAlias = Strategy | str
"""A word for the built-in ones, the registered name for another."""


class Batch(StrEnum):
    CLUSTER = "cluster"
    NONE = "none"


class LockOrder(StrEnum):
    CLUSTER = "cluster"
    DEVICE = "device"


class AtDevices(Enum):
    """What the group of a device does with a request that it cannot grant at once; the value travels."""

    QUEUE = Strategy.SEQUENTIAL
    """It waits: first come, first served."""
    REFUSE = Strategy.OPTIMISTIC
    """It is refused, and the run gives the attempt back."""
    BY_AGE = Strategy.PRIORITY
    """It waits, the oldest run first; a younger holder that does not execute yet is asked to give back."""


class Wanted(NamedTuple):
    """A device that the run needs, and the group that looks after it."""

    device: DeviceId
    group: GroupId


Rounds: TypeAlias = Callable[[Sequence[Wanted]], Sequence[Sequence[DeviceId]]]
"""From what a run needs, in the order of its steps, to what is asked for together: the first round at once,
the next when all of the one before is held. A device that no round has comes last."""
Rest: TypeAlias = Callable[[int, float], float]
"""From the number of the attempt that was given back (the first is 1) and a usual round trip in ms to the
mean pause in ms."""

REST_ROUND_TRIPS = 3.0
"""The first pause after an attempt was refused; each further one is twice as long on average."""
MAX_REST_MS = 10_000.0


def doubling_rest(attempt: int, round_trip_ms: float) -> float:
    """The pause of `optimistic`."""
    return REST_ROUND_TRIPS * round_trip_ms * 2.0 ** min(attempt - 1, 16)


class Manner(msgspec.Struct, frozen=True):
    """How one attempt asks for locks."""

    at_devices: AtDevices
    rounds: Rounds | None = None
    """None: all at once; with QUEUE the global order, one group or one device at a time."""
    rest: Rest | None = None
    """None: after a refusal as `optimistic`, and at once after an older run took precedence."""


class LockStrategy(msgspec.Struct, frozen=True):
    manners: tuple[Manner, ...]

    def manner(self, attempt: int) -> Manner:
        return self.manners[min(max(attempt, 1), len(self.manners)) - 1]

    def uses(self, at_devices: AtDevices) -> bool:
        """In some attempt."""
        return any(manner.at_devices is at_devices for manner in self.manners)


LOCK_STRATEGIES: Registry[LockStrategy] = Registry("lock strategy")


def register_lock_strategy(name: str, *manners: Manner) -> None:
    """manners: of the first attempt, the second, and so on; the last is that of all further ones.

    ValueError: it could close a circle of waiting, or the name is taken.
    """
    if not manners:
        raise ValueError(f"{name!r} has no manner: a strategy says how its first attempt asks")
    for manner in manners:
        if manner.at_devices is AtDevices.QUEUE and manner.rounds is not None:
            raise ValueError(
                f"{name!r} waits first come, first served, in rounds of its own: runs could wait for each "
                "other in a circle. Take AtDevices.BY_AGE with rounds, or AtDevices.QUEUE without"
            )
    LOCK_STRATEGIES.register(name, LockStrategy(manners))


register_lock_strategy("sequential", Manner(AtDevices.QUEUE))
register_lock_strategy("optimistic", Manner(AtDevices.REFUSE, rest=doubling_rest))
register_lock_strategy("priority", Manner(AtDevices.BY_AGE))

_BUILT_IN: dict[str, Strategy] = {str(one): one for one in Strategy}
_UNKNOWN = LockStrategy((Manner(AtDevices.BY_AGE),))
"""Strategy for a run whose own this node lacks: an older version of the deployment had it. By age no circle
forms, in whatever order the leader before asked."""


def strategy_named(name: str) -> StrategyName:
    """A registered name, as records have it."""
    return _BUILT_IN.get(name, name)


def is_known(strategy: StrategyName) -> bool:
    return LOCK_STRATEGIES.find(str(strategy)) is not None


def strategy_of(strategy: StrategyName) -> LockStrategy:
    return LOCK_STRATEGIES.find(str(strategy)) or _UNKNOWN
