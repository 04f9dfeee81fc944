"""`comesh reproduce`: the paper's evaluation from our core: figures, tables and bars."""

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
"""Extras that install what is needed; all else comes with `sim`."""

_Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID", help="Experiments, such as P7 P9, or A to G for ours; `all`, or none, runs all."
    ),
]
_Full = Annotated[
    bool,
    typer.Option(
        "--full/--quick",
        help="The paper's seeds and sizes (hours), or every claim in minutes.",
    ),
]
_Backend = Annotated[
    str,
    typer.Option(metavar="joblib|dask", help="Run on processes here, or on the workers of a Dask cluster."),
]
_Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Address of the Dask cluster, such as tcp://10.0.0.5:8786."),
]
_Plugin = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE|MODULE",
        help="Python file or module with your own policies or experiment; repeatable.",
    ),
]
_Commits = Annotated[
    list[str] | None,
    typer.Option(
        "--as-measured",
        metavar="COMMIT",
        help="Count results of this commit as today's; repeatable.",
    ),
]


def reproduce(
    which: _Ids = None,
    *,
    full: _Full = False,
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for all results.")] = OUT,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = CORES,
    trials: Annotated[
        int, typer.Option(min=1, help="Number of meshes of real processes at a time.")
    ] = TRIALS,
    backend: _Backend = "joblib",
    scheduler: _Scheduler = None,
    plugin: _Plugin = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what was measured before.")] = False,
    reread: Annotated[
        bool, typer.Option("--reread", help="Compute the measures of recorded trials anew.")
    ] = False,
    as_measured: _Commits = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, and run nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Run the paper's experiments and ours, and write a report.

    Continues where it stopped: what this commit has measured is not measured again. Exit code 0: every case
    ran and every bar that was judged was met; 1: not so; 130: Ctrl-C.
    """
    if backend not in ("joblib", "dask"):
        fail(f"--backend {backend}: expected joblib or dask")
    if (backend == "dask") != (scheduler is not None):
        fail("--backend dask and --scheduler ADDRESS go together")
    if fresh and (as_measured or reread):
        fail("--fresh measures all again, --as-measured and --reread as little as can be: which of them?")
    reproducing = _needed(cluster=scheduler is not None)
    plugins = reproducing.loaded(plugin or [])
    if listed:
        reproducing.tell_list(which or ["all"], json=json)
        return
    asked = reproducing.asked_for(
        full=full, out=to, fresh=fresh, reread=reread, as_measured=as_measured or [], trials=trials
    )
    reproducing.run(which or ["all"], asked, plugins, jobs=jobs, scheduler=scheduler, json=json)


def _needed(*, cluster: bool) -> Any:
    """Imports what carries the command out, if all that it uses is installed."""
    try:
        if cluster:
            import_module("distributed")
        return import_module("comesh.cli.reproducing")
    except ModuleNotFoundError as missing:
        extra = EXTRA.get(missing.name or "", "sim")
        fail(f"{missing.name} is not installed: pip install 'comesh[{extra}]'")
