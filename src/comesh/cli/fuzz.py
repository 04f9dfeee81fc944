"""`comesh fuzz`: many seeds of the swarm, spread over processes; a broken promise prints its replay."""

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from comesh.cli.terminal import Exit, err, fail, out, print_json
from comesh.sim.membership_swarm import Case, Verdict, draw, run_seed


class Tally(msgspec.Struct):
    """What came of all seeds."""

    seeds: int = 0
    events: int = 0
    faults: int = 0
    slowest_recovery_s: float = 0.0
    broken: list[Verdict] = msgspec.field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.seeds += 1
        self.events += verdict.events
        self.faults += verdict.faults
        self.slowest_recovery_s = max(self.slowest_recovery_s, verdict.recovered_after_s or 0.0)
        if verdict.broken:
            self.broken.append(verdict)


def fuzz(
    seeds: Annotated[str | None, typer.Option(help="Which seeds: one, or a range such as 1-500.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Or: as many seeds as fit, from 1 on.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at once.")] = os.cpu_count() or 1,
    verbose: Annotated[bool, typer.Option(help="Say what each seed drew: mesh, radio, faults.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Draw meshes and faults from seeds, and check that what was promised holds.

    Ends with 0 if every promise held, with 1 if not; each failing seed prints the command that replays it.
    """
    if (seeds is None) == (minutes is None):
        fail("say either --seeds A-B or --minutes M")
    if minutes is not None and not 0 < minutes < float("inf"):
        fail(f"--minutes {minutes:g}: expected more than 0; or say --seeds A-B")
    wanted = count(1) if seeds is None else _parse(seeds)
    total = len(wanted) if isinstance(wanted, range) else None
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    tally = Tally()
    with _progress(total) as progress:
        bar = progress.add_task("seeds", total=total)
        for verdict in _verdicts(wanted, jobs, deadline):
            tally.add(verdict)
            progress.advance(bar)
            if verbose and not json:
                _describe(verdict.seed)
            if verdict.broken and not json:
                _report(verdict)
    if not tally.seeds:
        fail("no seed was run: the time was over before; give more --minutes, or --seeds A-B")
    if json:
        print_json(tally)
    else:
        out.print(
            f"{tally.seeds} seeds, {tally.faults} faults, {tally.events} events: "
            f"{len(tally.broken)} with a broken promise; slowest recovery {tally.slowest_recovery_s:.0f} s"
        )
    raise typer.Exit(int(Exit.NO if tally.broken else Exit.OK))


def _parse(seeds: str) -> range:
    first, dash, last = seeds.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        fail(f"--seeds {seeds}: expected a number such as 7, or a range such as 1-500")
    chosen = range(int(first), int(last if dash else first) + 1)
    if not chosen:
        fail(f"--seeds {seeds}: the range is empty; the smaller number comes first")
    return chosen


def _verdicts(wanted: Iterable[int], jobs: int, deadline: float | None) -> Iterator[Verdict]:
    """As they come in; seeds are handed out only as fast as they are worked off."""
    seeds = iter(wanted)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        under_way: set[Future[Verdict]] = set()
        while True:
            while len(under_way) < 2 * jobs and (deadline is None or time.monotonic() < deadline):
                seed = next(seeds, None)
                if seed is None:
                    break
                under_way.add(pool.submit(run_seed, seed))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from sorted((future.result() for future in done), key=lambda verdict: verdict.seed)


def _progress(total: int | None) -> Progress:
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    if total is None:
        columns = [TextColumn("{task.description}"), TextColumn("{task.completed}"), TimeElapsedColumn()]
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def _describe(seed: int) -> None:
    case, _ = draw(seed)
    out.print(f"seed {seed}: {case.topology} of {case.nodes} nodes", markup=False)
    for line in _setting_lines(case):
        out.print(f"  {line}", markup=False)
    for line in case.faults.describe():
        out.print(f"  {line}", markup=False)


def _setting_lines(case: Case) -> list[str]:
    """What the radio, the clocks and membership were set to, in words."""
    settings, radio = case.settings, case.settings.radio
    air = [f"hop {radio.hop_ms:g} ms"]
    rates = (
        ("loss per hop", radio.loss_per_hop),
        ("loss per message", radio.loss_per_message),
        ("duplicates", radio.duplicate),
        ("reordered", radio.reorder),
    )
    air += [f"{name} {100 * rate:g} %" for name, rate in rates if rate]
    if radio.reorder:
        air[-1] += f", held up by up to {radio.reorder_ms:g} ms"
    return [
        f"radio: {', '.join(air)}",
        f"clocks: off by up to {settings.skew_ms / 1000:g} s, drift up to {settings.drift_ppm:g} ppm",
        f"nodes start within {settings.start_spread_ms / 1000:g} s; membership probes "
        + ("near nodes more often" if case.membership.spatial else "all nodes alike"),
        f"notices posted: {len(case.postings)}",
        f"faults: {len(case.faults.faults)}",
    ]


def _report(verdict: Verdict) -> None:
    out.print(f"seed {verdict.seed}: broken", style="bold red")
    for line in verdict.broken[:10]:
        out.print(f"  {line}", markup=False)
    if len(verdict.broken) > 10:
        out.print(f"  and {len(verdict.broken) - 10} more")
    out.print(f"  replay: {verdict.replay}", markup=False)
