"""Virtual devices exist only in software: for the simulator, the demo, and wherever no real device is
available."""
