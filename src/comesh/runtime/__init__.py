"""A node as a process: asyncio performs what the core wants done. The core does not know that it is there.

    event + time -> node.step() -> effects, performed in order -> messages, timers, device calls -> events

Rules: one step at a time; effects in their order, so that what must be on disk before it is said is on disk
before it is sent; nothing here decides anything about the protocol.

- `host`: the loop above; `timers`, `clock`: when
- `journal`: what survives; `transport`: what is said, to whom, by whom; `credentials`: who is who
- `devices`: drivers of this node's devices, and the way to those of others
- `control`: requests of people, through a socket of the node; `node_view`: what it knows, for them
"""
