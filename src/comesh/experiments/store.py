"""What cases came to so far, kept in files, so that a reproduction goes on where it stopped.

One file per campaign, one JSON line per finished case, written at once. Each line names the code that it was
measured with, by a digest of the sources that a measurement depends on: what other code did says nothing
about this one, so such lines are left out, unless somebody wants them all the same; they stay in the file,
for when that code is back. Of the campaign's module these sources are `run` and what it uses, of the measures
those that the module imports. How results are compared, drawn and told is not among them, nor are comments
and docstrings. An experiment of somebody's own depends on the whole of its module, and on all plug-ins that
were named.
"""

import ast
import enum
import fcntl
import inspect
from collections.abc import Collection
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

import comesh
from comesh.experiments.campaign import Campaign, Parameters
from comesh.experiments.catalogue import is_built_in, plugin_files
from comesh.experiments.table import Row

_MEASURED = ("core", "deployment", "drivers", "sim")
_MEASURED_REAL = (*_MEASURED, "runtime", "lab")
_MEASURES = ("comesh.experiments.measures.", "comesh.experiments.table")


class Reuse(enum.Enum):
    """Which results of before are not measured again."""

    THIS_CODE = enum.auto()
    ANY_CODE = enum.auto()
    """Those of other code, too, where there are none of this one."""
    NONE = enum.auto()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one case came to: rows, or what went wrong."""

    code: str
    parameters: Parameters
    rows: list[Row] = []
    error: str = ""
    took_s: float = 0.0


_decoder = msgspec.json.Decoder(Outcome)


def key_of(parameters: Parameters) -> bytes:
    return msgspec.json.encode(parameters, order="deterministic")


@cache
def _digest(packages: tuple[str, ...], module: Path, run: str, plugins: tuple[Path, ...]) -> str:
    root = Path(comesh.__file__).parent
    sources = {path for name in packages for path in (root / name).rglob("*.py")}
    sources |= set(plugins)
    digest = blake2b("\n".join(used_by(run, module)).encode(), digest_size=8)
    for path in sorted(sources | measures_of(module)):
        source = without_words(path.read_bytes())
        digest.update(f"{path.name} {len(source)}\n".encode())
        digest.update(source.encode())
    return digest.hexdigest()


class _Wordless(ast.NodeTransformer):
    """Drops docstrings, which are strings that nothing is done with."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_words = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_words else node


def without_words(source: bytes) -> str:
    """What a source does: without comments, docstrings and where its lines end."""
    return ast.unparse(_Wordless().visit(ast.parse(source)))


def measures_of(module: Path) -> set[Path]:
    """The measures that a module imports, those that they import, and what rows are made with."""
    found: set[Path] = set()
    left = [module]
    while left:
        for node in ast.walk(ast.parse(left.pop().read_bytes())):
            name = node.module if isinstance(node, ast.ImportFrom) else None
            if name is not None and name.startswith(_MEASURES):
                path = Path(__file__).parent.joinpath(*name.split(".")[2:]).with_suffix(".py")
                if path not in found:
                    found.add(path)
                    left.append(path)
    return found


def used_by(name: str, module: Path) -> list[str]:
    """The definitions in a module that one of them uses, itself among them, without comments."""
    defined: dict[str, ast.stmt] = {}
    for statement in ast.parse(module.read_bytes()).body:
        match statement:
            case ast.FunctionDef() | ast.ClassDef():
                defined[statement.name] = statement
            case ast.Assign(targets=targets):
                named = [node for target in targets for node in ast.walk(target)]
                defined |= {node.id: statement for node in named if isinstance(node, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=constant)):
                defined[constant] = statement
            case _:
                pass
    used: dict[str, None] = {}
    left = [name]
    while left:
        one = left.pop()
        if one in defined and one not in used:
            used[one] = None
            left += [node.id for node in ast.walk(defined[one]) if isinstance(node, ast.Name)]
    return [ast.unparse(defined[one]) for one in used]


def code_of(campaign: Campaign, named: Collection[str] | None = None) -> str:
    """A digest of what the results of a campaign depend on; named: of the plug-ins these alone."""
    module = inspect.getsourcefile(campaign.run)
    assert module is not None
    packages = _MEASURED_REAL if campaign.real else _MEASURED
    plugins = () if is_built_in(campaign) else (Path(module), *plugin_files(named))
    return _digest(packages, Path(module), campaign.run.__name__, plugins)


class Store:
    """The results of one campaign, open while its cases are run."""

    def __init__(self, directory: Path, campaign: Campaign, *, any_code: bool = False) -> None:
        self._any_code = any_code
        self.code = code_of(campaign)
        self._path = directory / f"{campaign.name}.jsonl"
        self._file: BinaryIO | None = None
        self._found: dict[bytes, Outcome] = {}
        self.dropped = 0
        """Results of other code, which are left out."""

    def __enter__(self) -> "Store":
        """BlockingIOError: another process has it open."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab+", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as wrong:
            self._file.close()
            why = "another comesh reproduce writes results into it: wait for that, or take another --out"
            raise BlockingIOError(wrong.errno, why, str(self._path)) from None
        self._file.seek(0)
        written = self._file.read()
        for line in written.splitlines():
            try:
                outcome = _decoder.decode(line)
            except msgspec.DecodeError:  # cut off while it was written
                continue
            self._take(outcome)
        self._found = {key: one for key, one in self._found.items() if not one.error}
        if written and not written.endswith(b"\n"):
            self._file.write(b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()

    def _take(self, outcome: Outcome) -> None:
        """The latest counts, and what this code came to, be it an error, before all that other code did."""
        key = key_of(outcome.parameters)
        known = self._found.get(key)
        if outcome.code == self.code:
            self._found[key] = outcome
        elif not self._any_code:
            self.dropped += 1
        elif not outcome.error and (known is None or known.code != self.code):
            self._found[key] = outcome

    def get(self, parameters: Parameters) -> Outcome | None:
        return self._found.get(key_of(parameters))

    def put(self, outcome: Outcome) -> None:
        assert self._file is not None
        self._found[key_of(outcome.parameters)] = outcome
        self._file.write(msgspec.json.encode(outcome) + b"\n")
