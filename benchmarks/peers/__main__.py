"""Measure the systems that CoMesh is compared with. Run it in `benchmarks/`:

    python -m peers [--json] [--count N] [--trials N] [etcd] [etcd-grpc] [zookeeper] [serf]

All unless named. What is missing is installed with apt-get if we are root; otherwise the line says what is
missing. The exit code is 1 if one could not be measured.
"""

import argparse
import signal
import sys

import msgspec

from peers import MEASURES, Effort, MissingError, Result, table


def main() -> int:
    usual = Effort()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments.add_argument("--count", type=int, default=usual.count, help="lock and unlock pairs, each way")
    arguments.add_argument("--warm-up", type=int, default=usual.warm_up, help="pairs before, not counted")
    arguments.add_argument("--trials", type=int, default=usual.trials, help="kills of a Serf agent")
    arguments.add_argument("peers", nargs="*", choices=[*MEASURES, []], help="all unless named")
    options = arguments.parse_args()
    effort = Effort(count=options.count, warm_up=options.warm_up, trials=options.trials)
    # So that what was started is ended on a plain kill, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results: list[Result] = []
    missing: list[str] = []
    for name in options.peers or MEASURES:
        try:
            results.extend(MEASURES[name](effort))
        except MissingError as error:
            missing.append(f"{name}: {error}")
    if options.json:
        print(msgspec.json.format(msgspec.json.encode({"results": results, "missing": missing})).decode())
    else:
        print("\n".join([*table(results), *missing]))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
