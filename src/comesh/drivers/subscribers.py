"""Who wants to hear what a device says by itself.

Several may: when a group changes its leader, the old one and the new one both listen for a while, and neither
takes the device from the other. A token is acknowledged by the one that leads. Whoever does not renew its
subscription for SUBSCRIPTION_MS is forgotten; the core renews every five seconds.
"""

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

SUBSCRIPTION_MS: Final = 15_000.0
MAX_SUBSCRIBERS: Final = 16
"""Of one device; of more the one that renewed longest ago is forgotten."""

S = TypeVar("S", bound=Hashable)


class Subscribers(Generic[S]):
    def __init__(self) -> None:
        self._renewed_ms: dict[S, float] = {}

    def renew(self, subscriber: S, now_ms: float) -> bool:
        """Whether it is new."""
        is_new = self._renewed_ms.pop(subscriber, None) is None
        self._renewed_ms[subscriber] = now_ms
        if len(self._renewed_ms) > MAX_SUBSCRIBERS:
            del self._renewed_ms[next(iter(self._renewed_ms))]
        return is_new

    def at(self, now_ms: float) -> Iterator[S]:
        """Those that listen, after forgetting those that do not."""
        old = [one for one, since_ms in self._renewed_ms.items() if now_ms - since_ms > SUBSCRIPTION_MS]
        for one in old:
            del self._renewed_ms[one]
        return iter(tuple(self._renewed_ms))
