"""Real processes under faults: meshes on this machine, links that lose and delay, and the checkers of the
simulator on what really happened."""
