"""The mesh of the demo: processes on this machine, asked over and over for their state.

A thread asks whichever node answers about the whole mesh; another listens to what happens. What the demo
shows and waits for is what the nodes said last.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Final

from comesh.cli.mesh_view import groups_of
from comesh.core.group.phases import Role
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.program import Program
from comesh.core.traces import Ending, Failed, Finished
from comesh.core.values import Value
from comesh.deployment.model import Deployment
from comesh.deployment.program import program_of
from comesh.drivers.virtual.admin import DevicesClient
from comesh.queries.answers import (
    DeviceSeen,
    GroupSeen,
    MeshStatus,
    News,
    NodeStatus,
    QueryError,
    RoutineSeen,
)
from comesh.queries.requests import FireRoutine, ShowMesh
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh

ASK_EVERY_S: Final = 0.3
MAX_NEWS: Final = 2000
SEATLESS: Final = ("", Role.INVITED, Role.RECOVERING)
"""Roles of a node that cannot help its group to go on yet."""


class DemoMesh:
    def __init__(self, local: LocalMesh, deployment: Deployment, *, records: Path | None) -> None:
        self.local = local
        self.deployment = deployment
        self.program: Program = program_of(deployment)
        self.began = time.monotonic()
        self.news: deque[News] = deque(maxlen=MAX_NEWS)
        self.finished = 0
        self.failed = 0
        self.ended: dict[str, str] = {}
        """Ended runs, and how they ended."""
        self._records = records
        self._mesh: MeshStatus | None = None
        self._groups: dict[GroupId, GroupSeen] = {}
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._ask, self._listen)]

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.began

    # -- processes ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        record = self._recording("devices")
        self.local.start_devices([] if record is None else ["--record", str(record)])
        for node in self.local.nodes:
            self.start(node)
        for thread in self._threads:
            thread.start()

    def start(self, node: str) -> None:
        self.local.start(node, record=self._recording(node))

    def _recording(self, name: str) -> Path | None:
        return None if self._records is None else self._records / f"{name}.rec"

    def kill(self, *nodes: str) -> None:
        self.local.kill(*nodes)

    def close(self) -> None:
        self._over.set()
        self.local.close()

    # -- what people do ----------------------------------------------------------------------------------

    def set_reading(self, device: str, reading: str, value: Value) -> None:
        """Sets a reading, as if somebody walked by or the wind rose."""

        async def tell() -> None:
            async with DevicesClient(self._devices_address) as client:
                await client.set_reading(device, reading, value)

        asyncio.run(tell())

    def press(self, device: str, values: dict[str, Value]) -> None:
        async def tell() -> None:
            async with DevicesClient(self._devices_address) as client:
                await client.press(device, values)

        asyncio.run(tell())

    @property
    def _devices_address(self) -> str:
        assert self.local.devices_at is not None
        return f"{self.local.devices_at[0]}:{self.local.devices_at[1]}"

    def fire(self, routine: str, node: str) -> str:
        """Fires a routine and returns the run; raises NoAnswerError with the reason where there is none."""
        with Client(self.local.data_of(node)) as client:
            return client.ask(FireRoutine(routine=RoutineId(routine))).run

    # -- how things are ----------------------------------------------------------------------------------

    def running(self) -> list[NodeId]:
        return [node for node in self.local.nodes if self.local.runs(node)]

    def statuses(self) -> dict[NodeId, NodeStatus]:
        """Returns the statuses of nodes that run and answered."""
        mesh = self._mesh
        if mesh is None:
            return {}
        running = set(self.running())
        return {name: one for name, one in mesh.nodes.items() if one is not None and name in running}

    def agrees(self) -> bool:
        """Says if every running node knows exactly which nodes run."""
        running = tuple(sorted(self.running()))
        statuses = self.statuses()
        return len(statuses) == len(running) and all(
            tuple(sorted(one.living)) == running for one in statuses.values()
        )

    @property
    def groups(self) -> dict[GroupId, GroupSeen]:
        return self._groups

    def serves(self, group: GroupId) -> bool:
        seen = self._groups.get(group)
        return seen is not None and seen.serves and seen.leader in self.running()

    def all_serve(self) -> bool:
        return bool(self._groups) and all(self.serves(group) for group in self._groups)

    def all_whole(self) -> bool:
        """Says if every member of every group takes part. One that was away does from the group's next config
        on, and until then the group can lose one less."""
        statuses = self.statuses()
        for group, now in self._groups.items():
            for node in now.members:
                said = statuses[node].groups if node in statuses else ()
                own = [seen for seen in said if seen.group == group]
                if not own or own[0].number < now.number or own[0].role in SEATLESS:
                    return False
        return True

    def can_serve(self, group: GroupId, lost: Collection[str]) -> bool:
        """Says if a group keeps a majority of its members without these nodes."""
        members = self._groups[group].members
        return 2 * sum(node not in lost for node in members) > len(members)

    def devices(self) -> dict[DeviceId, DeviceSeen]:
        return {one.device: one for status in self.statuses().values() for one in status.devices}

    def routines(self) -> dict[str, RoutineSeen]:
        return {str(one.routine): one for status in self.statuses().values() for one in status.routines}

    def executing(self, run: str) -> bool:
        return any(
            one.live is not None and one.live.run == run and one.live.stage == "EXECUTING"
            for one in self.routines().values()
        )

    def has_ended(self, run: str) -> bool:
        """Says if a run has ended, by the news or by the routine's group."""
        return run in self.ended or any(one.last == run for one in self.routines().values())

    def how_ended(self, run: str) -> str:
        if run in self.ended:
            return self.ended[run]
        last = next((one for one in self.routines().values() if one.last == run), None)
        return "not yet" if last is None else last.last_reason or "finished"

    # -- asking ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        while not self._over.wait(ASK_EVERY_S):
            for node in self.running():
                try:
                    with Client(self.local.data_of(node), within_s=5.0) as client:
                        mesh = client.ask(ShowMesh())
                except QueryError:
                    continue
                self._groups = groups_of(mesh)
                self._mesh = mesh
                break

    def _listen(self) -> None:
        while not self._over.wait(ASK_EVERY_S):
            for node in self.running():
                try:
                    with Client(self.local.data_of(node)) as client:
                        for news in client.watch():
                            if isinstance(news, News):
                                self._take(news)
                            if self._over.is_set():
                                return
                except (QueryError, OSError):
                    continue

    def _take(self, news: News) -> None:
        self.news.append(news)
        trace = news.trace
        if isinstance(trace, Ending) and news.about not in self.ended:
            self.ended[news.about] = "finished" if isinstance(trace, Finished) else trace.reason
            self.finished += isinstance(trace, Finished)
            self.failed += isinstance(trace, Failed)
