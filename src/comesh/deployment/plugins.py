"""Policies and strategies of others: where their code comes from.

    comesh sim --plugin mine.py                 a file, or the name of a module
    [project.entry-points."comesh.policies"]    an installed package: on a node, and for every command
    mine = "my_package.policies"

Importing the module is all: it calls `register_member_policy` and the like. Packages that are installed are
imported when a document first has a name that is not known, so that who needs none does not pay for them.
"""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

GROUP = "comesh.policies"
"""The entry points that name modules with policies."""


class PluginError(Exception):
    """A module that cannot be had; str() says which, and why."""


def load_plugin(name: str) -> None:
    """Import a module by its name, or the file of one; a second time does nothing."""
    is_file = name.endswith(".py")
    _import(name, lambda: _load_file(Path(name).resolve()) if is_file else importlib.import_module(name))


@cache
def load_installed() -> tuple[str, ...]:
    """Import what installed packages bring, once; what could not be had, and why."""
    failures: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            _import(f"{point.name} = {point.value}", point.load)
        except PluginError as error:
            failures.append(str(error))
    return tuple(failures)


def _import(name: str, load: Callable[[], object]) -> None:
    try:
        load()
    except FileNotFoundError:
        raise PluginError(f"plugin {name}: there is no such file") from None
    except Exception as error:
        # Of any kind: it is another's code that runs here.
        raise PluginError(f"plugin {name}: {type(error).__name__}: {error}") from error


@cache
def _load_file(path: Path) -> None:
    name = f"comesh_plugin_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
