"""Bad input for everything that reads bytes from outside, in great numbers. `make garble` runs it.

    python tests/fuzz/campaign.py                        a million cases of each target (50,000 of peers)
    python tests/fuzz/campaign.py wire journal --cases 5000 --seed 2
    python tests/fuzz/campaign.py wire --case 1:4711     one case again, with its bytes
    python tests/fuzz/campaign.py wire --case 1:4711 --keep    and kept in corpus/, which the quick tests try

A case is a function of its seed and number (in `session`, of fresh keys too). One fails if anything is raised
but the refusal that the target knows, or if it takes longer or more memory than any input may. The exit code
is 1 if a case failed.
"""

import argparse
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Final

from targets import GARBLED, Target

CORPUS: Final = Path(__file__).parent / "corpus"
LIMIT_S: Final = 20.0
"""For one case: a bound against going on for ever, not a measurement."""
MEMORY_BYTES: Final = 2 << 30
"""Of the process: a case that wants so much is a failure."""
MAX_FAILURES: Final = 10
"""Then the target is left."""
SAY_EVERY_S: Final = 30.0


class TooSlowError(Exception):
    """A case took longer than any input may."""


def case_of(target: str, seed: int, number: int) -> bytes:
    return GARBLED[target].make(random.Random(f"{target} {seed} {number}"))


def take(target: Target, data: bytes) -> str:
    """What became of it; raises what no input may lead to."""
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        return target.take(data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def run(name: str, seed: int, cases: int | None, seconds: float) -> bool:
    """Whether all held."""
    target = GARBLED[name]
    became: Counter[str] = Counter()
    failures = done = 0
    slowest_s = 0.0
    began = said = time.monotonic()
    for number in range(target.most if cases is None else cases):
        begins = time.monotonic()
        if begins - began > seconds:
            break
        data = case_of(name, seed, number)
        made = time.monotonic()
        try:
            became[take(target, data)] += 1
        except Exception as wrong:
            failures += 1
            say(f"FAILED {type(wrong).__name__}: {wrong}"[:300])
            say(f"  python tests/fuzz/campaign.py {name} --case {seed}:{number}")
            if failures >= MAX_FAILURES:
                break
        done = number + 1
        now = time.monotonic()
        slowest_s = max(slowest_s, now - made)
        if now - said > SAY_EVERY_S:
            said = now
            say(f"{name}: {done:,} cases after {now - began:.0f} s")
    max_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took_s = time.monotonic() - began
    say(
        f"{name}: {done:,} cases in {took_s:.0f} s, {failures} failed; slowest {slowest_s * 1000:.0f} ms, "
        f"the process had {max_mb:.0f} MiB at most"
    )
    for what, count in became.most_common():
        say(f"  {count:>9,}  {what}")
    return not failures


def again(name: str, case: str, *, keep: bool) -> bool:
    """One case, with what it leads to."""
    seed, _, number = case.partition(":")
    data = case_of(name, int(seed), int(number))
    say(f"{len(data)} bytes: {data.hex()}")
    if keep:
        path = CORPUS / name / blake2b(data, digest_size=6).hexdigest()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        say(f"kept: {path.relative_to(CORPUS.parent)}")
    try:
        say(take(GARBLED[name], data))
    except Exception:
        say(traceback.format_exc())
        return False
    return True


def say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def _too_slow(_: int, __: FrameType | None) -> None:
    raise TooSlowError(f"more than {LIMIT_S:g} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of: {', '.join(GARBLED)}")
    parser.add_argument("--cases", type=int, help="of each target; left out: as many as it has")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each target, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="SEED:NUMBER", help="this one again, of one target")
    parser.add_argument("--keep", action="store_true", help="keep the case in the corpus")
    given = parser.parse_args()
    unknown = set(given.targets) - set(GARBLED)
    if unknown or (given.case and len(given.targets) != 1):
        parser.error(f"name {'one' if given.case else 'some'} of: {', '.join(GARBLED)}")
    signal.signal(signal.SIGALRM, _too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    if given.case:
        return 0 if again(given.targets[0], given.case, keep=given.keep) else 1
    with suppress(KeyboardInterrupt):
        held = [run(name, given.seed, given.cases, given.seconds) for name in given.targets or GARBLED]
        return 0 if all(held) else 1
    return 130


if __name__ == "__main__":
    sys.exit(main())
