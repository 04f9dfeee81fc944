"""Clauses: evaluations per second on one core.

    python benchmarks/clauses.py

CPU time of this process, the best of seven runs of 20,000 evaluations each, with all readings known. Ends
with 1 if the clauses together miss the bar.
"""

import sys
import time
from collections.abc import Iterator

from comesh.core.values import Value
from comesh.deployment.clauses.compiler import Clause, compile_clause
from comesh.deployment.clauses.vocabulary import ReadingName, vocabulary
from comesh.deployment.values import ValueType
from protocol_rows import Row, at_least, main_of

COUNT = 20_000
RUNS = 7
BAR = 300_000

READINGS = vocabulary(
    {
        "temp": {"c": ValueType(type="float"), "n": ValueType(type="int")},
        "door": {"open": ValueType(type="bool")},
        "fan": {"mode": ValueType(values=("auto", "off"))},
    },
    sun=True,
)
VALUES: dict[ReadingName, Value | None] = {
    ("temp", "c"): 26.5,
    ("temp", "n"): 3,
    ("door", "open"): True,
    ("door", "up"): True,
    ("fan", "mode"): "auto",
    ("now", "time"): "23:00",
    ("now", "weekday"): "sat",
    ("sun", "up"): False,
}
SOURCES = (
    "door.open",
    "temp.c > 26",
    "temp.c > 26 && door.open && door.up",
    "now.time >= '22:00' || now.time < '06:00'",
    "fan.mode in ['auto'] && now.weekday in ['sat', 'sun']",
    "abs(temp.c - 20) > max(2, temp.n) && !sun.up",
    "temp.c * 2 + temp.n / 4 > 3.5",
)


def seconds(clause: Clause) -> float:
    """CPU time of one evaluation."""
    best = float("inf")
    for _ in range(RUNS):
        begin = time.process_time()
        for _ in range(COUNT):
            clause.evaluate(VALUES)
        best = min(best, time.process_time() - begin)
    return best / COUNT


def evaluations() -> Iterator[Row]:
    total_s = 0.0
    for source in SOURCES:
        took_s = seconds(compile_clause(source, READINGS))
        total_s += took_s
        yield Row(f"{source}, per second", 1 / took_s, "", None)
    yield at_least("all of them, one after the other, per second", len(SOURCES) / total_s, BAR)


if __name__ == "__main__":
    sys.exit(main_of({"evaluations": evaluations}, ("evaluations",)))
