"""Runs experiments: the cases of their campaigns that have no result yet, then what is read off them all."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from comesh.experiments.backends import Backend, Processes
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale
from comesh.experiments.store import Outcome, Reuse, Store, code_of
from comesh.experiments.table import Table

REAL_AT_ONCE = 8
"""Cases of real processes, unless more or fewer are asked for: they wait most of the time."""
QUIET_AT_ONCE = 2
"""Of those that others would disturb."""


class Failed(msgspec.Struct, frozen=True):
    """A case that broke, or, of no parameters, comparing them: an error of whoever wrote the experiment."""

    parameters: Parameters
    error: str

    @property
    def short(self) -> str:
        """Which error it was, without the way to it."""
        lines = self.error.strip().splitlines()
        frames = [at for at, line in enumerate(lines) if line.startswith(" ")]
        after = [line for line in lines[frames[0] if frames else 0 :] if not line.startswith(" ")]
        what = after[0] if after else lines[-1]
        return f"{self.parameters or 'comparing'}: {what}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    experiment: Experiment
    table: Table
    code: str
    """A digest of what it depends on now."""
    codes: list[str]
    """Those of what it was measured with, this one first."""
    cases: list[Parameters]
    comparisons: list[Comparison]
    failed: list[Failed]
    took_s: float
    """Of all its cases, one after the other, those of earlier runs included."""

    @property
    def note(self) -> str:
        """What is not of this code, and what is not in it."""
        other = any(code != self.code for code in self.codes)
        partly = "partly " if self.code in self.codes else ""
        broke = sum(bool(one.parameters) for one in self.failed)
        return "; ".join(
            (
                *([f"{partly}measured with other code"] if other else ()),
                *([f"without {broke} of {len(self.cases)} cases, which failed"] if broke else ()),
            )
        )

    @property
    def is_good(self) -> bool:
        """All cases ran, and every bar was met."""
        return not self.failed and all(one.met is not False for one in self.comparisons)


class Progress:
    """Told how far it is; whoever shows it overrides what it needs."""

    def begin(self, campaign: Campaign, had: Sequence[Parameters], left: Sequence[Parameters]) -> None:
        """had: cases that have results already; left: those that are measured now."""

    def dropped(self, campaign: Campaign, results: int) -> None:
        """Results of other code, which do not count."""

    def done(self, campaign: Campaign, outcome: Outcome) -> None:
        """One more case."""


def run_campaign(
    experiment: Experiment,
    scale: Scale,
    out: Path,
    backend: Backend,
    progress: Progress,
    *,
    reuse: Reuse = Reuse.THIS_CODE,
    trials: int = REAL_AT_ONCE,
) -> list[Outcome]:
    """Outcomes in the order of the cases. trials: real ones at a time."""
    campaign = experiment.campaign
    cases = list(campaign.cases(scale))
    with Store(out / "cases", campaign, any_code=reuse is Reuse.ANY_CODE) as store:
        if store.dropped:
            progress.dropped(campaign, store.dropped)
        left = [case for case in cases if reuse is Reuse.NONE or store.get(case) is None]
        progress.begin(campaign, [case for case in cases if case not in left], left)
        left.sort(key=campaign.about_s, reverse=True)
        for where, some in _shared_out(campaign, left, backend, trials):
            for outcome in where.outcomes(experiment.id, store.code, some):
                store.put(outcome)
                progress.done(campaign, outcome)
        found = [store.get(case) for case in cases]
    return [one for one in found if one is not None]


def _shared_out(
    campaign: Campaign, cases: Sequence[Parameters], backend: Backend, trials: int
) -> Iterator[tuple[Backend, list[Parameters]]]:
    """Which cases run where, those that must be quiet at the end."""
    noisy = [case for case in cases if not campaign.is_quiet(case)]
    quiet = [case for case in cases if campaign.is_quiet(case)]
    if noisy:
        yield Processes(trials) if campaign.real else backend, noisy
    if quiet:
        yield Processes(min(trials, QUIET_AT_ONCE)), quiet


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """All rows, each with the parameters of its case."""
    return Table({**one.parameters, **row} for one in outcomes for row in one.rows)


def reproduce(
    experiments: Sequence[Experiment],
    scale: Scale,
    out: Path,
    backend: Backend,
    *,
    progress: Progress,
    finished: Callable[[Result], None] = lambda _: None,
    reuse: Reuse = Reuse.THIS_CODE,
    trials: int = REAL_AT_ONCE,
) -> list[Result]:
    """Simulations first, then real processes, which have the machine for themselves."""
    for one in experiments:
        code_of(one.campaign)  # of the files as they are now, and not when its turn comes
    outcomes: dict[str, list[Outcome]] = {}
    results: dict[str, Result] = {}
    for one in sorted(experiments, key=lambda one: one.campaign.real):
        name = one.campaign.name
        if name not in outcomes:
            outcomes[name] = run_campaign(one, scale, out, backend, progress, reuse=reuse, trials=trials)
        result = results[one.id] = result_of(one, outcomes[name])
        finished(result)
    return [results[one.id] for one in experiments]


def result_of(experiment: Experiment, outcomes: Sequence[Outcome]) -> Result:
    failed = [Failed(one.parameters, one.error) for one in outcomes if one.error]
    table = table_of(outcomes)
    code = code_of(experiment.campaign)
    codes = sorted({one.code for one in outcomes}, key=lambda one: (one != code, one))
    comparisons: list[Comparison] = []
    if len(table):
        try:
            comparisons = experiment.compare(table)
        except Exception:  # one experiment that cannot tell must not take the others' results along
            failed.append(Failed({}, traceback.format_exc()))
    return Result(
        experiment=experiment,
        table=table,
        code=code,
        codes=codes,
        cases=[one.parameters for one in outcomes],
        comparisons=comparisons,
        failed=failed,
        took_s=sum(one.took_s for one in outcomes),
    )
