"""Carries out `comesh reproduce` once all that it needs is there: runs, shows progress, prints the
results."""

import datetime
import math
import re
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import msgspec
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
from comesh.experiments.catalogue import add_plugin, experiment, names
from comesh.experiments.report import Made, Section
from comesh.experiments.reproduction import Asked
from comesh.experiments.source import commit, commit_named
from comesh.experiments.stage import Campaign, Experiment, Parameters, Scale
from comesh.experiments.stage import number as number_of
from comesh.experiments.store import Outcome

PLAIN_S = 10.0
"""Seconds between two lines of progress where there is no terminal."""
MAX_FAILED = 3
"""Maximum failures that are printed in full; the report names all."""
ADDRESS = re.compile(r"(\w+://)?\S+:\d+")


def tell_list(which: Sequence[str], *, json: bool) -> None:
    found = _chosen(which)
    if json:
        print_json([{"id": one.id, "title": one.title, "paper": one.paper} for one in found])
        return
    for one in found:
        out.print(f"{one.id:4} {one.title}")


def asked_for(
    *, full: bool, out: Path, fresh: bool, reread: bool, as_measured: Sequence[str], trials: int
) -> Asked:
    """as_measured: any names of commits that the checkout knows, or those in stored results."""
    return Asked(
        scale=Scale.FULL if full else Scale.QUICK,
        out=out,
        fresh=fresh,
        reread=reread,
        equal=[commit_named(one) or one for one in as_measured],
        trials=trials,
    )


def loaded(plugins: Sequence[str]) -> tuple[str, ...]:
    """Loads plug-ins and returns their names, files with their whole path: other processes load them, too."""
    found = tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in plugins)
    try:
        for name in found:
            add_plugin(name)
    except PluginError as wrong:
        fail(str(wrong))
    return found


def run(
    which: Sequence[str],
    asked: Asked,
    plugins: Sequence[str],
    *,
    jobs: int,
    scheduler: str | None,
    json: bool,
) -> None:
    experiments = _chosen(which)
    backend = Processes(jobs) if scheduler is None else Cluster(scheduler)
    _check(asked.out, scheduler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: cases under way end with it
    if "+" in commit():
        err.print(f"uncommitted changes: results count for exactly these, and are filed under {commit()}")
    try:
        asked.out.mkdir(parents=True, exist_ok=True)
        with _Shown(experiments, asked.scale, TimeLeft(jobs, asked.trials), fresh=asked.fresh) as shown:
            results = reproduction.reproduce(
                experiments, asked, backend, progress=shown, finished=lambda one: _tell(one, json=json)
            )
        made = Made(
            command=_command(which, asked, plugins),
            scale=asked.scale,
            version=__version__,
            day=str(datetime.datetime.now(tz=datetime.UTC).date()),
            commit=commit(),
        )
        sections = report.write(results, asked.out, made)
    except OSError as wrong:
        where = wrong.filename or scheduler or asked.out
        fail(f"{where}: {wrong.strerror or wrong}")
    good = all(result.is_good for result in results) and not any(one.failed for one in sections)
    if json:
        _tell_json(sections, made, asked.out, good=good)
    else:
        _tell_unwritten(results, sections)
        out.print(f"\nwrote {asked.out / 'report.html'}, {asked.out / 'report.md'}, figures and tables")
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


def _command(which: Sequence[str], asked: Asked, plugins: Sequence[str]) -> str:
    words = ["comesh", "reproduce", *which, f"--{asked.scale}"]
    words += [] if asked.trials == reproduction.REAL_AT_ONCE else ["--trials", str(asked.trials)]
    words += ["--reread"] if asked.reread else []
    words += [word for one in asked.equal for word in ("--as-measured", one)]
    words += [word for one in plugins for word in ("--plugin", Path(one).name)]
    return shlex.join(words)


def _tell(result: reproduction.Result, *, json: bool) -> None:
    if json:
        return
    one = result.experiment
    out.print(Text(f"\n{one.id}. {one.title}", style="bold"))
    if result.note:
        out.print(Text(f"  {result.note}", style="yellow"))
    for bar in result.bars:
        told = f"  {bar.name}: {number_of(bar.value)} ({bar.sense} {number_of(bar.limit)}): {bar.verdict}"
        out.print(Text(told, style="bold red" if bar.met is False else ""))
    if not result.bars and not result.failed:
        out.print("  measured; it has no bars")
    reading_first = sorted(result.failed, key=lambda one: bool(one.parameters))
    for failed in reading_first[:MAX_FAILED]:
        out.print(Text(f"  failed: {failed.short}\n{failed.error}", style="red"))
    if len(result.failed) > MAX_FAILED:
        out.print(f"  and {number(len(result.failed) - MAX_FAILED, 'more case')} failed")


def _tell_json(sections: Sequence[Section], made: Made, to: Path, *, good: bool) -> None:
    experiments = [
        {
            "id": one.result.experiment.id,
            "title": one.result.experiment.title,
            "note": one.result.note,
            "failed": one.failed,
            "bars": [{**msgspec.structs.asdict(bar), "met": bar.met} for bar in one.result.bars],
            "tables": {caption: table.rows for caption, table in one.result.tables.items()},
        }
        for one in sections
    ]
    print_json({**msgspec.structs.asdict(made), "out": str(to), "good": good, "experiments": experiments})


def _tell_unwritten(results: Sequence[reproduction.Result], sections: Sequence[Section]) -> None:
    """Prints what failed after all was measured and read."""
    for result, section in zip(results, sections, strict=True):
        for failed in section.failed[len(result.failed) :]:
            out.print(Text(f"{result.experiment.id}: failed: {failed}", style="red"))


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

    def left_out(self, campaign: Campaign, results: Mapping[str, int]) -> None:
        told = ", ".join(f"{count} of {commit}" for commit, count in results.items())
        err.print(f"{campaign.name}: results of other commits left out: {told} (see --as-measured)")

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
