"""A proxy in a thread of its own, for whoever starts processes and waits for them without an event loop.

What is broken (`set_link`, `cut`, `partition`, `deafen`, `silence`, `heal`) is set from any thread: each is
one change of a table.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from comesh.lab.proxy import Address, Proxy

ANSWER_S: Final = 10.0
"""Maximum time that opening and closing take."""
_T = TypeVar("_T")


class ProxyThread:
    def __init__(self, *, seed: int = 0) -> None:
        self.proxy = Proxy(seed=seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def start(self, nodes: Mapping[str, Address]) -> dict[str, dict[str, Address]]:
        self._thread.start()
        return self._do(self.proxy.start(nodes))

    def close(self) -> None:
        if self._thread.is_alive():
            self._do(self.proxy.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(ANSWER_S)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_S)
