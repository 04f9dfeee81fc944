"""The interface of what carries messages between nodes, and the errors of opening it.

    transport = UdpTransport(...)
    await transport.open(deliver, rest)      # deliver(sender, message) for whatever comes from then on, and
                                             # rest() after the last of those that came together
    transport.send(NodeId("n2"), b"...")     # never blocks, never fails
    transport.flush()                        # whatever was sent since the last flush leaves now
    await transport.close()

Promises: a sender is who it says (authenticated end to end); a message comes whole or not at all, unread by
others. Not promised: that it comes, comes once, soon, or in order. All else is the core's business.

Read `packets` (the outside of a datagram), `frames` (its inside), `session` (DTLS), `sessions` (which is
used), `handshakes` (how one begins), `fragments` (long messages), then `udp`; decision 15 says why.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from comesh.core.ids import NodeId
from comesh.core.messages import MAX_DATAGRAM_BYTES

MAX_MESSAGE_BYTES = MAX_DATAGRAM_BYTES + 64
"""Maximum bytes of one message: a datagram of the core, and the runtime's envelope. Longer ones are dropped
and counted."""

Deliver = Callable[[NodeId, bytes], None]
Rest = Callable[[], None]


def no_rest() -> None:
    """Says that no more messages wait, for receivers that take messages one by one."""


class TransportError(Exception):
    """The transport cannot open; str() says what is wrong and what to do."""


class Transport(Protocol):
    @property
    def counters(self) -> Counter[str]:
        """Counts what was sent, received and dropped, by plain names such as `datagrams sent`, `bytes sent`,
        `dropped: not a datagram of ours`."""
        ...

    async def open(self, deliver: Deliver, rest: Rest = no_rest) -> None: ...

    def send(self, to: NodeId, message: bytes) -> None: ...

    def send_to_all_of(self, to: NodeId, message: bytes) -> None:
        """Sends to each process of this name, where there are several."""
        ...

    def flush(self) -> None: ...

    async def close(self) -> None: ...
