"""The promises of the protocol as independent oracles: they fold the committed history themselves.

    checks = Checks.attach(world, program)
    progress = checks.progress(bound_ms)
    ... world.run_until(quiet_ms); progress.begin(world.now_ms)
    ... world.run_until(end_ms); progress.judge(world.now_ms); checks.finish()
    checks.violations, checks.losses

- `history`: promises 2 (one history) and 3 (inheritance); with `disks`, that committed means written by f+1,
  and with `elections`, that a loss was due
- `runs`: promises 1 (safety) and 4 (no loss), and that an event or request fires once
- `locks`: promise 6 (no stray command), from the devices' own log
- `progress`: promise 5

They judge by what leaders say is committed, what members wrote and what devices did; never by asking a node.
"""

from comesh.sim.checks.checks import Checks
from comesh.sim.checks.progress import Progress
from comesh.sim.checks.violation import BrokenPromiseError, Loss, Promise, Violation

__all__ = ["BrokenPromiseError", "Checks", "Loss", "Progress", "Promise", "Violation"]
