"""All experiments, in the order of the paper, then ours; each is loaded when it is asked for."""

from functools import cache
from importlib import import_module

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


@cache
def experiment(name: str) -> Experiment:
    """KeyError: there is none of that id."""
    found: Experiment = import_module(f"comesh.experiments.{MODULES[name]}").EXPERIMENT
    return found
