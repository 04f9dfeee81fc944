"""Documents that tests change in one place."""

from pathlib import Path

from comesh.deployment.load import Outcome, load_bytes

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))

SMALL = """\
settings: {f: 1}
nodes:
  a: {place: [0m, 0m]}
  b: {place: [1m, 0m]}
  c: {place: [2m, 0m]}
devices:
  lamp:
    place: [1m, 1m]
    readings: {on: bool, level: {type: int, range: [0, 100]}}
    commands:
      switch: {argument: bool, sets: on}
      dim: {argument: {type: int, range: [0, 100]}, sets: level}
  button:
    on: a
    event: true
    readings: {press: [single, double]}
routines:
  light:
    when: lamp.level > 5
    do:
      - {device: lamp, command: switch, argument: true}
"""


def check(text: str) -> Outcome:
    return load_bytes(text.encode(), "d.yaml")


def told(text: str) -> list[str]:
    """Every problem of a document, as printed."""
    return [str(problem) for problem in check(text).problems]


def changed(old: str, new: str) -> str:
    """The small document with one thing changed."""
    assert SMALL.count(old) == 1, f"{old!r} is not exactly once in the small document"
    return SMALL.replace(old, new)
