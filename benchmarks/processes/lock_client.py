"""A node that also asks for locks, as the leader of a routine's group would, and times the answers.

    python lock_client.py OPTIONS LEADER COUNT AT_ONCE

One pair is a LockRequest to the leader of the devices' group, its LockState with the grant, a Release, and
its Released: what a routine's leader says and hears. Each is a letter through the node's own transport,
encrypted; grant and release are committed, written and flushed by f+1 members before they are answered.
"""

import asyncio
import sys
import time
from collections.abc import Callable

import msgspec

from comesh.core.effects import Answered, Observation
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.messages import Datagram, encode
from comesh.core.stamps import OPENING, Fence, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Strategy
from comesh.core.work_messages import GroupMessage, LockRequest, LockState, Release, Released, Work
from comesh.runtime.assembly import Assembly
from comesh.runtime.log import Log
from comesh.runtime.options import from_text
from comesh.runtime.running import settle_memory

BENCH = GroupId("bench")
FENCE = Fence(1, OPENING)
READY_S = 30.0
RESEND_S = 1.0
"""As a routine's leader asks again."""


class Asking(Assembly):
    """Letters to the group `bench` end here, where those to a group that this node serves would go on. What
    is heard is told as an effect of that step: after all that the step has written. What is said next is
    said there, as a routine's leader would, and leaves with what else that step has to say to that node."""

    waiting: dict[str, Callable[[], None]]

    def hear(self) -> None:
        groups = self.node.groups
        assert groups is not None
        post = groups.router
        usual, usual_early = post._on_message, groups.deliver_early

        def on_message(sender: NodeId, message: GroupMessage, step: Step) -> None:
            if message.to == BENCH:
                step.observe(Answered(_key(message.body), None, None, ""))
            else:
                usual(sender, message, step)

        def on_early(sender: NodeId, message: GroupMessage, step: Step) -> None:
            (on_message if message.to == BENCH else usual_early)(sender, message, step)

        post._on_message, groups.deliver_early = on_message, on_early
        self.host.listeners.append(self._told)

    def _told(self, told: Observation) -> None:
        if isinstance(told, Answered):
            heard = self.waiting.pop(told.request, None)
            if heard is not None:
                heard()

    def say(self, to: NodeId, body: Work, key: str, heard: Callable[[], None]) -> None:
        message = GroupMessage(GroupId("c1"), BENCH, FENCE, 1, body)
        data = encode(Datagram(self.node.membership.incarnation, 1, message))
        again = asyncio.get_running_loop().call_later(RESEND_S, self.transport.send, to, data)

        def done() -> None:
            again.cancel()
            heard()

        self.waiting[key] = done
        self.transport.send(to, data)

    def pairs(
        self, leader: NodeId, device: DeviceId, first: int, count: int
    ) -> "asyncio.Future[list[float]]":
        """One after the other; how long each took, in ms."""
        done: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        times_ms: list[float] = []
        devices, routine = (device,), RoutineId(f"r_{device}")

        def lock() -> None:
            if len(times_ms) == count:
                done.set_result(times_ms)
                return
            number = first + len(times_ms)
            run = RunId(routine, 1, Stamp(1, OPENING, number))
            began = time.perf_counter()

            def release() -> None:
                self.say(leader, Release(run, 1, devices), f"release {routine} {number}", released)

            def released() -> None:
                times_ms.append(1000 * (time.perf_counter() - began))
                lock()

            request = LockRequest(run, 1, devices, 0.0, Strategy.SEQUENTIAL, FENCE)
            self.say(leader, request, f"lock {routine} {number}", release)

        lock()
        return done


def _key(body: Work) -> str:
    match body:
        case LockState(run=run, answers=answers) if all(one.granted for one in answers):
            return f"lock {run.routine} {run.stamp.n}"
        case Released(run=run):
            return f"release {run.routine} {run.stamp.n}"
        case _:
            return ""


async def main(text: str, leader: str, count: int, at_once: int) -> None:
    node = Asking(from_text(text), Log("client"))
    node.waiting = {}
    await node.open()
    node.hear()
    ends = time.monotonic() + READY_S
    while not node.view.ready and time.monotonic() < ends:
        await asyncio.sleep(0.05)
    settle_memory()
    to = NodeId(leader)
    devices = [DeviceId(f"d{number}") for number in range(at_once)]

    await asyncio.gather(*(node.pairs(to, device, 1, max(1, count // 4 // at_once)) for device in devices))
    began = time.perf_counter()
    taken = await asyncio.gather(*(node.pairs(to, device, 1_000_000, count // at_once) for device in devices))
    took_s = time.perf_counter() - began
    times_ms = [one for times in taken for one in times]
    sys.stdout.write(msgspec.json.encode({"times_ms": times_ms, "took_s": took_s}).decode() + "\n")
    sys.stdout.flush()
    await node.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
