"""`comesh validate FILE...`: finds every mistake of deployment documents in one run, each with its line."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from comesh.cli.documents import exit_code, read_outcome, show_problems
from comesh.cli.terminal import err, out, print_json
from comesh.deployment.load import Outcome

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Deployment documents; - is standard input.", show_default=False),
]


def validate(
    files: Files,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Check documents: every mistake with its line and a fix."""
    outcomes = [read_outcome(file) for file in files]
    if json:
        answers = [_as_json(outcome) for outcome in outcomes]
        print_json(answers[0] if len(answers) == 1 else answers)
    else:
        for outcome in outcomes:
            _show(outcome)
    raise typer.Exit(max(int(exit_code(outcome)) for outcome in outcomes))


def _show(outcome: Outcome) -> None:
    show_problems(outcome)
    if outcome.deployment is not None:
        out.print(f"{outcome.file} is fine: {_summary(outcome)}", markup=False, emoji=False)
    elif not outcome.could_not_read:
        err.print(_count(len(outcome.errors), "mistake"))
    for note in outcome.notes:
        out.print(f"note: {note}", markup=False, emoji=False)


def _counts(outcome: Outcome) -> dict[str, int]:
    deployment = outcome.deployment
    if deployment is None:
        return {}
    sections = (("node", deployment.nodes), ("device", deployment.devices), ("routine", deployment.routines))
    return {kind: len(entries) for kind, entries in sections}


def _summary(outcome: Outcome) -> str:
    counts = {**_counts(outcome), "warning": len(outcome.warnings)}
    return ", ".join(_count(count, kind) for kind, count in counts.items())


def _count(count: int, kind: str) -> str:
    return f"{count} {kind}" if count == 1 else f"{count} {kind}s"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "file": outcome.file,
        "ok": outcome.deployment is not None,
        "complete": not (outcome.could_not_read or outcome.stopped_early or outcome.more),
        "counts": {f"{kind}s": count for kind, count in _counts(outcome).items()},
        "problems": [msgspec.to_builtins(problem) for problem in outcome.problems],
        "notes": list(outcome.notes),
    }
