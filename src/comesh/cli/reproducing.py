"""Carries out `comesh reproduce` once all that it needs is there: runs, shows progress, prints the
results."""

import datetime
import math
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from comesh import __version__
from comesh.cli.terminal import Exit, err, fail, number, out, print_json
from comesh.cli.time_left import TimeLeft
from comesh.deployment.plugins import PluginError
from comesh.deployment.problems import did_you_mean
from comesh.experiments import report, reproduction
from comesh.experiments.backends import Cluster, Processes
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.catalogue import add_plugin, experiment, names
from comesh.experiments.section import Made, Section
from comesh.experiments.store import Outcome, Reuse

PLAIN_S = 10.0
"""Seconds between two lines of progress where there is no terminal."""
MAX_FAILED = 3
"""Maximum failures that are printed in full; the report names all."""
ADDRESS = re.compile(r"(\w+://)?\S+:\d+")
COLOURS = {Verdict.AGREES: "green", Verdict.BETTER: "green", Verdict.DIFFERS: "yellow", Verdict.OURS: ""}


def tell_list(which: Sequence[str], *, json: bool) -> None:
    found = _chosen(which)
    if json:
        print_json([{"id": one.id, "title": one.title, "paper": one.paper} for one in found])
        return
    for one in found:
        out.print(f"{one.id:4} {one.title}")


class Asked(NamedTuple):
    which: Sequence[str]
    full: bool
    to: Path
    plugins: tuple[str, ...]
    reuse: Reuse
    trials: int


def reuse_of(fresh: bool, as_measured: bool) -> Reuse:
    if fresh:
        return Reuse.NONE
    return Reuse.ANY_CODE if as_measured else Reuse.THIS_CODE


def loaded(plugins: Sequence[str]) -> tuple[str, ...]:
    """Loads plug-ins and returns their names, files with their whole path: other processes load them, too."""
    found = tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in plugins)
    try:
        for name in found:
            add_plugin(name)
    except PluginError as wrong:
        fail(str(wrong))
    return found


def run(asked: Asked, *, jobs: int, scheduler: str | None, json: bool) -> None:
    to = asked.to
    experiments = _chosen(asked.which)
    scale = Scale.FULL if asked.full else Scale.QUICK
    backend = Processes(jobs) if scheduler is None else Cluster(scheduler)
    _check(to, scheduler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: cases under way end with it
    try:
        to.mkdir(parents=True, exist_ok=True)
        commit = _commit()
        left = TimeLeft(jobs, asked.trials)
        with _Shown(experiments, scale, left, fresh=asked.reuse is Reuse.NONE) as shown:
            results = reproduction.reproduce(
                experiments,
                scale,
                to,
                backend,
                progress=shown,
                finished=lambda one: _tell(one, json=json),
                reuse=asked.reuse,
                trials=asked.trials,
            )
        made = Made(
            command=_command(asked, scale),
            scale=scale,
            version=__version__,
            day=str(_today()),
            commit=commit,
        )
        sections = report.write(results, to, made)
    except OSError as wrong:
        where = wrong.filename or scheduler or to
        fail(f"{where}: {wrong.strerror or wrong}")
    good = all(result.is_good for result in results) and not any(one.failed for one in sections)
    if json:
        _tell_json(sections, made, to, good=good)
    else:
        _tell_unwritten(results, sections)
        out.print(f"\nwrote {to / 'report.html'}, {to / 'report.md'}, figures and tables")
        if not good:
            out.print("not all is well: see above what failed or missed its bar")
    raise typer.Exit(int(Exit.OK if good else Exit.NO))


def _check(to: Path, scheduler: str | None) -> None:
    if scheduler is not None and not ADDRESS.fullmatch(scheduler):
        fail(f"--scheduler {scheduler}: expected an address such as tcp://10.0.0.5:8786")
    if to.exists() and not to.is_dir():
        fail(f"--out {to}: this is not a directory")


def _chosen(which: Sequence[str]) -> list[Experiment]:
    unknown = [word for word in which if word.upper() not in (*names(), "ALL")]
    if any(re.search(r"[,;]|\d-", word) for word in unknown):
        fail(f"{' '.join(unknown)}: expected IDs with spaces between them, such as P1 P3; `--list` has all")
    if unknown:
        guesses = [did_you_mean(word.upper(), names()) for word in unknown]
        known = ", ".join(filter(None, guesses)) or f"there are {', '.join(names())}, and all"
        own = "one of your own comes with --plugin FILE, as its EXPERIMENT"
        fail(f"there is no experiment {', '.join(unknown)}; {known}; {own}")
    chosen: list[str] = []
    for word in which:
        chosen += names() if word.upper() == "ALL" else [word.upper()]
    return [experiment(name) for name in dict.fromkeys(chosen)]


def _command(asked: Asked, scale: Scale) -> str:
    plugins = [word for name in asked.plugins for word in ("--plugin", Path(name).name)]
    trials = [] if asked.trials == reproduction.REAL_AT_ONCE else ["--trials", str(asked.trials)]
    as_measured = ["--as-measured"] if asked.reuse is Reuse.ANY_CODE else []
    return shlex.join(["comesh", "reproduce", *asked.which, f"--{scale}", *trials, *as_measured, *plugins])


def _commit() -> str:
    """Returns the commit that is checked out where the code lies, and whether the code was changed since;
    empty: no checkout."""
    here = Path(__file__).parent
    try:
        asked = [
            subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True)
            for words in (
                ["ls-files", "--error-unmatch", Path(__file__).name],
                ["rev-parse", "--short=12", "HEAD"],
                ["status", "--porcelain", "--", "../.."],
            )
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    _, head, changed = (one.stdout.strip() for one in asked)
    return f"{head}, changed since" if changed else head


def _today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()


def _tell(result: reproduction.Result, *, json: bool) -> None:
    if json:
        return
    one = result.experiment
    out.print(Text(f"\n{one.id}. {one.title}", style="bold"))
    if result.note:
        out.print(Text(f"  {result.note}", style="yellow"))
    for compared in result.comparisons:
        out.print(_line(compared))
    comparing_first = sorted(result.failed, key=lambda one: bool(one.parameters))
    for failed in comparing_first[:MAX_FAILED]:
        out.print(Text(f"  failed: {failed.short}\n{failed.error}", style="red"))
    if len(result.failed) > MAX_FAILED:
        out.print(f"  and {number(len(result.failed) - MAX_FAILED, 'more case')} failed")


def _tell_json(sections: Sequence[Section], made: Made, to: Path, *, good: bool) -> None:
    experiments = [
        {
            "id": one.id,
            "title": one.title,
            "note": one.note,
            "failed": one.failed,
            "comparisons": one.comparisons,
        }
        for one in sections
    ]
    print_json(
        {
            "command": made.command,
            "scale": made.scale,
            "version": made.version,
            "commit": made.commit,
            "out": str(to),
            "good": good,
            "experiments": experiments,
        }
    )


def _tell_unwritten(results: Sequence[reproduction.Result], sections: Sequence[Section]) -> None:
    """Prints what failed after all was measured and compared."""
    for result, section in zip(results, sections, strict=True):
        for failed in section.failed[len(result.failed) :]:
            out.print(Text(f"{section.id}: failed: {failed}", style="red"))


def _line(one: Comparison) -> Text:
    line = Text(f"  {one.what}: {one.ours}")
    if one.paper:
        line.append(f" (paper: {one.paper})")
    line.append(f"  {one.verdict}", style=COLOURS[one.verdict])
    if one.held:
        line.append(f", {one.bar}: {one.held}", style="bold red" if one.met is False else "")
    return line


class _Shown(reproduction.Progress):
    """Shows progress as a bar on a terminal, and as a line now and then elsewhere; both on standard error."""

    def __init__(
        self, experiments: Sequence[Experiment], scale: Scale, time_left: TimeLeft, *, fresh: bool
    ) -> None:
        self._again = "the same command without --fresh" if fresh else "the same command"
        campaigns = {one.campaign.name: one.campaign for one in experiments}.values()
        self._left = self._total = self._failed = 0
        self._time_left = time_left
        for campaign in campaigns:
            for case in campaign.cases(scale):
                time_left.add(campaign, case)
                self._total += 1
        self._left = self._total
        columns = (
            TextColumn("{task.description:24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        self._task = self._bar.add_task("", total=self._total, left="")
        self._told_s = self._began_s = time.monotonic()

    def __enter__(self) -> "_Shown":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._bar.stop()
        if kind is KeyboardInterrupt:
            done = number(self._total - self._left, "case")
            err.print(f"stopped: {done} of {self._total} kept; {self._again} goes on from there")

    def begin(self, campaign: Campaign, had: Sequence[Parameters], left: Sequence[Parameters]) -> None:
        self._left -= len(had)
        if had:
            err.print(f"{campaign.name}: {number(len(had), 'case')} measured before")
        for case in had:
            self._time_left.drop(campaign, case)
        self._bar.update(self._task, description=campaign.name, advance=len(had))
        if left and not err.is_terminal:
            err.print(f"{campaign.name}: {number(len(left), 'case')} to measure")

    def dropped(self, campaign: Campaign, results: int) -> None:
        err.print(f"{campaign.name}: {number(results, 'result')} of other code left out (see --as-measured)")

    def done(self, campaign: Campaign, outcome: Outcome) -> None:
        self._left -= 1
        now_s = time.monotonic()
        left_s = self._time_left.done(campaign, outcome.parameters, now_s - self._began_s)
        left = f"about {max(1, math.ceil(left_s / 60))} min left" if self._left else "none left"
        if outcome.error:
            self._failed += 1
            if self._failed == 1:
                short = reproduction.Failed(outcome.parameters, outcome.error).short
                err.print(Text(f"{campaign.name}: a case failed: {short}", style="red"))
        if self._failed:
            left = f"{self._failed} failed, {left}"
        self._bar.update(self._task, advance=1, left=left)
        if not err.is_terminal and now_s - self._told_s >= PLAIN_S:
            self._told_s = now_s
            err.print(f"{campaign.name}: {self._total - self._left} of {self._total} cases in all, {left}")
