"""A run of `comesh sim`, with everything that watches it."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from comesh.cli.outputs import FAULTS_HEADER
from comesh.cli.sim_mesh import Mesh
from comesh.cli.terminal import err
from comesh.core.ids import RoutineId
from comesh.sim.building import Compiler
from comesh.sim.checks import Checks
from comesh.sim.fault_schedules import Schedule
from comesh.sim.group_watch import GroupWatch, LiveGroups
from comesh.sim.protocol_watch import ProtocolWatch
from comesh.sim.report import Report
from comesh.sim.simulation import Simulation
from comesh.sim.trace import Trace
from comesh.sim.world_settings import WorldSettings

PLAIN_S = 10.0
"""Seconds between two lines of progress where there is no terminal."""


class Outputs(NamedTuple):
    trace: Path | None
    faults: Path | None


class Way(NamedTuple):
    """The way to run it, and what to watch."""

    run_ms: float
    seed: int
    joined: bool
    checks: bool
    follow: tuple[RoutineId, ...]


def run(mesh: Mesh, settings: WorldSettings, schedule: Schedule, outputs: Outputs, way: Way) -> Report:
    with ExitStack() as stack:
        simulation = Simulation(
            mesh.topology,
            seed=way.seed,
            settings=settings,
            membership=mesh.membership,
            joined=way.joined,
            faults=schedule,
            devices=mesh.devices,
            program=mesh.program,
            compile_text=Compiler(),
            trace=None if outputs.trace is None else Trace(stack.enter_context(outputs.trace.open("wb"))),
        )
        if outputs.faults is not None:
            outputs.faults.write_text(FAULTS_HEADER + schedule.to_yaml(), encoding="utf-8")
        world, program = simulation.world, mesh.program
        judge = Checks.attach(world, program) if way.checks and program is not None else None
        protocol = None if program is None else ProtocolWatch(world, program.plan.genesis, way.follow)
        watch = GroupWatch(world, None if program is None else LiveGroups(world, program.plan))
        tell = _progress(stack, way.run_ms)

        def each_second(now_ms: float) -> None:
            watch.look()
            tell(now_ms)

        simulation.run(seconds=way.run_ms / 1000, progress=each_second)
        if judge is not None:
            judge.finish()
        return msgspec.structs.replace(
            simulation.report(),
            faults=schedule.faults,
            without_majority=watch.without_majority(),
            unserved=watch.unserved(),
            splits=watch.splits(),
            protocol=None if protocol is None else protocol.report(judge),
        )


def _progress(stack: ExitStack, run_ms: float) -> Callable[[float], None]:
    """Shows the progress of a run: as a bar in a terminal, else as a line now and then."""
    if err.is_terminal:
        columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
        bar = stack.enter_context(Progress(*columns, TimeElapsedColumn(), console=err, transient=True))
        task = bar.add_task("", total=run_ms)
        return lambda now_ms: bar.update(task, completed=now_ms)
    told_s = time.monotonic()

    def line(now_ms: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= PLAIN_S:
            told_s = time.monotonic()
            err.print(f"{now_ms / 1000:.0f} s of {run_ms / 1000:g} s simulated")

    return line
