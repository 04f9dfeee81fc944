"""Acquire + release of kazoo's Lock. Runs in an environment that has kazoo, and imports nothing else:

python zookeeper_client.py ADDRESS WARM_UP COUNT
"""

import json
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


def pairs(lock: Lock, count: int) -> tuple[list[float], float]:
    took_ms = []
    began = time.perf_counter()
    for _ in range(count):
        start = time.perf_counter()
        lock.acquire()
        lock.release()
        took_ms.append((time.perf_counter() - start) * 1000)
    return took_ms, time.perf_counter() - began


def main() -> None:
    address, warm_up, count = sys.argv[1:]
    client = KazooClient(hosts=address)
    client.start()
    try:
        lock = client.Lock("/comesh", "benchmark")
        pairs(lock, int(warm_up))
        took_ms, all_s = pairs(lock, int(count))
    finally:
        client.stop()
        client.close()
    print(json.dumps({"took_ms": took_ms, "all_s": all_s}))


if __name__ == "__main__":
    main()
