"""The stage of a scenario: a mesh of real processes, conditions with bounds, and a verdict.

    def leader_dies(stage: Stage) -> None:
        with stage.mesh(five_rooms(), relayed=True) as play:
            run = play.fire("across")
            play.until("it executes", lambda: play.stage_of(run) == "EXECUTING")
            play.kill(play.leader("c1"))
            play.ends(run)

A mesh is ready when it is given, and when the scenario is through nothing is broken any more: then comes the
quiet phase, in which everything that waits must go on, and the judge. Each step is told as it is done.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.values import Value
from comesh.deployment.program import program_of
from comesh.drivers.virtual.admin import DevicesClient
from comesh.lab.judging import Quiet, Verdict
from comesh.lab.mesh import Links, Mesh, MeshError, now_us
from comesh.lab.proxy_thread import ProxyThread
from comesh.lab.small_disk import small_disk
from comesh.lab.watching import Watch
from comesh.queries.answers import DeviceSeen, RoutineSeen, RunSeen

BOUND_S: Final = 60.0
"""Maximum time for anything that must happen, on a machine that others use too."""
QUICK_QUIET_S: Final = 6.0
LONG_QUIET_S: Final = 20.0
"""Length of the quiet phase: anything that waits must go on within it."""
MAX_SPREADS: Final = 6
RECORDED_S: Final = 0.5
"""Time after which a node has recorded what it knows, unless it was killed."""

Say = Callable[[str], None]


class Stage:
    """Plays scenarios one after the other, each with a directory of its own."""

    def __init__(self, directory: Path, *, seed: int = 0, long: bool = False, say: Say | None = None) -> None:
        self.directory = directory
        self.seed = seed
        self.long = long
        self.say: Say = say or (lambda _: None)
        self.verdicts: list[Verdict] = []
        self.figures: dict[str, float] = {}
        """Figures measured on the way."""

    @contextmanager
    def mesh(
        self,
        text: str,
        *,
        relayed: bool = False,
        links: Links = None,
        small_disk_of: str = "",
        may_lose: bool = False,
        **options: Any,
    ) -> Iterator["Play"]:
        """The mesh of a document, ready; judged when the scenario is through.

        relayed: links can be broken. small_disk_of: whoever leads the group of this routine first has a disk
        that can be filled. may_lose: reported losses are no failure. options: of all nodes
        (`runtime/options.py`).
        """
        where = self.directory / f"mesh{len(self.verdicts) + 1}"
        where.mkdir(parents=True)
        document = where / "document.yaml"
        document.write_text(text)
        quiet: Quiet | None = None
        mesh = Mesh(document, where, links=ProxyThread(seed=self.seed) if relayed else links)
        play = Play(self, mesh)
        small = play.first_leader(small_disk_of) if small_disk_of else ""
        try:
            with small_disk(mesh.data_of(small)) if small else nullcontext(), mesh:
                mesh.started_with = {node: dict(options) for node in mesh.nodes}
                mesh.start_devices(("--record", str(mesh.recordings / "devices.rec"), "--still", "--quiet"))
                play.begin()
                yield play
                quiet = play.settle()
        finally:
            verdict = mesh.judge(quiet)
            self.verdicts.append(verdict)
            self.say(str(verdict))
        if verdict.losses and not may_lose:
            raise MeshError("something was lost, and nothing may be")


class Play:
    """A mesh that runs, and words for what a scenario does to it and waits for."""

    def __init__(self, stage: Stage, mesh: Mesh) -> None:
        self.stage = stage
        self.mesh = mesh
        self.watch = Watch(mesh.recordings)
        self.program = program_of(mesh.deployment)
        self._began = time.monotonic()

    # -- telling and waiting -----------------------------------------------------------------------------

    def say(self, what: str) -> None:
        self.stage.say(f"{time.monotonic() - self._began:6.1f} s  {what}")

    def until(self, what: str, condition: Callable[[], bool], *, bound_s: float = BOUND_S) -> float:
        """Wait for it; how long that took, in seconds."""
        took_s = self.mesh.wait_for(condition, what, bound_s=bound_s)
        self.say(f"{what} (after {took_s:.2f} s)")
        return took_s

    def must(self, what: str, holds: bool) -> None:
        """Fails the scenario unless this holds now."""
        if not holds:
            raise MeshError(f"not so: {what}")
        self.say(what)

    def figure(self, name: str, value: float) -> None:
        self.stage.figures[name] = value

    def begin(self) -> None:
        for node in self.mesh.nodes:
            self.mesh.start(node)
        took_s = self.until(f"{len(self.mesh.nodes)} nodes are ready", self.is_whole)
        self.figure("ready_s", took_s)

    def settle(self) -> Quiet:
        """The quiet phase: everything is whole again, what had fired has ended, and that for the bound."""
        from_us = now_us()
        bound_s = LONG_QUIET_S if self.stage.long else QUICK_QUIET_S
        fired = set(self.watch.look().fired)
        self.until("the mesh is whole", self.is_whole)
        self.until(
            "all that had fired has ended or is known to no one",
            lambda: all(run in self.watch.look().ended or self.is_forgotten(run) for run in fired),
        )
        self.until(
            f"{bound_s:g} s of quiet are over",
            lambda: now_us() - from_us > (bound_s + 1.0) * 1e6,
            bound_s=bound_s + 2.0,
        )
        return Quiet(from_us, now_us(), bound_ms=bound_s * 1000.0)

    # -- how things are ----------------------------------------------------------------------------------

    def is_whole(self) -> bool:
        """Says if all running nodes are ready and know each other, and every group is served."""
        return self.mesh.is_ready() and self.all_served()

    def all_served(self) -> bool:
        return set(self.mesh.leaders()) == set(self.program.plan.genesis)

    def all_seated(self) -> bool:
        """Every member of every group, as its leader has them, sits there and has its state."""
        statuses = self.mesh.statuses()
        seats = {
            (status.node, one.group, one.number): one.role
            for status in statuses.values()
            for one in status.groups
        }
        led = [one for status in statuses.values() for one in status.groups if one.serves]
        return self.is_whole() and all(
            seats.get((node, one.group, one.number), "") not in ("", "recovering")
            for one in led
            for node in one.members
        )

    def group_of(self, name: str) -> GroupId:
        """Returns the group of a routine or a device."""
        routines, devices = self.program.group_of_routine, self.program.group_of_device
        found = routines.get(RoutineId(name)) or devices.get(DeviceId(name))
        assert found is not None, name
        return found

    def first_leader(self, name: str) -> str:
        """Returns the first leader of the group of a routine or device, when the deployment begins."""
        return self.program.plan.genesis[self.group_of(name)][0]

    def leader(self, group: str, *, other_than: Iterable[str] = ()) -> str:
        """Returns the node that serves a group, as soon as it is none of these."""
        not_these = set(other_than)
        found: list[str] = []

        def one_serves() -> bool:
            found[:] = [node for which, node in self.mesh.leaders().items() if which == group]
            return bool(found) and found[0] not in not_these

        self.mesh.wait_for(one_serves, f"{group} has a leader other than {not_these}", bound_s=BOUND_S)
        return found[0]

    def servers(self, group: str) -> set[str]:
        """Returns all nodes that claim to serve a group."""
        return {
            status.node
            for status in self.mesh.statuses().values()
            for one in status.groups
            if one.group == group and one.serves
        }

    def two_leaders(self, one: str, other: str) -> tuple[str, str]:
        """Returns leaders of two groups, different nodes. If one leads both it leaves, and comes back."""
        for _ in range(MAX_SPREADS):
            leaders = self.leader(one), self.leader(other)
            if leaders[0] != leaders[1]:
                return leaders
            self.say(f"{leaders[0]} leads both {one} and {other}: it leaves and comes back")
            self.mesh.terminate(leaders[0])
            self.leader(one, other_than=[leaders[0]])
            self.mesh.start(leaders[0])
            self.until("the mesh is whole", self.is_whole)
        raise MeshError(f"the same node led {one} and {other}, again and again")

    def members(self, group: str) -> tuple[str, ...]:
        """Returns the members of a group, as its leader has them."""
        leader = self.leader(group)
        status = self.mesh.status(leader)
        seen = [] if status is None else [one for one in status.groups if one.group == group]
        return seen[0].members if seen else ()

    def routine(self, name: str) -> RoutineSeen | None:
        """Returns the state of a routine, as the leader of its group sees it; None: nobody serves that
        now."""
        seen = [one for status in self.mesh.statuses().values() for one in status.routines]
        return next((one for one in seen if one.routine == name), None)

    def device(self, name: str) -> DeviceSeen | None:
        seen = [one for status in self.mesh.statuses().values() for one in status.devices]
        return next((one for one in seen if one.device == name), None)

    def live(self, run: str) -> RunSeen | None:
        seen = self.routine(run.split("#", maxsplit=1)[0])
        return seen.live if seen is not None and seen.live is not None and seen.live.run == run else None

    def stage_of(self, run: str) -> str:
        live = self.live(run)
        return "" if live is None else live.stage

    def is_forgotten(self, run: str) -> bool:
        """Its group serves, and has neither this run nor any that waits: its end was told by nobody."""
        seen = self.routine(run.split("#", maxsplit=1)[0])
        return seen is not None and (seen.live is None or seen.live.run != run) and seen.waiting == 0

    # -- doing -------------------------------------------------------------------------------------------

    def fire(self, routine: str, *, node: str | None = None) -> str:
        """The run."""
        fired = self.mesh.fire(routine, node=node)
        self.say(f"{fired.run} fired")
        return fired.run

    def kill(self, *nodes: str) -> None:
        self.mesh.kill(*nodes)
        self.say(f"killed -9: {', '.join(nodes)}")

    def restart(self, *nodes: str) -> None:
        for node in nodes:
            self.mesh.start(node)
        self.say(f"started again: {', '.join(nodes)}")

    def executes(self, run: str) -> None:
        """Wait until it does, or has ended already."""
        self.until(
            f"{run} executes",
            lambda: self.stage_of(run) == "EXECUTING" or run in self.watch.look().ended,
        )

    def ends(self, *runs: str, bound_s: float = BOUND_S) -> None:
        """Wait for the ends of runs, and say how."""
        self.mesh.wait_for(
            lambda: all(run in self.watch.look().ended or self.is_forgotten(run) for run in runs),
            f"the end of {', '.join(runs)}",
            bound_s=bound_s,
        )
        with suppress(MeshError):  # a group knows it a moment before it is recorded
            self.mesh.wait_for(lambda: set(runs) <= set(self.watch.look().ended), "", bound_s=RECORDED_S)
        for run in runs:
            self.say(f"{run}: {self.watch.ended.get(run, 'ended, and who knew how is no more')}")

    def goes_on(self, *routines: str, more: int = 2) -> None:
        """Routines fire again, each so many times."""
        self.watch.look()
        before = {routine: len(self.watch.firings_of(routine)) for routine in routines}
        self.until(
            f"{' and '.join(routines)} fired {more} times more",
            lambda: all(
                len(self.watch.look().firings_of(one)) >= count + more for one, count in before.items()
            ),
        )

    def set_reading(self, device: str, reading: str, value: Value) -> None:
        async def tell() -> None:
            assert self.mesh.devices_at is not None
            host, port = self.mesh.devices_at
            async with DevicesClient(f"{host}:{port}") as client:
                await client.set_reading(device, reading, value)

        asyncio.run(tell())
        self.say(f"{device}.{reading} is {value}")

    def cut(self, one: str, other: str) -> None:
        assert isinstance(self.mesh.links, ProxyThread)
        self.mesh.links.proxy.cut(one, other, both=True)
        self.say(f"cut: {one} and {other}")

    def part(self, *sides: Iterable[str]) -> None:
        told = [sorted(side) for side in sides]
        self.mesh.partition(told)
        self.say(f"parted: {' | '.join(', '.join(side) for side in told)}")

    def heal(self) -> None:
        self.mesh.heal()
        self.say("healed")
