"""What a node does beside its work: takes newer documents, says when it is ready, looks after its chores."""

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Final

from comesh.runtime.documents import DocumentError
from comesh.runtime.log import Log
from comesh.runtime.node_view import NodeView

EVERY_S: Final = 0.5
STILL_WAITS_S: Final = 10.0
"""How often a node that is not ready yet says what it waits for."""


class Housekeeping:
    def __init__(
        self,
        view: NodeView,
        log: Log,
        *,
        adopt: Callable[[int], None],
        on_ready: Callable[[], None],
        version: int,
    ) -> None:
        """adopt: has the node go by the newest version of the document; DocumentError: it cannot.
        version: the one that it goes by now.
        """
        self.was_ready = False
        self.broken_chore = ""
        """What a person should know of a chore that ended; empty: all go on."""
        self._view = view
        self._log = log
        self._adopt = adopt
        self._on_ready = on_ready
        self._version = version
        self._chores: list[asyncio.Task[None]] = []

    def begin(self, *chores: Coroutine[Any, Any, None]) -> None:
        """chores: what else goes on as long as the node runs."""
        self._chores = [asyncio.create_task(one) for one in (self._keep_house(), *chores)]
        for chore in self._chores:
            chore.add_done_callback(self._on_chore_ended)

    def close(self) -> None:
        for chore in self._chores:
            chore.cancel()

    def _on_chore_ended(self, chore: asyncio.Task[None]) -> None:
        """None of them ends by itself. The node goes on without it, and says so."""
        wrong = None if chore.cancelled() else chore.exception()
        if wrong is not None:
            why = f"{type(wrong).__name__}: {wrong}"
            self.broken_chore = f"an error inside, please report it, and start this node again: {why}"
            self._log.error(self.broken_chore + "\n" + "".join(traceback.format_exception(wrong)))

    async def _keep_house(self) -> None:
        waited_s = 0.0
        while True:
            newest = self._view.program.version
            if newest != self._version:
                self._version = newest
                self._take_version(newest)
            if not self.was_ready:
                waited_s += EVERY_S
                self.was_ready = self._view.ready
                if self.was_ready:
                    self._on_ready()
                    self._log.say("ready")
                elif waited_s % STILL_WAITS_S == 0:
                    self._tell_what_it_waits_for()
            await asyncio.sleep(EVERY_S)

    def _take_version(self, version: int) -> None:
        try:
            self._adopt(version)
            self._log.say(f"deployment version {version}")
        except DocumentError as wrong:
            self._log.error(f"deployment version {version}: {wrong}")

    def _tell_what_it_waits_for(self) -> None:
        unreached = "; ".join(f"{node}: {why}" for node, why in self._view.unreached().items())
        self._log.warn(
            "not ready yet: it waits for the other members of its groups"
            + (f". Not reached: {unreached}" if unreached else "")
        )
