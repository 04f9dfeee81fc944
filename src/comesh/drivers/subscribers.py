"""Tracks who subscribed to a device's reports, and when a node renews its subscriptions.

There may be several: when a group changes its leader, the old one and the new one both listen for a while,
and neither takes the device from the other. A token is acknowledged by the one that leads. A subscriber that
does not renew its subscription for SUBSCRIPTION_MS is forgotten; the core renews every five seconds.
"""

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

SUBSCRIPTION_MS: Final = 15_000.0
MAX_SUBSCRIBERS: Final = 16
"""Maximum subscribers per device; beyond it, the one that renewed longest ago is forgotten."""

LISTEN_EVERY_MS: Final = 5000.0
"""Interval at which a node renews its subscription to a device that it reads."""

S = TypeVar("S", bound=Hashable)


class Subscribers(Generic[S]):
    def __init__(self) -> None:
        self._renewed_ms: dict[S, float] = {}

    def renew(self, subscriber: S, now_ms: float) -> bool:
        """Renew a subscription. True: it is new."""
        is_new = self._renewed_ms.pop(subscriber, None) is None
        self._renewed_ms[subscriber] = now_ms
        if len(self._renewed_ms) > MAX_SUBSCRIBERS:
            del self._renewed_ms[next(iter(self._renewed_ms))]
        return is_new

    def at(self, now_ms: float) -> Iterator[S]:
        """Returns the live subscribers, after dropping those that expired."""
        old = [one for one, since_ms in self._renewed_ms.items() if now_ms - since_ms > SUBSCRIPTION_MS]
        for one in old:
            del self._renewed_ms[one]
        return iter(tuple(self._renewed_ms))


class Renewals(Generic[S]):
    """Records when a node last renewed its subscription to each device that it reads."""

    def __init__(self) -> None:
        self._renewed_ms: dict[S, float] = {}

    def are_due(self, device: S, now_ms: float) -> bool:
        """True if it is time to subscribe to the device that is being read; counts as a renewal."""
        if now_ms - self._renewed_ms.get(device, -LISTEN_EVERY_MS) < LISTEN_EVERY_MS:
            return False
        self._renewed_ms[device] = now_ms
        return True

    def forget(self, device: S) -> None:
        self._renewed_ms.pop(device, None)
