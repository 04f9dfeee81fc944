"""`comesh reproduce`: the paper's evaluation from our core, next to what the paper reports."""

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from comesh.cli.terminal import fail

CORES = os.cpu_count() or 1
OUT = Path("reproduction")
TRIALS = 8
EXTRA = {"distributed": "dask"}
"""What is installed with which extra; all else comes with `sim`."""


def reproduce(
    which: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Such as P7 P9, or A to G for ours; `all`, or none, is all of them."
        ),
    ] = None,
    *,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="The paper's seeds and sizes (hours), or every claim in minutes. The last one counts.",
        ),
    ] = False,
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where everything is written.")] = OUT,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at once.")] = CORES,
    trials: Annotated[int, typer.Option(min=1, help="Meshes of real processes at once.")] = TRIALS,
    backend: Annotated[
        str, typer.Option(metavar="joblib|dask", help="Processes here, or the workers of a Dask cluster.")
    ] = "joblib",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the Dask cluster, such as tcp://10.0.0.5:8786.")
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="FILE|MODULE",
            help="A Python file or module with policies or an experiment of your own; may be given again.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again also what was measured before.")
    ] = False,
    as_measured: Annotated[
        bool, typer.Option("--as-measured", help="Take results of other code, too; the report says so.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Tell what there is, and run nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run experiments of the paper, and ours beyond it; draw, compare and report what came of them.

    Goes on where it stopped: what was measured by the same code is not measured again. Ends with 0 if every
    case ran and every bar that was judged was met, with 1 if not, with 130 after Ctrl-C.
    """
    if backend not in ("joblib", "dask"):
        fail(f"--backend {backend}: expected joblib or dask")
    if (backend == "dask") != (scheduler is not None):
        fail("--backend dask and --scheduler ADDRESS go together")
    if fresh and as_measured:
        fail("--fresh measures all again, --as-measured as little as can be: which of them?")
    reproducing = _needed(cluster=scheduler is not None)
    plugins = reproducing.loaded(plugin or [])
    if listed:
        reproducing.tell_list(which or ["all"], json=json)
        return
    reuse = reproducing.reuse_of(fresh, as_measured)
    asked = reproducing.Asked(which or ["all"], full, to, plugins, reuse, trials)
    reproducing.run(asked, jobs=jobs, scheduler=scheduler, json=json)


def _needed(*, cluster: bool) -> Any:
    """What carries it out, if all that it uses is installed."""
    try:
        if cluster:
            import_module("distributed")
        return import_module("comesh.cli.reproducing")
    except ModuleNotFoundError as missing:
        extra = EXTRA.get(missing.name or "", "sim")
        fail(f"{missing.name} is not installed: pip install 'comesh[{extra}]'")
