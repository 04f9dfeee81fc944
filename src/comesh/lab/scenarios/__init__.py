"""Scenarios on real processes: each is a function whose docstring says what it proves.

    outcome = run(SCENARIOS["leaders-die"], Path("out"), seed=1, long=True, say=print)
    outcome.held, outcome.failed

A scenario held if all that it waits for came within its bounds, and the judge found no promise broken. The
long forms take minutes and are run by `comesh lab`; the quick ones are part of the tests.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from comesh.drivers.virtual.admin import DevicesClientError
from comesh.lab.judging import JudgeError, Verdict
from comesh.lab.mesh import MeshError
from comesh.lab.namespaces import NamespacesError
from comesh.lab.scenarios.changes import a_routine_is_added, restarted_one_by_one
from comesh.lab.scenarios.darkness import all_go_dark_batched, all_go_dark_strict
from comesh.lab.scenarios.deaths import a_power_domain_dies, f_nodes_die, leaders_die
from comesh.lab.scenarios.disks import a_clock_is_wrong, a_disk_is_full, a_journal_is_spoiled
from comesh.lab.scenarios.one_way import heard_one_way
from comesh.lab.scenarios.paper import the_papers_grid, the_papers_line
from comesh.lab.scenarios.partings import parted_in_three, parted_in_two
from comesh.lab.scenarios.pauses import a_leader_stands_still
from comesh.lab.scenarios.play import Say, Stage
from comesh.lab.scenarios.strangers import strangers_flood_a_leader
from comesh.lab.scenarios.thefts import a_node_is_stolen
from comesh.lab.scenarios.twins import two_have_one_name
from comesh.lab.small_disk import why_no_small_disk
from comesh.queries.answers import QueryError
from comesh.runtime.local_mesh import LocalMeshError
from comesh.runtime.recording import RecordingError
from comesh.sim.checks.violation import Promise

_FAILURES: Final = (
    MeshError,
    LocalMeshError,
    NamespacesError,
    QueryError,
    DevicesClientError,
    JudgeError,
    RecordingError,
    OSError,
    subprocess.SubprocessError,
)
"""Exceptions by which a scenario fails; anything else is a mistake in it."""


def _nothing() -> str:
    return ""


class Scenario(NamedTuple):
    name: str
    play: Callable[[Stage], None]
    why_not: Callable[[], str] = _nothing
    """Why it cannot be played on this machine; empty: it can."""

    @property
    def proves(self) -> str:
        return " ".join((self.play.__doc__ or "").split())


_ALL: Final = (
    Scenario("papers-grid", the_papers_grid),
    Scenario("papers-line", the_papers_line),
    Scenario("leaders-die", leaders_die),
    Scenario("leader-stands-still", a_leader_stands_still),
    Scenario("f-nodes-die", f_nodes_die),
    Scenario("power-domain-dies", a_power_domain_dies),
    Scenario("all-dark-strict", all_go_dark_strict),
    Scenario("all-dark-batched", all_go_dark_batched),
    Scenario("parted-in-two", parted_in_two),
    Scenario("parted-in-three", parted_in_three),
    Scenario("heard-one-way", heard_one_way),
    Scenario("disk-full", a_disk_is_full, why_no_small_disk),
    Scenario("journal-spoiled", a_journal_is_spoiled),
    Scenario("clock-wrong", a_clock_is_wrong),
    Scenario("two-with-one-name", two_have_one_name),
    Scenario("strangers", strangers_flood_a_leader),
    Scenario("routine-added", a_routine_is_added),
    Scenario("restarted-one-by-one", restarted_one_by_one),
    Scenario("node-stolen", a_node_is_stolen),
)
SCENARIOS: Final = MappingProxyType({scenario.name: scenario for scenario in _ALL})


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    proves: str
    skipped: str = ""
    """Why it was not played; empty: it was."""
    failed: str = ""
    """What did not come or did not hold; empty: everything did."""
    seconds: float = 0.0
    promises: dict[str, int] = {}
    """Number of times that each judged promise was broken."""
    verdicts: tuple[Verdict, ...] = ()
    figures: dict[str, float] = {}

    @property
    def held(self) -> bool:
        """Or was not played."""
        return bool(self.skipped) or (
            not self.failed and bool(self.verdicts) and all(one.kept for one in self.verdicts)
        )


def run(
    scenario: Scenario, directory: Path, *, seed: int = 0, long: bool = False, say: Say | None = None
) -> Outcome:
    """Play a scenario in a directory that does not exist yet."""
    why_not = scenario.why_not()
    if why_not:
        return Outcome(scenario=scenario.name, proves=scenario.proves, skipped=why_not)
    stage = Stage(directory, seed=seed, long=long, say=say)
    began = time.monotonic()
    failed = ""
    try:
        scenario.play(stage)
    except _FAILURES as wrong:
        failed = str(wrong) or type(wrong).__name__
    return Outcome(
        scenario=scenario.name,
        proves=scenario.proves,
        failed=failed,
        seconds=time.monotonic() - began,
        promises=_promises(stage.verdicts),
        verdicts=tuple(stage.verdicts),
        figures=stage.figures,
    )


def _promises(verdicts: list[Verdict]) -> dict[str, int]:
    broken = Counter(one.promise for verdict in verdicts for one in verdict.violations)
    judged = [one for one in Promise if one is not Promise.PROGRESS or all(v.quiet_s for v in verdicts)]
    return {str(promise): broken[promise] for promise in judged}
