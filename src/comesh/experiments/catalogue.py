"""All experiments, in the order of the paper, then ours; each is loaded when it is asked for. Plug-ins add
more: modules with an EXPERIMENT."""

import inspect
import re
import sys
from collections.abc import Collection
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock

from comesh.deployment.plugins import PluginError, load_plugin
from comesh.experiments.stage import Campaign, Experiment, Scale

MODULES = {
    "P1": "p01_candidates",
    "P2": "p02_quorum_distance",
    "P3": "p03_distance_by_size",
    "P4": "p04_overlap",
    "P5": "p05_hash_parameters",
    "P6": "p06_availability",
    "P7": "p07_client_delay",
    "P8": "p08_churn",
    "P9": "p09_growth",
    "P10": "p10_load",
    "P11": "p11_group_sizes",
    "P12": "p12_policies",
    "P13": "p13_churn_in_groups",
    "P14": "p14_bandwidth",
    "P15": "p15_locks",
    "P16": "p16_group_operations",
    "A": "a_contention",
    "B": "b_push",
    "C": "c_power_domains",
    "D": "d_partitions",
    "E": "e_scale",
    "F": "f_ideal",
    "G": "g_protections",
}
"""By id: the module that has EXPERIMENT."""


_added: dict[str, Experiment] = {}
_plugins: dict[str, Path] = {}
"""By name as it was given: the file."""
_adding = Lock()
"""A worker may have several threads."""


def names() -> list[str]:
    return [*MODULES, *_added]


def plugin_names() -> tuple[str, ...]:
    return tuple(_plugins)


def plugin_files(named: Collection[str] | None = None) -> tuple[Path, ...]:
    """The files of all plug-ins, or of those named alone."""
    return tuple(path for name, path in _plugins.items() if named is None or name in named)


def is_built_in(campaign: Campaign) -> bool:
    return all(one.campaign is not campaign for one in _added.values())


def add_plugin(name: str) -> None:
    """Loads a file or a module with policies, an experiment or both; a second time does nothing. PluginError:
    it cannot be used."""
    with _adding:
        if name in _plugins:
            return
        load_plugin(name)
        module = sys.modules[f"comesh_plugin_{Path(name).stem}" if name.endswith(".py") else name]
        found = getattr(module, "EXPERIMENT", None)
        if isinstance(found, Experiment):
            wrong = _what_is_wrong(found)
            if wrong:
                raise PluginError(f"plugin {name}: {wrong}")
            _added[found.id] = found
        _plugins[name] = Path(str(module.__file__))


def _what_is_wrong(found: Experiment) -> str:
    """Empty: nothing."""
    campaign = found.campaign
    taken = {experiment(name).campaign.name for name in names()}
    if not re.fullmatch(r"[A-Z][A-Z0-9_-]*", found.id) or found.id in (*names(), "ALL"):
        return f"an experiment's id is in capitals and new, and {found.id!r} is not"
    if not re.fullmatch(r"[a-z][a-z0-9-]*", campaign.name) or campaign.name in taken:
        return f"a campaign's name is in small letters and new, and {campaign.name!r} is not"
    if not inspect.isfunction(campaign.run):
        return "what runs a case has to be a function"
    try:
        for scale in Scale:
            if min(map(campaign.about_s, campaign.cases(scale)), default=0.0) <= 0:
                return f"there is no case at the scale {scale}, or it takes no time (about_s)"
    except Exception as error:  # another's code runs here
        return f"its cases: {type(error).__name__}: {error}"
    return ""


def experiment(name: str) -> Experiment:
    """The experiment of that id. KeyError: there is none."""
    return _added[name] if name in _added else _built_in(name)


@cache
def _built_in(name: str) -> Experiment:
    found: Experiment = import_module(f"comesh.experiments.{MODULES[name]}").EXPERIMENT
    return found
