"""Two or three `Devices` joined by memory: what one sends another gets, in the next turn of the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from device_texts import LAMP, house, now_ms, until

from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.ids import NodeId
from comesh.deployment.model import Deployment
from comesh.runtime.devices import Devices

Loss = Callable[[NodeId, NodeId, bytes], int]
"""How often a frame of one node to another arrives."""


class Mesh:
    def __init__(self, deployment: Deployment, **options: Any) -> None:
        self.answers: dict[NodeId, list[DeviceAnswered]] = {node: [] for node in deployment.nodes}
        self.reports: dict[NodeId, list[DeviceReported]] = {node: [] for node in deployment.nodes}
        self.frames: list[tuple[NodeId, NodeId, bytes]] = []
        self.arrives: Loss = lambda *_: 1
        self.offset_ms = 0.0
        self.nodes = {
            node: Devices(
                node,
                deployment,
                send=lambda to, frame, sender=node: self.send(sender, to, frame),  # bound
                give=lambda events, node=node: self._give(node, events),  # bound here
                now_ms=lambda: now_ms() + self.offset_ms,
                **{"still": True, **options},
            )
            for node in deployment.nodes
        }

    def send(self, sender: NodeId, to: NodeId, frame: bytes) -> None:
        self.frames.append((sender, to, frame))
        for _ in range(self.arrives(sender, to, frame)):
            asyncio.get_running_loop().call_soon(self.nodes[to].on_frame, sender, frame)

    def _give(self, node: NodeId, events: list[DeviceAnswered | DeviceReported]) -> None:
        for event in events:
            self._note(node, event)

    def _note(self, node: NodeId, event: DeviceAnswered | DeviceReported) -> None:
        if isinstance(event, DeviceAnswered):
            self.answers[node].append(event)
        else:
            self.reports[node].append(event)

    async def know_clocks(self) -> None:
        """Of each other, as nodes do that read devices again and again."""
        answered: list[Any] = []
        pairs = [(one, home) for one in self.nodes for home in self.nodes if one != home]
        for one, home in pairs:
            self.nodes[one]._relay.ask(home, LAMP, None, lambda *told: answered.append(told))
        await until(lambda: len(answered) == len(pairs))
        self.frames.clear()

    async def answer(self, node: NodeId, call: int) -> DeviceAnswered:
        def found() -> list[DeviceAnswered]:
            return [event for event in self.answers[node] if event.call == call]

        await until(found)
        assert len(found()) == 1
        return found()[0]


@asynccontextmanager
async def mesh(deployment: Deployment | None = None, **options: Any) -> AsyncIterator[Mesh]:
    joined = Mesh(deployment or house(), **options)
    try:
        for devices in joined.nodes.values():
            await devices.open()
        async with asyncio.timeout(60):
            await joined.know_clocks()
            yield joined
    finally:
        for devices in joined.nodes.values():
            await devices.close()
