"""Words of the code: bounds are called `max_` and `min_`, and docstrings say what a thing is or does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "comesh"

STILL_TO_DO = (
    "core/group",
    "experiments",
    "runtime",
    "queries",
    "api",
)
"""Packages whose docstrings have not been rewritten yet. A package that is done leaves this list."""
DONE_WITHIN = (
    "runtime/bundle.py",
    "runtime/credentials.py",
    "runtime/devices",
    "runtime/invitation.py",
    "runtime/journal",
    "runtime/keyring.py",
    "runtime/revocation.py",
    "runtime/revocation_gossip.py",
    "runtime/transport",
    "runtime/trust.py",
)
"""Parts of those packages that have been."""
BAD_BEGINNING = re.compile(r"(Of|Who|What is)\b")
BAD_BOUND = re.compile(r"_?(MOST|LEAST)_|.*_(most|least)_")


def is_in(path: str, packages: tuple[str, ...]) -> bool:
    return any(path == package or path.startswith(f"{package}/") for package in packages)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text that stands alone: the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, text.strip()


def test_docstrings_begin_with_what_a_thing_is_or_does() -> None:
    wrong = [
        f"{name}:{line}: {text.splitlines()[0]}"
        for name, module in modules()
        if is_in(name, DONE_WITHIN) or not is_in(name, STILL_TO_DO)
        for line, text in docstrings(module)
        if BAD_BEGINNING.match(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_bounds_are_called_max_and_min() -> None:
    wrong = [
        f"{name}:{node.lineno}: {node.id}"
        for name, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and BAD_BOUND.match(node.id)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", [*STILL_TO_DO, *DONE_WITHIN])
def test_the_lists_name_what_there_is(package: str) -> None:
    assert (SOURCE / package).exists()


def test_a_bad_beginning_is_seen() -> None:
    for text in ("Of one device.", "Who leads.", "What is answered."):
        assert BAD_BEGINNING.match(text)
    for text in ("Offers a lock.", "Whole seconds.", "What it is."):
        assert not BAD_BEGINNING.match(text)
