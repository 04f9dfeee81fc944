"""Devices that exist only in software, for the simulator, the demo, and wherever no real one is at hand."""
