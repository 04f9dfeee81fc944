"""The simulator: runs the pure core in virtual time over a mesh with faults. See docs/simulator.md."""

from comesh.sim import vectorised as vectorised  # registers itself
from comesh.sim.fault_files import parse_schedule
from comesh.sim.fault_model import DRAWN, Fault
from comesh.sim.fault_schedules import RandomFaults, Schedule, random_schedule
from comesh.sim.radio import RadioSettings
from comesh.sim.report import Report
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Relays, Shape, Topology, make_topology, topology_of_plan
from comesh.sim.trace import Trace
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

__all__ = [
    "DRAWN",
    "Fault",
    "RadioSettings",
    "RandomFaults",
    "Relays",
    "Report",
    "Schedule",
    "Shape",
    "Simulation",
    "Topology",
    "Trace",
    "World",
    "WorldSettings",
    "make_topology",
    "parse_schedule",
    "random_schedule",
    "topology_of_plan",
]
