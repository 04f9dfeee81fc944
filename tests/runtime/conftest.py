"""These tests use the parts that the tests of the transport have."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "transport"))
