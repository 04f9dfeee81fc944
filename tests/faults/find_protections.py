"""Search for seeds that show what each protection is for, and write them down.

    python tests/faults/find_protections.py 1-400             # print, for every protection
    python tests/faults/find_protections.py 1-400 --write     # and renew protection_seeds.json
    python tests/faults/find_protections.py 1-400 lease fence # only these

A seed shows a protection if, without it, one of the promises breaks that its entry names, and nothing breaks
with it. The search ends with FEW seeds. Crashes of the core without a protection are told, but show nothing:
it is the checkers that are tried here. Without --write nothing is changed.
"""

import argparse
import json
import sys
import time
from functools import cache
from pathlib import Path
from typing import Final

from protections import PROTECTIONS, Finding, Judge, Protection

FEW: Final = 4
"""Seeds that are kept of each protection."""
SEEDS: Final = Path(__file__).with_name("protection_seeds.json")


def recorded() -> dict[str, list[int]]:
    """Seeds by the name of the protection, quickest first."""
    found: dict[str, list[int]] = json.loads(SEEDS.read_text())
    return found


@cache
def sound(judge: Judge, seed: int) -> tuple[Finding, ...]:
    """What a seed finds when all protections are there."""
    return judge(seed)


def shows(protection: Protection, seed: int) -> Finding | None:
    """What breaks first without the protection, if it is what its entry names."""
    with protection.off():
        broken = protection.judge(seed)
    return next((one for one in broken[:1] if one.promise in protection.breaks), None)


def search(protection: Protection, seeds: range) -> list[int]:
    found: list[tuple[float, int]] = []
    tried = crashed = 0
    for seed in seeds:
        tried += 1
        began_s = time.process_time()
        try:
            finding = shows(protection, seed)
        except (AssertionError, KeyError, ValueError) as error:
            crashed += 1
            _tell(f"  {seed}: {type(error).__name__}: {error}")
            continue
        took_s = time.process_time() - began_s
        if finding is None or sound(protection.judge, seed):
            continue
        found.append((took_s, seed))
        _tell(f"  {seed} ({took_s:.2f} s): {finding.promise}: {finding.what[:140]}")
        if len(found) == FEW:
            break
    _tell(f"{protection.name}: {len(found)} of {tried} seeds, {crashed} crashes")
    return [seed for _, seed in sorted(found)]


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Search for seeds that show protections.")
    parser.add_argument("seeds", help="A-B")
    parser.add_argument("names", nargs="*", help="protections; all if none is named")
    parser.add_argument("--write", action="store_true", help="renew the recorded seeds")
    asked = parser.parse_args()
    first, last = map(int, asked.seeds.split("-"))
    known = {protection.name for protection in PROTECTIONS}
    unknown = sorted(set(asked.names) - known)
    if unknown:
        parser.error(f"no protection {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    seeds = recorded() if SEEDS.exists() else {}
    for protection in PROTECTIONS:
        if not asked.names or protection.name in asked.names:
            found = search(protection, range(first, last + 1))
            if found or protection.name not in seeds:
                seeds[protection.name] = found
            if asked.write:
                kept = {name: seeds[name] for name in sorted(seeds) if name in known}
                lines = (f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in kept.items())
                SEEDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
