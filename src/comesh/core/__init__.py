"""The protocol, as a pure state machine.

    event + time  ->  Node.step()  ->  ordered list of effects

The same code runs in the simulator, in the tests that break it on purpose, and on a real node.
Rules, each checked by `tests/test_layers.py`:

- nothing here imports asyncio, time, socket, logging, threading or random;
- only the standard library, msgspec and (for selection) numpy are imported;
- nothing here imports another package of comesh.

Time is given to `step` as milliseconds (a float, so that a LAN's round trips are visible) of a clock
that never goes back and counts suspended time. Randomness comes from a seed (`core/draws.py`).

The loop that drives a node, real or simulated:

    for effect in node.step(event, now_ms):   # in this order: persist comes before the send it guards
        perform(effect)
"""
