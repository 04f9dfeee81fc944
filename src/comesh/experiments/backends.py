"""Where cases are run: here, in processes (joblib), or on a cluster (Dask).

A backend takes cases and yields what they came to, in any order. An outcome depends on the case alone, so
neither the backend nor the order matters.
"""

import errno
import logging
import math
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from joblib import Parallel, delayed

from comesh.deployment.plugins import PluginError
from comesh.experiments.catalogue import add_plugin, experiment, plugin_names
from comesh.experiments.source import Code, package_digest, plugins_digest
from comesh.experiments.stage import Parameters, Recorded, Row
from comesh.experiments.store import Outcome

WORKERS_S: Final = 30.0
"""How long a cluster may take to have its first worker."""
MAX_TRACE = 2000
"""Characters that are kept of what went wrong in a case."""


class Done(NamedTuple):
    """A case that was run; its recording, if its campaign keeps one."""

    outcome: Outcome
    recording: bytes = b""


class Backend(Protocol):
    def outcomes(self, name: str, code: Code, cases: Iterable[Parameters]) -> Iterator[Done]:
        """Runs cases of the campaign of the experiment of that id."""
        ...


def run_case(name: str, code: Code, parameters: Parameters, plugins: tuple[str, ...] = ()) -> Done:
    """One case, wherever this is called. plugins: what has to be loaded there first."""
    began_s = time.monotonic()
    rows: list[Row] = []
    recording, error = b"", ""
    try:
        _load(plugins)
        campaign = experiment(name).campaign
        here = package_digest(), plugins_digest(campaign, plugins or None)
        if here != (code.digest, code.plugins):
            raise RuntimeError("the code here is not the code that asked for this case: restart the workers")
        measured = campaign.run(dict(parameters))
        rows, recording = measured if isinstance(measured, Recorded) else (measured, b"")
        _check(rows, parameters)
    except Exception:
        rows, recording, error = [], b"", traceback.format_exc()[-MAX_TRACE:]
    took_s = time.monotonic() - began_s
    return Done(
        Outcome(commit=code.name, parameters=parameters, rows=rows, error=error, took_s=took_s), recording
    )


def _load(plugins: Iterable[str]) -> None:
    """A worker that is used again may have loaded another file with the same policies."""
    for plugin in plugins:
        try:
            add_plugin(plugin)
        except PluginError as wrong:
            raise RuntimeError(f"{wrong}. If it is good elsewhere: restart the workers") from None


def _check(rows: list[Row], parameters: Parameters) -> None:
    """Both go into one line of a table, and rows into a file. TypeError: a file has no such values."""
    msgspec.json.encode(rows)
    for row in rows:
        for column, value in row.items():
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"a row has no number as its {column!r}: say None")
            if column in parameters and parameters[column] != value:
                raise ValueError(f"a row has another {column!r} than the parameters of its case")


def killed(name: str, hint: str) -> ChildProcessError:
    """A measuring process was ended from outside, which says nothing about its case."""
    why = f"a process that measured it was killed, perhaps for want of memory ({hint})"
    why += "; the same command goes on"
    return ChildProcessError(errno.ECHILD, why, name)


class Processes:
    """So many processes on this machine; one: this process."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def outcomes(self, name: str, code: Code, cases: Iterable[Parameters]) -> Iterator[Done]:
        if self._jobs == 1:
            for case in cases:
                yield run_case(name, code, case)
            return
        parallel = Parallel(n_jobs=self._jobs, return_as="generator_unordered", batch_size=1)
        plugins = plugin_names()
        try:
            yield from parallel(delayed(run_case)(name, code, case, plugins) for case in cases)
        except BrokenExecutor:
            raise killed(name, "fewer --jobs need less memory") from None


class Cluster:
    """The workers of a Dask cluster; they need this version of CoMesh installed, and plug-ins at the same
    paths."""

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler

    def outcomes(self, name: str, code: Code, cases: Iterable[Parameters]) -> Iterator[Done]:
        dask = import_module("distributed")
        logging.getLogger("distributed.client").setLevel(
            logging.CRITICAL
        )  # of what it logs we say a sentence
        plugins = plugin_names()
        with dask.Client(self._scheduler, set_as_default=False) as client:
            self._wait_for_workers(client)
            futures = [client.submit(run_case, name, code, case, plugins, pure=False) for case in cases]
            try:
                for future in dask.as_completed(futures, loop=client.loop):
                    yield future.result()
                    future.release()
            except dask.KilledWorker:
                raise killed(name, "each died that tried it") from None
            except CancelledError:
                why = "the scheduler of the cluster is gone; the same command goes on once there is one"
                raise ConnectionResetError(errno.ECONNRESET, why, self._scheduler) from None

    def _wait_for_workers(self, client: Any) -> None:
        """TimeoutError: there are none."""
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError:
            some = f"dask worker {self._scheduler} --nthreads 1"
            why = f"no workers after {WORKERS_S:.0f} s: start some with `{some}`"
            raise TimeoutError(errno.ETIMEDOUT, why) from None
