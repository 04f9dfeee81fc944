"""`comesh validate FILE`: every mistake of a deployment document in one run, each with its line."""

from typing import Annotated, Any

import msgspec
import typer

from comesh.cli.documents import DocumentFile, exit_code, show_problems
from comesh.cli.terminal import err, out, print_json
from comesh.deployment.load import Outcome, load


def validate(
    file: DocumentFile,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check a deployment document: every mistake at once, each with its line and the likely fix."""
    outcome = load(file)
    if json:
        print_json(_as_json(outcome))
    else:
        show_problems(outcome)
        if outcome.deployment is not None:
            out.print(f"{outcome.file} is fine: {_summary(outcome)}", markup=False, emoji=False)
        elif not outcome.could_not_read:
            err.print(_count(len(outcome.errors), "mistake"))
    raise typer.Exit(int(exit_code(outcome)))


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
        "counts": {f"{kind}s": count for kind, count in _counts(outcome).items()},
        "problems": [msgspec.to_builtins(problem) for problem in outcome.problems],
    }
