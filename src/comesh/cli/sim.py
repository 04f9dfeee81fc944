"""`comesh sim`: runs a mesh in virtual time, with faults, and prints the result.

The mesh is that of a deployment document, or one of the paper's shapes with the paper's workload. Everything
follows from the seed: the same command gives the same run.
"""

import math
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from comesh.cli.outputs import Force, check_output, is_trace, is_written_faults
from comesh.cli.own_policies import Names, Plugins
from comesh.cli.sim_mesh import DEVICES, SMART, Given, Mesh, of_document, shaped
from comesh.cli.sim_run import Outputs, Way, run
from comesh.cli.sim_summary import show
from comesh.cli.terminal import Exit, err, fail, print_json
from comesh.core.ids import RoutineId
from comesh.core.streams import stream
from comesh.deployment.problems import did_you_mean
from comesh.sim.fault_files import FaultsFile, parse_faults
from comesh.sim.fault_model import DRAWN, ScheduleError, Targets
from comesh.sim.fault_schedules import RandomFaults, Schedule, crashes, random_schedule
from comesh.sim.radio import RadioSettings
from comesh.sim.report import Report
from comesh.sim.topology import Relays, Shape, Topology, TopologyError
from comesh.sim.world_settings import WorldSettings

_MAX_DEVICES = 50_000
_MAX_ROUTINES = 10_000
_MAX_PER_MINUTE = 10_000.0
_MAX_REACH_M = 1_000_000.0
"""Maximum reach, of everything: places are at most 100 km from the origin on each axis."""
_MAX_MS = 86_400_000.0
"""Maximum time of a hop, or offset of a clock: a day."""
_QUIET_SHARE = 0.25
"""Share of a run at its end that drawn faults leave alone."""

_DocumentFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A deployment document.  [default: a shape]", show_default=False),
]
_Shape = Annotated[
    Shape | None, typer.Option("--topology", help="Without FILE: shape of the mesh.  [default: grid]")
]
_Devices = Annotated[
    int | None,
    typer.Option(min=1, max=_MAX_DEVICES, help=f"Without FILE: number of devices.  [default: {DEVICES}]"),
]
_Smart = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help=f"Without FILE: share of devices that run CoMesh.  [default: {SMART}]"
    ),
]
_Reach = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=_MAX_REACH_M,
        help="Radio reach in metres.  [default: 1.42 for a shape, what connects all nodes of FILE]",
    ),
]
_Relays = Annotated[Relays, typer.Option(help="Which devices pass messages on.")]
_Minutes = Annotated[float, typer.Option(min=0.0, max=100_000.0, help="Simulated time, in minutes.")]
_Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
_HopMs = Annotated[
    float | None,
    typer.Option(min=0.0, max=_MAX_MS, help="Time of one hop.  [default: 10, or as in FILE]"),
]
_Loss = Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of messages lost on each hop.")]
_LossPerMessage = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Share of messages lost, however many hops they take.")
]
_Duplicate = Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of messages that arrive twice.")]
_Reorder = Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of messages held up on the way.")]
_SkewMs = Annotated[float, typer.Option(min=0.0, max=_MAX_MS, help="Maximum offset of clocks.")]
_DriftPpm = Annotated[float, typer.Option(min=0.0, max=500_000.0, help="Maximum drift of clocks.")]
_Crash = Annotated[
    int, typer.Option(min=0, help="Number of nodes that crash, one after the other, and stay down.")
]
_Faults = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with a schedule of faults, YAML or JSON.")
]
_Random = Annotated[
    list[str] | None,
    typer.Option(
        "--random",
        metavar="CLASS=RATE",
        help=f"Draw faults of a class, RATE per minute; repeatable. Classes: {', '.join(DRAWN)}.",
    ),
]
_Joined = Annotated[bool, typer.Option("--joined", help="Start with nodes that know each other.")]
_TraceFile = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Write every event to this file.")
]
_WriteFaults = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write all faults of the run to this file, as --faults reads them."),
]
_Routines = Annotated[
    int | None,
    typer.Option(
        min=1, max=_MAX_ROUTINES, help="Without FILE: number of routines.  [default: one per 5 devices]"
    ),
]
_Members = Annotated[
    str | None,
    typer.Option(metavar="POLICY", help="Without FILE: policy that selects members, such as random."),
]
_Leaders = Annotated[
    str | None,
    typer.Option(metavar="POLICY", help="Without FILE: policy that selects leaders, such as random."),
]
_Strategy = Annotated[
    str | None,
    typer.Option(metavar="STRATEGY", help="Without FILE: how routines get locks, such as optimistic."),
]
_MembershipOnly = Annotated[
    bool, typer.Option("--membership-only", help="Simulate membership only: no groups, no routines.")
]
_Checks = Annotated[
    bool, typer.Option("--checks/--no-checks", help="Check the promises of the protocol all the time.")
]
_Follow = Annotated[
    list[str] | None,
    typer.Option("--follow", metavar="ROUTINE", help="Print what each run of this routine did; repeatable."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def sim(
    file: _DocumentFile = None,
    *,
    shape: _Shape = None,
    devices: _Devices = None,
    smart: _Smart = None,
    reach: _Reach = None,
    relays: _Relays = Relays.ALL,
    routines: _Routines = None,
    plugin: Plugins = None,
    members: _Members = None,
    leaders: _Leaders = None,
    strategy: _Strategy = None,
    membership_only: _MembershipOnly = False,
    minutes: _Minutes = 5.0,
    seed: _Seed = 1,
    hop_ms: _HopMs = None,
    loss: _Loss = 0.0,
    loss_per_message: _LossPerMessage = 0.0,
    duplicate: _Duplicate = 0.0,
    reorder: _Reorder = 0.0,
    skew_ms: _SkewMs = 0.0,
    drift_ppm: _DriftPpm = 0.0,
    crash: _Crash = 0,
    faults: _Faults = None,
    random: _Random = None,
    joined: _Joined = False,
    checks: _Checks = True,
    follow: _Follow = None,
    trace: _TraceFile = None,
    write_faults: _WriteFaults = None,
    json: _Json = False,
    force: Force = False,
) -> None:
    """Run a mesh in virtual time, with faults if you like.

    Exit code 0: every promise of the protocol held; 1: one was broken."""
    outputs = Outputs(trace, write_faults)
    _check_outputs(outputs, reads=[path for path in (file, faults) if path is not None], force=force)
    run_ms, names = minutes * 60_000.0, Names(members, leaders, strategy).checked(plugin)
    given = Given(shape, devices, smart, reach, relays, routines, membership_only, seed, run_ms, names)
    mesh = _mesh(file, given)
    radio = RadioSettings(
        hop_ms=mesh.hop_ms if hop_ms is None else hop_ms,
        loss_per_hop=loss,
        loss_per_message=loss_per_message,
        duplicate=duplicate,
        reorder=reorder,
    )
    settings = WorldSettings(radio=radio, skew_ms=skew_ms, drift_ppm=drift_ppm, strict=mesh.strict)
    way = Way(given.run_ms, seed, joined, checks, tuple(map(RoutineId, follow or ())))
    _check_follow(way.follow, mesh)
    report, schedule = _simulate(mesh, settings, _Breaking(faults, crash, random or []), outputs, way)
    if json:
        print_json(report)
    else:
        show(report, schedule)
    if report.protocol is not None and report.protocol.violations:
        raise typer.Exit(int(Exit.NO))


class _Breaking(NamedTuple):
    """The faults of the run: from a file, a number of crashes, drawn."""

    file: Path | None
    crashes: int
    drawn: list[str]


def _simulate(
    mesh: Mesh, settings: WorldSettings, breaking: _Breaking, outputs: Outputs, way: Way
) -> tuple[Report, Schedule]:
    written = FaultsFile((), ())
    try:
        if breaking.file is not None:
            written = _read_faults(breaking.file, way.run_ms)
        schedule = written.schedule + _crashing(mesh.topology, breaking.crashes, way.run_ms, way.seed)
        schedule += _drawn(mesh, breaking.drawn, way.run_ms, way.seed)
        return run(mesh, settings, schedule, outputs, way), schedule
    except ScheduleError as error:
        fail(_located(error, breaking.file, written))
    except OSError as error:
        fail(f"cannot write {error.filename or outputs.trace}: {error.strerror}")


def _mesh(file: Path | None, given: Given) -> Mesh:
    try:
        if file is None:
            return shaped(given)
        _refuse_with_file(
            topology=given.shape,
            devices=given.devices,
            smart=given.smart,
            routines=given.routines,
            **given.names._asdict(),
        )
        return of_document(file, given)
    except TopologyError as error:
        fail(str(error))


def _check_outputs(outputs: Outputs, *, reads: list[Path], force: bool) -> None:
    trace, faults = outputs
    if trace is not None:
        check_output(trace, reads=reads, ours=is_trace, kind="trace", force=force)
    if faults is not None:
        check_output(faults, reads=reads, ours=is_written_faults, kind="schedule that was drawn", force=force)
        if trace is not None and trace.absolute() == faults.absolute():
            fail(f"--trace and --write-faults both name {trace}; choose another name for one")


def _check_follow(follow: tuple[RoutineId, ...], mesh: Mesh) -> None:
    known = {} if mesh.program is None else mesh.program.routines
    for routine in follow:
        if mesh.program is None:
            fail(f"--follow {routine}: with --membership-only no routine runs")
        if routine not in known:
            hint = did_you_mean(routine, known)
            fail(f"--follow {routine}: there is no such routine" + (f"; {hint}" if hint else ""))


def _refuse_with_file(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            fail(f"--{name} is for a mesh without a FILE: a document says itself what there is")


def _read_faults(file: Path, run_ms: float) -> FaultsFile:
    """Reads the faults of a file; says so where some will not happen."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        fail(f"{file}: there is no such file")
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{file}: cannot be read: it is not a text in UTF-8")
    written = parse_faults(text)
    late = sum(fault.at_ms > run_ms for fault in written.faults)
    if not written.faults:
        err.print(f"{file}: warning: there are no faults in it", markup=False)
    elif late:
        after = f"after the end of the run ({run_ms / 1000:g} s): they will not happen"
        err.print(f"{file}: warning: {late} of {len(written.faults)} faults come {after}", markup=False)
    return written


def _located(error: ScheduleError, file: Path | None, written: FaultsFile) -> str:
    """Says what is wrong with a schedule, with the file and the line where they are known."""
    place = written.place_of(error.fault)
    if place is not None:
        number, line = place
        return f"{file}:{line}: fault {number}: {error}" if line else f"{file}: fault {number}: {error}"
    if file is None or error.fault is not None:
        return str(error)
    return f"{file}:{error.line}: {error}" if error.line else f"{file}: {error}"


def _are(nodes: int) -> str:
    return "is only 1 node" if nodes == 1 else f"are only {nodes} nodes"


def _crashing(topology: Topology, count: int, run_ms: float, seed: int) -> Schedule:
    """Spreads crashes over the middle half of the run, so that the first minutes settle and the last
    detect."""
    if count > len(topology.nodes):
        fail(f"--crash {count}: there {_are(len(topology.nodes))}")
    nodes = stream(seed, "crashing nodes").sample(sorted(topology.nodes), count)
    return crashes(nodes, first_ms=run_ms / 4, every_ms=run_ms / 2 / max(1, count))


def _drawn(mesh: Mesh, wanted: list[str], run_ms: float, seed: int) -> Schedule:
    per_minute: dict[str, float] = {}
    for text in wanted:
        name, _, rate = text.partition("=")
        per_minute[name] = _rate(rate)
        if name not in DRAWN or not 0 <= per_minute[name] <= _MAX_PER_MINUTE:
            known = ", ".join(DRAWN)
            fail(f"--random {text}: expected CLASS=FAULTS_PER_MINUTE, such as crash=2; classes: {known}")
    targets = Targets(mesh.topology, tuple(device for device, spec in mesh.devices.items() if spec.event))
    for name, rate_per_minute in per_minute.items():
        drawn = DRAWN[name]
        if rate_per_minute and not drawn.among(targets):
            err.print(f"warning: --random {name}: this mesh has no {drawn.needs}, so none is drawn")
    wishes = RandomFaults(run_ms=run_ms, quiet_ms=run_ms * _QUIET_SHARE, per_minute=per_minute)
    return random_schedule(mesh.topology, wishes, seed, targets.event_devices)


def _rate(text: str) -> float:
    """NaN: it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan
