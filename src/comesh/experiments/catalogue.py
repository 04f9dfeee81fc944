"""All experiments, in the order of the paper, then ours; each is loaded when it is asked for. Plug-ins bring
more: a module whose EXPERIMENT is one."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

from comesh.deployment.plugins import PluginError, load_plugin
from comesh.experiments.campaign import Experiment

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


def names() -> list[str]:
    return [*MODULES, *_added]


def plugin_files() -> list[Path]:
    """What own experiments may depend on besides their own module."""
    return list(_plugins.values())


@cache
def add_plugin(name: str) -> None:
    """The file or the name of a module, with policies, an experiment or both. PluginError: it is no good."""
    load_plugin(name)
    module = sys.modules[f"comesh_plugin_{Path(name).stem}" if name.endswith(".py") else name]
    _plugins[name] = Path(str(module.__file__))
    found = getattr(module, "EXPERIMENT", None)
    if isinstance(found, Experiment):
        if found.id in names() or found.id != found.id.upper():
            raise PluginError(f"plugin {name}: an id is in capitals and new, and {found.id!r} is not")
        _added[found.id] = found


def experiment(name: str) -> Experiment:
    """KeyError: there is none of that id."""
    return _added[name] if name in _added else _built_in(name)


@cache
def _built_in(name: str) -> Experiment:
    found: Experiment = import_module(f"comesh.experiments.{MODULES[name]}").EXPERIMENT
    return found
