"""Spreads seeds over processes. Ctrl-C once: the seeds under way are finished; twice: it stops at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, resource_tracker
from types import FrameType

from comesh.cli.fuzz_findings import Finding
from comesh.cli.terminal import err, fail

_LOOK_S = 0.25
"""Interval at which a wish to stop is checked."""


class Stopping:
    """Takes Ctrl-C while it is entered."""

    def __init__(self) -> None:
        self.asked = False
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Stopping":
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        err.print("stopping: seeds under way are finished first; Ctrl-C again: at once")


def findings(
    seeds: Iterable[int],
    run: Callable[[int], Finding],
    *,
    jobs: int,
    deadline: float | None,
    stopping: Stopping,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[Finding]:
    """Yields findings as they come in; seeds are handed out only as fast as they are worked off, until there
    are enough."""

    def over() -> bool:
        return stopping.asked or enough() or (deadline is not None and time.monotonic() >= deadline)

    if jobs == 1:
        for seed in seeds:
            if over():
                return
            yield run(seed)
        return
    left = iter(seeds)
    under_way: set[Future[Finding]] = set()
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        while True:
            while len(under_way) < 2 * jobs and not over():
                following = next(left, None)
                if following is None:
                    break
                with _deaf_children():
                    under_way.add(pool.submit(run, following))
            if over():
                under_way = {future for future in under_way if not future.cancel()}
            if not under_way:
                break
            done, under_way = wait(under_way, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            yield from sorted((future.result() for future in done), key=lambda finding: finding.seed)
        pool.shutdown()
    except BrokenProcessPool:
        fail("a process was killed, perhaps for want of memory; go on with --resume and fewer --jobs")
    finally:
        # Only where something went wrong is anything left: what is under way is not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        if under_way:
            for child in active_children():
                child.terminate()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Keeps processes that start here from Ctrl-C, even while they import.

    It reaches all processes of a terminal, and only the first one is to act on it. What is blocked is
    inherited; here it is heard again afterwards.
    """
    resource_tracker.ensure_running()  # Where it starts only now, it would let interrupts through again.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
