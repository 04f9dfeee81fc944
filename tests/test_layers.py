"""The direction of imports, and the purity of the core, as ARCHITECTURE.md promises them."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "comesh"

MAY_IMPORT = {
    "core": set(),
    "deployment": {"core"},
    "sim": {"core", "deployment"},
    "cli": {"core", "deployment", "sim"},
}
"""Arrows point inward only. A new package gets its row here, or the test fails."""

CORE_THIRD_PARTY = {"msgspec", "numpy"}
IMPURE = {
    "asyncio",
    "time",
    "datetime",
    "socket",
    "logging",
    "random",
    "threading",
    "os",
    "subprocess",
    "secrets",
}


def modules(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Full names of everything a file imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the arrow"
            names.add(node.module or "")
    return names


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
            assert top not in IMPURE, f"core/{path.name} imports {name}"
            assert top == "comesh" or top in sys.stdlib_module_names or top in CORE_THIRD_PARTY, (
                f"core/{path.name} imports {name}"
            )


def test_files_and_functions_stay_small() -> None:
    """A file past 500 lines or a function past 60 is two ideas."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        assert text.count("\n") <= 500, f"{path.relative_to(SOURCE)} has {text.count(chr(10))} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= 60, f"{path.relative_to(SOURCE)}: {node.name} has {length} lines"


def test_every_module_says_what_it_is_for() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path.relative_to(SOURCE)} has no docstring"
