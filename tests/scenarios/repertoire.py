"""All scenarios by name, and how one becomes a transcript."""

import textwrap
from collections.abc import Callable
from typing import Final

from staging import Stage

Script = Callable[[], Stage]
SCENARIOS: Final[dict[str, tuple[str, Script]]] = {}
"""Name to what it shows and its script."""


def scenario(name: str, shows: str | None = None) -> Callable[[Script], Script]:
    """Register a script; what it shows is its docstring, unless it is told here."""

    def register(script: Script) -> Script:
        if name in SCENARIOS:
            raise ValueError(f"two scenarios are called {name}")
        SCENARIOS[name] = (shows or script.__doc__ or "", script)
        return script

    return register


def play(name: str) -> tuple[str, Stage]:
    """The transcript of a scenario, and the stage as it was left."""
    shows, script = SCENARIOS[name]
    stage = script()
    outcome = stage.finish()
    header = textwrap.wrap(" ".join(shows.split()), width=100)
    parts = [
        "\n".join(f"# {line}" for line in header),
        "\n".join(stage.cast()),
        "\n".join(stage.telling.lines),
        "\n".join(["Checked:", *(f"  {line}" for line in outcome)]),
    ]
    return "\n\n".join(parts) + "\n", stage
