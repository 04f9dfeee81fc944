"""`comesh fuzz`: runs many seeds of the swarm on all processors; a broken promise prints its replay."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from comesh.cli import fuzz_pool
from comesh.cli.fuzz_cases import case_lines
from comesh.cli.fuzz_findings import RUN, Broken, Finding, SwarmKind, replay_of
from comesh.cli.fuzz_shrink import replay_case, shrink_seed
from comesh.cli.fuzz_state import State, is_state
from comesh.cli.outputs import Force, check_output
from comesh.cli.terminal import Exit, err, fail, number, out, print_json

CORES = os.cpu_count() or 1
STATE = Path(".comesh-fuzz.json")
PLAIN_S = 10.0
"""Seconds between two lines of progress where there is no terminal."""

_Seeds = Annotated[str | None, typer.Option(help="One seed, or a range such as 1-500.")]
_Minutes = Annotated[
    float | None, typer.Option(help="Instead of --seeds: as many seeds as fit into this time, from 1 on.")
]
_Hours = Annotated[
    float | None,
    typer.Option(help="Instead of --seeds: seeds from 1 on until this many hours are simulated."),
]
_Jobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]
_Resume = Annotated[bool, typer.Option("--resume", help="Leave out seeds that are done already.")]
_StateFile = Annotated[Path, typer.Option(metavar="FILE", help="File that keeps what is done.")]
_Membership = Annotated[bool, typer.Option("--membership", help="Test membership alone, without groups.")]
_Operations = Annotated[
    bool, typer.Option("--operations", help="Also let people change the mesh while it breaks.")
]
_Verbose = Annotated[bool, typer.Option(help="Print what each seed draws, and the history of what broke.")]
_Shrink = Annotated[
    str | None,
    typer.Option(metavar="SEED", help="Find a smaller case of this seed that breaks the same promise."),
]
_Write = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for the case of --shrink.  [default: fuzz-seed-SEED.json]"),
]
_Replay = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Run the case in this file, which --shrink wrote.")
]


def fuzz(
    *,
    seeds: _Seeds = None,
    minutes: _Minutes = None,
    hours: _Hours = None,
    jobs: _Jobs = CORES,
    resume: _Resume = False,
    state: _StateFile = STATE,
    membership: _Membership = False,
    operations: _Operations = False,
    shrink: _Shrink = None,
    write: _Write = None,
    replay: _Replay = None,
    verbose: _Verbose = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    force: Force = False,
) -> None:
    """Draw meshes and faults from seeds, and check every promise.

    Exit code 0: every promise held; 1: one was broken, and each failing seed prints the command that replays
    it. Ctrl-C ends it with 130, after the seeds under way; --resume goes on from there.
    """
    if sum(given is not None for given in (seeds, minutes, hours, shrink, replay)) != 1:
        fail("say one of --seeds A-B, --minutes M, --hours H, --shrink SEED, --replay FILE")
    if membership and operations:
        fail("--membership and --operations are two swarms: say one of them")
    kind = SwarmKind.OPERATIONS if operations else SwarmKind.GROUPS
    kind = SwarmKind.MEMBERSHIP if membership else kind
    if shrink is not None or replay is not None:
        if membership:
            fail("--membership: its seeds are not shrunk; replay one with --seeds A-A --verbose")
        if shrink is not None:
            shrink_seed(_seed(shrink), kind, write, force=force, json=json)
        if replay is not None:
            replay_case(replay, json=json)
    if minutes is not None and not 0 < minutes < float("inf"):
        fail(f"--minutes {minutes:g}: expected more than 0; or say --seeds A-B")
    if hours is not None and not 0 < hours < float("inf"):
        fail(f"--hours {hours:g}: expected more than 0; or say --seeds A-B")
    wanted = count(1) if seeds is None else _parse(seeds)
    check_output(state, reads=(), ours=is_state, kind="state of comesh fuzz", force=False)
    tally, teller = Tally(swarm=kind), _Teller(kind, verbose, quiet=json)
    try:
        with State(state, kind) as kept:
            tally.code = kept.code
            amount = Amount(minutes, hours)
            stopped = _run(wanted, kept, tally, teller, amount=amount, jobs=jobs, resume=resume)
    except OSError as wrong:
        fail(f"cannot write {wrong.filename or state}: {wrong.strerror}; name another file with --state")
    _conclude(tally, stopped=stopped, json=json)


def _run(
    wanted: Iterable[int],
    state: State,
    tally: "Tally",
    teller: "_Teller",
    *,
    amount: "Amount",
    jobs: int,
    resume: bool,
) -> bool:
    """Runs all wanted seeds. True: Ctrl-C came before the last."""
    total = len(wanted) if isinstance(wanted, range) else None
    deadline = None if amount.minutes is None else time.monotonic() + 60 * amount.minutes
    if resume:
        if state.dropped:
            do = "does" if state.dropped == 1 else "do"
            err.print(f"{number(state.dropped, 'result')} of other code {do} not count")
        for seed, finding in sorted(state.found.items()):
            if not isinstance(wanted, range) or seed in wanted:
                tally.resumed += 1
                tally.add(finding)
                teller.tell(finding)
    done = frozenset(state.found) if resume else frozenset()
    left = (seed for seed in wanted if seed not in done)
    jobs = jobs if total is None else max(1, min(jobs, total - tally.seeds))
    with fuzz_pool.Stopping() as stopping, _progress(total) as progress:
        bar = progress.add_task("seeds", total=total, completed=tally.seeds)
        told_s = time.monotonic()
        for finding in fuzz_pool.findings(
            left,
            RUN[tally.swarm],
            jobs=jobs,
            deadline=deadline,
            stopping=stopping,
            enough=lambda: tally.simulated_h >= (amount.hours or float("inf")),
        ):
            state.add(finding)
            tally.add(finding)
            broken = f", {len(tally.broken)} broken" if tally.broken else ""
            hours = f", {tally.simulated_h:.1f} h simulated"
            progress.update(bar, advance=1, description=f"seeds{hours}{broken}")
            teller.tell(finding)
            if progress.disable and not teller.quiet and time.monotonic() - told_s > PLAIN_S:
                told_s = time.monotonic()
                of = "" if total is None else f" of {total}"
                err.print(f"{number(tally.seeds, 'seed')}{of}{hours}{broken}")
        return stopping.asked and tally.seeds != total


class Amount(NamedTuple):
    """The amount of work, where --seeds does not give it."""

    minutes: float | None
    hours: float | None
    """Simulated hours."""


def _seed(text: str) -> int:
    if not text.isdecimal():
        fail(f"--shrink {text}: expected the number of a seed that breaks a promise, such as 42")
    return int(text)


def _parse(seeds: str) -> range:
    first, dash, last = seeds.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        fail(f"--seeds {seeds}: expected a number such as 7, or a range such as 1-500")
    chosen = range(int(first), int(last if dash else first) + 1)
    if not chosen:
        fail(f"--seeds {seeds}: the range is empty; the smaller number comes first")
    return chosen


def _progress(total: int | None) -> Progress:
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    if total is None:
        columns = [TextColumn("{task.description}"), TextColumn("{task.completed}"), TimeElapsedColumn()]
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


class _Teller:
    """Prints the results of seeds, as they come in."""

    def __init__(self, kind: SwarmKind, verbose: bool, *, quiet: bool) -> None:
        self._kind = kind
        self._verbose = verbose
        self.quiet = quiet

    def tell(self, finding: Finding) -> None:
        if self.quiet:
            return
        if self._verbose:
            for line in case_lines(finding.seed, self._kind):
                out.print(line)
        if finding.broken:
            out.print(f"seed {finding.seed}: broken", style="bold red")
            show_broken(finding, history=self._verbose)
            out.print(f"  replay: {replay_of(finding.seed, self._kind)}")


def show_broken(finding: Finding, *, history: bool) -> None:
    for broken in finding.broken:
        out.print(f"  {broken.line}")
        if history:
            for line in broken.history:
                out.print(f"    {line}")


# -- the sum -----------------------------------------------------------------------------------------------


class CpuTime(msgspec.Struct, frozen=True):
    """CPU times of seeds, in seconds."""

    median: float
    percentile_95: float
    total: float


class Failure(msgspec.Struct, frozen=True):
    seed: int
    replay: str
    broken: tuple[Broken, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    swarm: SwarmKind
    code: str
    """Digest of the sources that were run."""
    seeds: int
    resumed: int
    """Number of these seeds that were done before."""
    stopped: bool
    events: int
    faults: int
    runs: int
    commits: int
    lossy: int
    simulated_h: float
    done: dict[str, int]
    """Actions of people, in the swarm of operations."""
    longest_quiet_s: float
    """Seconds until everything was seen to be well again after the last fault."""
    cpu_s: CpuTime
    broken: tuple[Failure, ...]


class Tally:
    """Counts the results of all seeds."""

    def __init__(self, swarm: SwarmKind) -> None:
        self.swarm = swarm
        self.code = ""
        self.resumed = 0
        self._totals = dict.fromkeys(("events", "faults", "runs", "commits", "lossy"), 0)
        self._longest_s = 0.0
        self._simulated_s = 0.0
        self._done: Counter[str] = Counter()
        self._cpu_s: list[float] = []
        self.broken: dict[int, Finding] = {}

    @property
    def seeds(self) -> int:
        return len(self._cpu_s)

    @property
    def simulated_h(self) -> float:
        return self._simulated_s / 3600

    def add(self, finding: Finding) -> None:
        for name in self._totals:
            self._totals[name] += getattr(finding, name)
        self._longest_s = max(self._longest_s, finding.quiet_s or 0.0)
        self._simulated_s += finding.simulated_s
        self._done.update(finding.done)
        self._cpu_s.append(finding.cpu_s)
        if finding.broken:
            self.broken[finding.seed] = finding

    def summary(self, *, stopped: bool) -> Summary:
        times_s = sorted(self._cpu_s)
        return Summary(
            swarm=self.swarm,
            code=self.code,
            seeds=self.seeds,
            resumed=self.resumed,
            stopped=stopped,
            simulated_h=round(self.simulated_h, 3),
            done=dict(sorted(self._done.items())),
            longest_quiet_s=self._longest_s,
            cpu_s=CpuTime(
                times_s[len(times_s) // 2], times_s[len(times_s) * 95 // 100], round(sum(times_s), 3)
            ),
            broken=tuple(
                Failure(seed, replay_of(seed, self.swarm), finding.broken)
                for seed, finding in sorted(self.broken.items())
            ),
            **self._totals,
        )


def _conclude(tally: Tally, *, stopped: bool, json: bool) -> NoReturn:
    if not tally.seeds:
        if stopped:
            raise typer.Exit(int(Exit.INTERRUPTED))
        fail("no seed was run: the time was over before; give more --minutes, or --seeds A-B")
    summary = tally.summary(stopped=stopped)
    if json:
        print_json(summary)
    else:
        _show(summary)
    if stopped:
        raise typer.Exit(int(Exit.INTERRUPTED))
    raise typer.Exit(int(Exit.NO if summary.broken else Exit.OK))


def _show(summary: Summary) -> None:
    before = f" ({summary.resumed} of them before)" if summary.resumed else ""
    out.print(
        f"{number(summary.seeds, 'seed')}{before}: {len(summary.broken)} with a broken promise; "
        f"longest quiet phase until all was well {summary.longest_quiet_s:.0f} s"
    )
    for failure in summary.broken:
        out.print(f"  {failure.replay}    # {failure.broken[0].promise}")
    cpu_s = summary.cpu_s
    out.print(
        f"CPU per seed: median {cpu_s.median:.2f} s, 95 % within {cpu_s.percentile_95:.2f} s; "
        f"in all {cpu_s.total:.0f} s, {summary.events} events in {summary.simulated_h:.1f} simulated hours"
    )
    counts = ((summary.runs, "run"), (summary.commits, "commit"), (summary.lossy, "lossy election"))
    groups = "".join(f", {number(count, what)}" for count, what in counts)
    out.print(number(summary.faults, "fault") + ("" if summary.swarm is SwarmKind.MEMBERSHIP else groups))
    if summary.done:
        out.print("people: " + ", ".join(f"{what} {count}" for what, count in summary.done.items()))
    if summary.stopped:
        out.print("stopped; the same command with --resume goes on from here")
