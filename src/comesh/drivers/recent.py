"""Remembers recent requests and their answers, so that a duplicate is not carried out twice.

Datagrams may come twice. A request is known by who asked and its number there; while it is being worked on
there is no answer yet, and its double is dropped.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

MAX_RECENT: Final = 4096
"""Maximum number of requests remembered; the oldest is forgotten first."""

A = TypeVar("A")


class Recent(Generic[A]):
    def __init__(self, most: int = MAX_RECENT) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, A | None] = OrderedDict()

    def begin(self, request: Hashable) -> bool:
        """Remember a request that is being worked on. False: it is a duplicate."""
        if request in self._answers:
            return False
        self._answers[request] = None
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return True

    def end(self, request: Hashable, answer: A) -> None:
        if request in self._answers:
            self._answers[request] = answer

    def answer(self, request: Hashable) -> A | None:
        return self._answers.get(request)

    def __len__(self) -> int:
        return len(self._answers)
