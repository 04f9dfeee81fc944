"""Output that nobody reads to its end: `comesh plan FILE | head -1` worked."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["plan", str(EXAMPLES / "office.yaml")], 0),
        (["plan", str(EXAMPLES / "office.yaml"), "--json"], 0),
        (["schema"], 0),
        (["--help"], 0),
        (["plan", "no/such/file.yaml"], 2),
    ],
)
def test_a_closed_pipe_is_no_failure(arguments: list[str], code: int) -> None:
    program = [sys.executable, "-c", "from comesh.cli.main import main; main()", *arguments]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(timeout=60)
    assert process.returncode == code, told.decode()
    assert b"Traceback" not in told
    assert b"Exception" not in told
    assert code or not told
