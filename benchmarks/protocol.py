"""The protocol in simulation: what it costs, how long runs take against the ideal, how fast it is simulated.

    python benchmarks/protocol.py [--quick] [--json] [counts] [delay] [speed]

Parts, all unless named: `counts` (protocol_counts.py), `delay` (protocol_delay.py) and `speed`
(protocol_speed.py); each opens with what it measures and how. The paper's defaults: 250 devices, 40 % of them
nodes, f = 2 (k = 5), 10 ms per hop. --quick: one topology, few runs, a small mesh for speed, the same bars.

The exit code is 1 if a bar is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

import msgspec

import protocol_counts
import protocol_delay
import protocol_speed
from comesh.sim.topology import Shape
from protocol_rows import Row, show

SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
ROUTINES, QUICK_ROUTINES = 24, 12
STARVING_MINUTES, QUICK_STARVING_MINUTES = 10.0, 3.0


def counts(*, quick: bool) -> Iterator[Row]:
    yield from protocol_counts.rows(SHAPES[:1] if quick else SHAPES, 1 if quick else 2)


def delay(*, quick: bool) -> Iterator[Row]:
    yield from protocol_delay.delay_rows(
        SHAPES[:1] if quick else SHAPES, QUICK_ROUTINES if quick else ROUTINES
    )
    yield from protocol_delay.starvation_rows(QUICK_STARVING_MINUTES if quick else STARVING_MINUTES)


def speed(*, quick: bool) -> Iterator[Row]:
    yield from protocol_speed.rows(quick=quick)


PARTS: dict[str, Callable[..., Iterator[Row]]] = {"counts": counts, "delay": delay, "speed": speed}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="less of everything")
    arguments.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless named")
    options = arguments.parse_args()
    rows: list[Row] = []
    for name in options.parts or PARTS:
        for row in PARTS[name](quick=options.quick):
            rows.append(row)
            if not options.json:
                show(row)
    missed = [row for row in rows if row.met is False]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(rows)).decode())
    else:
        print(f"bars: {f'{len(missed)} MISSED' if missed else 'all met'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
