"""What an experiment is: a campaign of cases that are run, and what is read off its results.

A *case* is a set of parameters, its seed among them; what it measures depends on nothing else, so cases can
be run anywhere and in any order. A *campaign* is many cases of one kind. An *experiment* is a figure, table
or claim of the paper (P1 to P16), or one of ours (A to G): it compares and draws the results of a campaign.
Several experiments may look at one campaign.

A module per experiment states its parameters, how a case is run and what is compared:

    CAMPAIGN = Campaign("candidates", cases, run)
    EXPERIMENT = Experiment(id="P1", title="Candidates per selection", campaign=CAMPAIGN, paper="...",
                            compare=compare, draw=draw)
"""

from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec
from matplotlib.figure import Figure

from comesh.experiments.table import Row, Table, Value

Parameters = dict[str, Value]


class Scale(StrEnum):
    QUICK = "quick"
    """Every claim, in minutes."""
    FULL = "full"
    """The paper's seeds and sizes."""


class Verdict(StrEnum):
    AGREES = "agrees"
    BETTER = "better"
    DIFFERS = "differs"
    OURS = "ours"
    """The paper has no such number."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One line of what is compared: what, by us, by the paper, and why they differ if they do."""

    what: str
    ours: str
    paper: str = ""
    verdict: Verdict
    why: str = ""
    in_short: str = ""
    """If it differs: what does, and why, in a sentence for the report's index."""
    bar: str = ""
    """What it is held to here, if to anything."""
    met: bool | None = None
    """Whether the bar was met; none: what there is does not suffice to judge it, and `why` tells."""

    @property
    def held(self) -> str:
        """How it stands with its bar, in a word or two; empty: it has none."""
        return {True: "met", False: "MISSED", None: "not judged"}[self.met] if self.bar else ""


class Campaign(msgspec.Struct, frozen=True):
    name: str
    cases: Callable[[Scale], Iterable[Parameters]]
    run: Callable[[Parameters], list[Row]]
    """What one case measures: rows without the parameters, which are put beside them."""
    about_s: Callable[[Parameters], float] = lambda _: 1.0
    """About how long a case takes: tells what is left, and has long ones begin first."""
    real: bool = False
    """Real processes: cases wait for real time, so several run at once, and nothing simulated meanwhile."""
    is_quiet: Callable[[Parameters], bool] = lambda _: False
    """Of real cases: whether one measures what many others at once would disturb."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    campaign: Campaign
    paper: str
    """What the paper reports, in words; of ours: what is asked."""
    compare: Callable[[Table], list[Comparison]]
    draw: Callable[[Table], Figure]
    about: str = ""
    """How it was measured, and what has to be known to read it."""
    looks_at: Callable[[Parameters], bool] = lambda _: True
    """Which cases of its campaign, of those that it shares with others."""


def within(ours: float, paper: float, tolerance: float) -> bool:
    """Whether our number is that near to the paper's."""
    return abs(ours / paper - 1) <= tolerance


def judged(*, agrees: bool, better: bool = False) -> Verdict:
    if agrees:
        return Verdict.AGREES
    return Verdict.BETTER if better else Verdict.DIFFERS
