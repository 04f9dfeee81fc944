"""Runs experiments: the cases of their campaigns that have no result yet, then what is read off them all."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from comesh.experiments.backends import Backend, Processes
from comesh.experiments.source import code_of
from comesh.experiments.stage import Bar, Campaign, Experiment, Parameters, Scale, Table
from comesh.experiments.store import Outcome, Store

REAL_AT_ONCE = 8
"""Cases of real processes, unless more or fewer are asked for: they wait most of the time."""
QUIET_AT_ONCE = 2
"""Cases that others would disturb."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How to come to results."""

    scale: Scale
    out: Path
    fresh: bool = False
    """Measure again what was measured before."""
    reread: bool = False
    """Compute the rows of cases with recordings anew."""
    equal: Sequence[str] = ()
    """Other commits whose results count as this one's."""
    trials: int = REAL_AT_ONCE
    """Real cases at a time."""


class Failed(msgspec.Struct, frozen=True):
    """A case that broke, or, without parameters, an error in reading the results."""

    parameters: Parameters
    error: str

    @property
    def short(self) -> str:
        """Which error it was, without the traceback."""
        lines = self.error.strip().splitlines()
        frames = [at for at, line in enumerate(lines) if line.startswith(" ")]
        after = [line for line in lines[frames[0] if frames else 0 :] if not line.startswith(" ")]
        what = after[0] if after else lines[-1]
        return f"{self.parameters or 'reading its results'}: {what}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    experiment: Experiment
    table: Table
    tables: Mapping[str, Table]
    bars: list[Bar]
    commits: Counter[str]
    """How many cases were measured by each."""
    here: str
    """The commit of this code."""
    reread: int
    """Cases whose rows were computed anew from recordings."""
    cases: list[Parameters]
    failed: list[Failed]
    took_s: float
    """All its cases one after the other, those of earlier runs included."""

    @property
    def note(self) -> str:
        """What is declared equal, computed anew or missing; empty: nothing."""
        others = [f"{one} (declared equal)" for one in self.commits if one != self.here]
        measured = f"measured at {', '.join(others)}" if others else ""
        return "; ".join(filter(None, (measured, self.remark)))

    @property
    def remark(self) -> str:
        """What is computed anew or missing; empty: nothing."""
        broke = sum(bool(one.parameters) for one in self.failed)
        return "; ".join(
            (
                *([f"{self.reread} cases computed anew from their recordings"] if self.reread else ()),
                *([f"without {broke} of {len(self.cases)} cases, which failed"] if broke else ()),
            )
        )

    @property
    def is_good(self) -> bool:
        """All cases ran, and no bar was missed."""
        return not self.failed and all(one.met is not False for one in self.bars)


class Progress:
    """Hears how far it is; a subclass overrides what it shows."""

    def begin(self, campaign: Campaign, had: Sequence[Parameters], left: Sequence[Parameters]) -> None:
        """had: cases that have results already; left: those that are measured now."""

    def left_out(self, campaign: Campaign, results: Mapping[str, int]) -> None:
        """Results that do not count, by their commit."""

    def done(self, campaign: Campaign, outcome: Outcome) -> None:
        """One more case."""


def run_campaign(experiment: Experiment, asked: Asked, backend: Backend, progress: Progress) -> list[Outcome]:
    """Outcomes in the order of the cases."""
    campaign = experiment.campaign
    cases = list(campaign.cases(asked.scale))
    code = code_of(campaign)
    with Store(asked.out, campaign, code, asked.equal) as store:
        if store.left_out:
            progress.left_out(campaign, store.left_out)
        left = [case for case in cases if asked.fresh or store.get(case) is None]
        had = [case for case in cases if case not in left]
        progress.begin(campaign, had, left)
        if asked.reread:
            for case in had:
                _reread(campaign, store, case, code.name)
        left.sort(key=campaign.about_s, reverse=True)
        for where, some in _shared_out(campaign, left, backend, asked.trials):
            for outcome, recording in where.outcomes(experiment.id, code, some):
                store.put(outcome, recording)
                progress.done(campaign, outcome)
        found = [store.get(case) for case in cases]
    return [one for one in found if one is not None]


def _reread(campaign: Campaign, store: Store, case: Parameters, here: str) -> None:
    """Computes the rows of a case anew, if it has a recording."""
    path, known = store.recording(case), store.get(case)
    if campaign.reread is not None and known is not None and path.exists():
        rows = campaign.reread(path.read_bytes())
        if rows != known.rows:
            store.put(msgspec.structs.replace(known, rows=rows, reread=here))


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
    asked: Asked,
    backend: Backend,
    *,
    progress: Progress,
    finished: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Simulations first, then real processes, which have the machine for themselves."""
    for one in experiments:
        code_of(one.campaign)  # the files as they are now, and not when its turn comes
    outcomes: dict[str, list[Outcome]] = {}
    results: dict[str, Result] = {}
    for one in sorted(experiments, key=lambda one: one.campaign.real):
        name = one.campaign.name
        if name not in outcomes:
            outcomes[name] = run_campaign(one, asked, backend, progress)
        result = results[one.id] = result_of(one, outcomes[name])
        finished(result)
    return [results[one.id] for one in experiments]


def result_of(experiment: Experiment, outcomes: Sequence[Outcome]) -> Result:
    failed = [Failed(one.parameters, one.error) for one in outcomes if one.error]
    table = table_of([one for one in outcomes if experiment.looks_at(one.parameters)])
    tables: Mapping[str, Table] = {}
    bars: list[Bar] = []
    if len(table):
        try:
            tables, bars = experiment.tables(table), experiment.bars(table)
        except Exception:  # an experiment that cannot be read must not take the others' results along
            failed.append(Failed({}, traceback.format_exc()))
    return Result(
        experiment=experiment,
        table=table_of(outcomes),
        tables=tables,
        bars=bars,
        commits=Counter(one.commit for one in outcomes),
        here=code_of(experiment.campaign).name,
        reread=sum(bool(one.reread) for one in outcomes),
        cases=[one.parameters for one in outcomes],
        failed=failed,
        took_s=sum(one.took_s for one in outcomes),
    )
