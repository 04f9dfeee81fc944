"""`comesh lab`: breaks a mesh of real processes on purpose, and says whether all promises held.

Each scenario starts its own nodes and ends them. What needs root or a program that is not there is left out,
with the reason. Recordings and logs stay in the directory given by --out.
"""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from comesh.cli.terminal import Exit, err, fail, number, out, print_json
from comesh.deployment.problems import did_you_mean
from comesh.lab.scenarios import SCENARIOS, Outcome, Scenario, run

OUTCOMES: Final = "outcomes.json"
"""File in the directory of a run with the result of each scenario."""


def lab(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Names of scenarios.  [default: all]")
    ] = None,
    *,
    show: Annotated[
        bool, typer.Option("--list", help="Only list the scenarios, with what they prove.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for lost messages, and for the paper's grid.")
    ] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Run the short forms, as the tests do.")] = False,
    into: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Directory for recordings and logs.  [default: a new one]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Break meshes of real processes on purpose, and judge them."""
    chosen = _chosen(names or [])
    if show:
        for scenario in chosen:
            out.print(f"{scenario.name:20} {scenario.proves}")
        return
    directory = _directory(into)
    outcomes: list[Outcome] = []
    for scenario in chosen:
        err.print(f"{scenario.name}: {scenario.proves}")
        outcome = run(scenario, directory / scenario.name, seed=seed, long=not quick, say=_say)
        outcomes.append(outcome)
        (directory / OUTCOMES).write_bytes(msgspec.json.format(msgspec.json.encode(outcomes), indent=2))
        err.print(_line(outcome))
    if json:
        print_json(outcomes)
    else:
        for outcome in outcomes:
            out.print(_line(outcome))
    held = all(outcome.held for outcome in outcomes)
    played = sum(not outcome.skipped for outcome in outcomes)
    err.print(f"{number(played, 'scenario')} played; recordings and logs are in {directory}")
    raise typer.Exit(int(Exit.OK if held else Exit.NO))


def _say(what: str) -> None:
    for line in what.splitlines():
        err.print(f"  {line}")


def _chosen(names: list[str]) -> list[Scenario]:
    for name in names:
        if name not in SCENARIOS:
            fail(f"no scenario {name}; {did_you_mean(name, SCENARIOS) or '--list shows all'}")
    return [SCENARIOS[name] for name in names] or list(SCENARIOS.values())


def _directory(into: Path | None) -> Path:
    """Returns a directory without older results: recordings would be mixed."""
    if into is None:
        return Path(tempfile.mkdtemp(prefix="comesh-lab-run-"))
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            fail(f"{into} is not empty; choose another directory with --out")
    except OSError as wrong:
        fail(f"cannot use {into}: {wrong.strerror}; choose another directory with --out")
    return into


def _line(outcome: Outcome) -> str:
    if outcome.skipped:
        return f"{outcome.scenario}: left out: {outcome.skipped}"
    broken = [f"{promise} ({count} times)" for promise, count in outcome.promises.items() if count]
    judged = ", ".join(outcome.promises)
    verdict = f"BROKEN: {', '.join(broken)}" if broken else f"kept: {judged}"
    what = "held" if outcome.held else "DID NOT HOLD"
    why = f"; {outcome.failed}" if outcome.failed else ""
    return f"{outcome.scenario}: {what} in {outcome.seconds:.0f} s; {verdict}{why}"
