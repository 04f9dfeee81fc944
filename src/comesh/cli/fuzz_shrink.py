"""`comesh fuzz --shrink SEED` finds a smaller case that breaks the same promise; `--replay FILE` runs it."""

import time
from pathlib import Path
from typing import NoReturn

import msgspec
import typer

from comesh.cli.fuzz_cases import asking_lines, case_lines, fault_lines
from comesh.cli.fuzz_findings import Finding, SwarmKind, run_case
from comesh.cli.outputs import check_output
from comesh.cli.terminal import Exit, err, fail, number, out, print_json
from comesh.sim.shrinking import Reduced, shrink, whole
from comesh.sim.swarm_case import Case

MAX_TRIES = 2000
"""Maximum cases that are run to find a smaller one."""
_TELL_S = 2.0


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of --json: the case, and its result."""

    case: Reduced
    file: str
    finding: Finding


def shrink_seed(seed: int, kind: SwarmKind, target: Path | None, *, force: bool, json: bool) -> NoReturn:
    """Shrinks a seed's case and ends the command: 1 with the smaller case, since a promise is broken; 2 where
    there is none."""
    file = Path(f"fuzz-seed-{seed}.json") if target is None else target
    check_output(file, reads=(), ours=is_case, kind="case of comesh fuzz", force=force)
    first = whole(seed, "", "operations" if kind is SwarmKind.OPERATIONS else "groups")
    finding = run_case(first.case(), kind)
    if not finding.broken:
        fail(f"seed {seed} breaks no promise: there is nothing to shrink")
    best = msgspec.structs.replace(first, promise=finding.broken[0].promise)
    tries = _Tries(best.promise, kind)
    try:
        for smaller in shrink(best, tries.breaks):
            best = smaller
            tries.tell(best)
    except _EnoughError:
        err.print(f"stopped after {MAX_TRIES} tries; the case may become smaller still")
    finally:
        _write(best, file)
    finding = run_case(best.case(), kind)
    if json:
        print_json(_Answer(case=best, file=str(file), finding=finding))
    else:
        _show(best, finding, tries.count)
        out.print(f"  replay: comesh fuzz --replay {file}")
    raise typer.Exit(int(Exit.NO))


def replay_case(file: Path, *, json: bool) -> NoReturn:
    try:
        case = msgspec.json.decode(file.read_bytes(), type=Reduced)
        reduced = case.case()
    except FileNotFoundError:
        fail(
            f"--replay {file}: there is no such file; --shrink SEED writes one, or replay a seed: --seeds A-A"
        )
    except OSError as wrong:
        fail(f"--replay {file}: cannot be read: {wrong.strerror}; name a file that --shrink wrote")
    except msgspec.MsgspecError as wrong:
        fail(f"{file} is not a case that --shrink wrote: {wrong}")
    except ValueError as wrong:
        fail(f"{file}: {wrong}")
    kind = SwarmKind(case.swarm)
    finding = run_case(reduced, kind)
    if json:
        print_json(_Answer(case=case, file=str(file), finding=finding))
    else:
        for line in case_lines(case.seed, kind, reduced):
            out.print(line)
        if finding.broken:
            _tell_broken(finding)
        else:
            out.print(f"every promise held; it was written because this broke: {case.promise}")
    raise typer.Exit(int(Exit.NO if finding.broken else Exit.OK))


def is_case(begin: bytes) -> bool:
    return begin.lstrip().startswith(b"{") and b'"comesh_fuzz_case"' in begin[:100]


class _EnoughError(Exception):
    """Raised when enough cases were tried."""


class _Tries:
    def __init__(self, promise: str, kind: SwarmKind) -> None:
        self._promise = promise
        self._kind = kind
        self._told_s = time.monotonic()
        self.count = 0

    def breaks(self, case: Case) -> bool:
        if self.count >= MAX_TRIES:
            raise _EnoughError
        self.count += 1
        return any(broken.promise == self._promise for broken in run_case(case, self._kind).broken)

    def tell(self, best: Reduced) -> None:
        if time.monotonic() - self._told_s >= _TELL_S:
            self._told_s = time.monotonic()
            asked = len(best.askings) + len(best.operations)
            left = f"{number(len(best.faults), 'fault')}, {number(asked, 'asking')}"
            err.print(f"tried {self.count}: {left} left")


def _write(case: Reduced, file: Path) -> None:
    text = msgspec.json.format(msgspec.json.encode(case), indent=2)
    try:
        file.write_bytes(text + b"\n")
    except OSError as wrong:
        fail(f"cannot write {file}: {wrong.strerror}")


def _show(best: Reduced, finding: Finding, tries: int) -> None:
    case = best.case()
    out.print(
        f"seed {best.seed}: {len(best.faults)} of {best.of_faults} faults and "
        f"{len(best.askings) + len(best.operations)} of {best.of_askings + best.of_operations} askings break "
        f"the same promise ({tries} tries)"
    )
    for line in [*asking_lines(case), *fault_lines(case.faults)]:
        out.print(f"  {line}")
    if best.calm:
        out.print(f"  not needed: {', '.join(best.calm)}")
    _tell_broken(finding)


def _tell_broken(finding: Finding) -> None:
    for broken in finding.broken:
        out.print(f"  {broken.line}")
        for line in broken.history:
            out.print(f"    {line}")
