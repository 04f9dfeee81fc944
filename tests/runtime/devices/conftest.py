"""Tests here use the documents of the tests of drivers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "drivers"))
