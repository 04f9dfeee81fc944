"""Every bound of the HTTP interface. Those of single requests stand with them: `comesh.queries.requests`."""

from typing import Final

MAX_BODY_BYTES: Final = 65_536
MAX_HEADER_BYTES: Final = 16_384
"""The request line and all headers."""
MAX_CONNECTIONS: Final = 128
"""At once; who comes later is answered with 503."""
MAX_OF_ONE_ADDRESS: Final = 96
"""Connections from one address, so that others get in."""
MAX_HANDSHAKES: Final = 128
"""TLS handshakes under way at once; later clients are cut off."""
MAX_EVENT_CLIENTS: Final = 16
"""Connections that follow events."""
MAX_COUNTERS: Final = 200
"""A node's own counters in the metrics; the rest is one sum."""

BODY_S: Final = 10.0
"""In which a body must have come."""
REQUEST_S: Final = 15.0
"""In which a whole request must have come; then its connection is cut."""
ANSWER_S: Final = 10.0
"""In which an answer must be there that is none of the table of requests."""
KEEP_ALIVE_S: Final = 30
"""How long a connection may wait for its next request."""
STALLED_S: Final = 30.0
"""A client that takes nothing of its answer for this long is cut off."""
HANDSHAKE_S: Final = 10.0
HEARTBEAT_S: Final = 15.0
"""How often a client of the event stream is told something, also when nothing happens."""
CLOSE_S: Final = 1.0
"""How long a node that ends waits for the last answers."""
