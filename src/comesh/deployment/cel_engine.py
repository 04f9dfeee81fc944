"""The compiled part of `common-expression-language`, and nothing else of it.

Its package imports its own command line with it, which brings a line editor and a terminal library: 15 MB of
memory and a tenth of a second that a node does not need. So the extension module is loaded by itself.
"""

import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol


def _load() -> ModuleType:
    package = find_spec("cel")
    if package is None or package.origin is None:
        raise ImportError("the package common-expression-language is not installed")
    folder = Path(package.origin).parent
    for suffix in EXTENSION_SUFFIXES:
        file = folder / f"cel{suffix}"
        if file.is_file():
            spec = spec_from_file_location("cel.cel", file, loader=ExtensionFileLoader("cel.cel", str(file)))
            assert spec is not None and spec.loader is not None
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(f"{folder} has no extension module for this Python")


class Compiled(Protocol):
    """A clause, ready to be evaluated."""

    def execute(self, context: Any) -> Any: ...


_engine = sys.modules.get("cel.cel") or _load()
compile_cel: Callable[[str], Compiled] = _engine.compile
Context: Callable[..., object] = _engine.Context
