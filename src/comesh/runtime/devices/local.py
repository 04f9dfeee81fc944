"""`LocalDevice`: a device that this node reaches by its own driver, and its open calls.

Rules:
- nobody waits for the driver: what can be had at once is answered at once, a driver that calls back answers
  when it does, all else is waited for in a task, and no longer than was asked for;
- whatever a driver raises is an answer. Of a command that has no answer, or ended in a way that no driver
  should, it is not known whether it was done: the answer is the core's word for that, NO_ANSWER, and what
  people should read is told as trouble;
- at most MAX_OPEN_CALLS at a time; what is refused for that was not done.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from comesh.core.devices.calls import NO_ANSWER, TOO_LATE
from comesh.core.ids import DeviceId, NodeId
from comesh.drivers.interface import (
    CallingDriver,
    DeviceCommand,
    DeviceFailedError,
    Driver,
    NoAnswerError,
    PromptDriver,
    Readings,
    TooLateError,
    no_answer,
    timeout_of,
)
from comesh.drivers.pending import PendingCalls
from comesh.drivers.scheduler import Scheduler
from comesh.drivers.subscribers import Subscribers

MAX_OPEN_CALLS: Final = 64
"""Maximum unanswered calls per device."""

Answer = Callable[[Readings, str | None], None]
"""Called with all readings, or with none and the reason."""
Trouble = Callable[[DeviceId, str], None]
Reported = Callable[["LocalDevice", Readings, str | None], None]


class LocalDevice:
    def __init__(
        self,
        device: DeviceId,
        driver: Driver,
        scheduler: Scheduler,
        *,
        reported: Reported,
        trouble: Trouble,
        counters: Counter[str],
    ) -> None:
        self.device = device
        self.driver = driver
        self.subscribers: Subscribers[NodeId] = Subscribers()
        self.sequence = 0
        """Counts the answers and reports of the device."""
        self._prompt = driver if isinstance(driver, PromptDriver) else None
        self._calling = driver if isinstance(driver, CallingDriver) else None
        self._scheduler = scheduler
        self._calls: PendingCalls[None, Readings | Exception] = PendingCalls(
            scheduler, max_each=MAX_OPEN_CALLS
        )
        self._reported = reported
        self._trouble = trouble
        self._counters = counters
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start to open the driver; calls wait until it is open."""
        self._opening = asyncio.get_running_loop().create_task(self._open())

    async def close(self) -> None:
        self._calls.forget_all()
        tasks = [*self._tasks, *([self._opening] if self._opening is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self.driver.close()
        except Exception as wrong:  # a driver that fails to close must not stop the node from ending
            self._unexpected("close", wrong)

    # -- calls -------------------------------------------------------------------------------------------

    def ask(self, asked: DeviceCommand | None, answer: Answer, until_ms: float = math.inf) -> None:
        """Start a command or a read. Answers once, at once or later; never blocks, never raises. It is not
        begun after until_ms."""
        if self._prompt is not None and self._opening is None:
            try:
                readings = self._prompt.read_now() if asked is None else self._prompt.command_now(asked)
            except Exception as wrong:  # any exception of a driver is an answer
                answer({}, self._why(asked, wrong))
                return
            if readings is not None:
                answer(readings, None)
                return
        task: asyncio.Task[None] | None = None

        def ended(result: Readings | Exception | None) -> None:
            if result is None:
                result = no_answer(self.device, timeout_of(asked))
                if task is not None:
                    task.cancel()
            if isinstance(result, Exception):
                answer({}, self._why(asked, result))
            else:
                answer(result, None)

        number = self._calls.open(None, timeout_of(asked), ended)
        if number is None:
            self._counters["device calls refused"] += 1
            answer({}, f"{MAX_OPEN_CALLS} calls of {self.device} are open already; this one was not sent")
        elif not self._begin(asked, number):
            task = asyncio.get_running_loop().create_task(self._call(asked, number, until_ms))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _begin(self, asked: DeviceCommand | None, number: int) -> bool:
        """Start the call with a callback; False: the driver has none."""
        if self._calling is None or self._opening is not None:
            return False
        try:
            return self._calling.begin(asked, partial(self._end, number))
        except Exception as wrong:  # any exception of a driver is an answer
            self._end(number, wrong)
            return True

    async def _call(self, asked: DeviceCommand | None, number: int, until_ms: float) -> None:
        try:
            if self._opening is not None:
                await asyncio.shield(self._opening)
            if self._scheduler.now_ms() > until_ms:
                raise TooLateError(TOO_LATE)
            self._end(number, await (self.driver.read() if asked is None else self.driver.command(asked)))
        except Exception as wrong:  # any exception of a driver is an answer
            self._end(number, wrong)

    def _end(self, number: int, result: Readings | Exception) -> None:
        """End a call, unless it timed out or ended before."""
        self._calls.answer(number, result)

    def _why(self, asked: DeviceCommand | None, wrong: Exception) -> str:
        if isinstance(wrong, TooLateError):
            return TOO_LATE
        if not isinstance(wrong, DeviceFailedError):
            self._unexpected("read" if asked is None else "command", wrong)
            text = f"{self.device}: its driver failed: {type(wrong).__name__}: {wrong}"
        else:
            text = str(wrong)
            self._trouble(self.device, text)
        certain = isinstance(wrong, DeviceFailedError) and not isinstance(wrong, NoAnswerError)
        return text if asked is None or certain else NO_ANSWER

    # -- what it says by itself --------------------------------------------------------------------------

    def subscribe(self, subscriber: NodeId, now_ms: float) -> None:
        self.subscribers.renew(subscriber, now_ms)
        try:
            self.driver.subscribe(self._on_report)
        except Exception as wrong:  # a driver should not raise here
            self._unexpected("subscribe", wrong)

    def acknowledge(self, token: str) -> None:
        try:
            self.driver.acknowledge(token)
        except Exception as wrong:  # a driver should not raise here
            self._unexpected("acknowledge", wrong)

    def _on_report(self, readings: Readings, token: str | None) -> None:
        self.sequence += 1
        self._reported(self, readings, token)

    async def _open(self) -> None:
        try:
            await self.driver.open()
        except DeviceFailedError as wrong:
            self._trouble(self.device, str(wrong))
        except Exception as wrong:  # the node goes on, whatever a driver raises
            self._unexpected("open", wrong)
        finally:
            self._opening = None

    def _unexpected(self, what: str, wrong: Exception) -> None:
        self._counters["driver errors"] += 1
        self._trouble(self.device, f"{what}: its driver failed: {type(wrong).__name__}: {wrong}")
