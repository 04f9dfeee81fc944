"""These tests use the parts that the tests of the transport, of commands and of the HTTP interface have."""

import sys
from pathlib import Path

for parts in ("runtime/transport", "cli", "api"):
    sys.path.insert(0, str(Path(__file__).parents[1] / parts))
