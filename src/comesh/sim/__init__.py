"""The simulator: runs the pure core in virtual time over a mesh with faults. See docs/simulator.md."""
