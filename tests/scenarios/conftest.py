"""`pytest tests/scenarios --rewrite` writes the transcripts anew, to be read in review."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the golden transcripts anew")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether to. Only a run of this directory alone knows the option."""
    return bool(request.config.getoption("--rewrite", default=False))
