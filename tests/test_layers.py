"""The direction of imports, and the purity of the core, as ARCHITECTURE.md promises them."""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "comesh"

MAY_IMPORT = {
    "core": set(),
    "deployment": {"core"},
    "drivers": {"core", "deployment"},
    "sim": {"core", "deployment", "drivers"},
    "queries": {"core", "deployment", "drivers"},
    "runtime": {"core", "deployment", "drivers", "queries", "__version__"},
    "lab": {"core", "deployment", "drivers", "sim", "queries", "runtime"},
    "api": {"core", "deployment", "drivers", "queries", "runtime", "__version__"},
    "experiments": {"core", "deployment", "drivers", "sim", "queries", "runtime", "lab"},
    "cli": {
        *("core", "deployment", "drivers", "sim", "queries", "runtime", "lab", "api", "experiments"),
        "__version__",
    },
}
"""Arrows point inward only. A new package gets its row here, or the test fails."""

CORE_MAY_IMPORT = {
    "array",
    "collections",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "operator",
    "math",
    "msgspec",
    "typing",
    "zlib",
}
"""What has no clock, file, socket or randomness of its own. The core gets more only by a row here."""

CORE_MUST_NOT_CALL = {"open", "print", "input", "eval", "exec", "compile", "__import__", "breakpoint"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Full names of everything a file imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the arrow"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names} if module == "comesh" else {module}
    return names


def impurities(source: ast.Module) -> list[str]:
    """What a source text uses that has an effect outside of the step."""
    found: list[str] = []
    for node in ast.walk(source):
        match node:
            case ast.Name(id=name) if name in CORE_MUST_NOT_CALL:
                found.append(f"line {node.lineno}: {name}")
    return found


def test_every_package_has_its_row() -> None:
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_arrows_point_inward(package: str) -> None:
    for path in modules(package):
        for name in imported(path):
            if name.startswith("comesh."):
                target = name.split(".")[1]
                assert target in MAY_IMPORT[package] | {package}, f"{path.name} imports {name}"


def test_the_core_is_pure() -> None:
    for path in modules("core"):
        for name in imported(path):
            top = name.split(".")[0]
            assert top == "comesh" or top in CORE_MAY_IMPORT, f"core/{path.name} imports {name}"
        found = impurities(parsed(path))
        assert not found, f"core/{path.name}: {found}"


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return open('x')",
        "print(1)",
        "show = print",
        "input()",
        "eval('1')",
        "exec('1')",
    ],
)
def test_impurity_is_seen(source: str) -> None:
    assert impurities(ast.parse(source))


def test_an_arrow_is_seen_however_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "from comesh import sim, cli\nimport comesh.core.ids\nfrom comesh.deployment import model\n"
    )
    assert imported(file) == {"comesh.sim", "comesh.cli", "comesh.core.ids", "comesh.deployment"}
    assert not impurities(ast.parse("self.print(draws.random)"))


def test_files_and_functions_stay_small() -> None:
    """A file past 800 lines or a function past 60 is two ideas."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        assert text.count("\n") <= 800, f"{path.relative_to(SOURCE)} has {text.count(chr(10))} lines"
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= 60, f"{path.relative_to(SOURCE)}: {node.name} has {length} lines"


def test_every_module_says_what_it_is_for() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        assert ast.get_docstring(parsed(path)), f"{path.relative_to(SOURCE)} has no docstring"
