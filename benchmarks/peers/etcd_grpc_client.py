"""Lock + unlock over gRPC. Runs in an environment that has grpcio, and imports nothing else:

    python etcd_grpc_client.py ADDRESS LEASE_SECONDS WARM_UP COUNT WORKERS

The four messages of these calls are so small that they are written by hand here, after the public .proto
files of etcd: LeaseGrantRequest {TTL = 1}, LeaseGrantResponse {ID = 2}, LockRequest {name = 1, lease = 2},
LockResponse {key = 2}, UnlockRequest {key = 1}.
"""

import asyncio
import json
import sys
import time

import grpc
import grpc.aio

WHOLE, TEXT = 0, 2
"""Wire types: a whole number, and bytes with their length before them."""


def varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | WHOLE) + varint(value)
    return varint(number << 3 | TEXT) + varint(len(value)) + value


def fields(data: bytes) -> dict[int, int | bytes]:
    """Of a message that has no other wire types."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    found: dict[int, int | bytes] = {}
    while at < len(data):
        key = number()
        value = number()
        if key & 7 == WHOLE:
            found[key >> 3] = value
        else:
            found[key >> 3] = data[at : at + value]
            at += value
    return found


def one_after_the_other(address: str, lease_s: int, count: int) -> tuple[list[float], float]:
    with grpc.insecure_channel(address) as channel:
        lease = fields(channel.unary_unary("/etcdserverpb.Lease/LeaseGrant")(field(1, lease_s)))[2]
        lock = channel.unary_unary("/v3lockpb.Lock/Lock")
        unlock = channel.unary_unary("/v3lockpb.Lock/Unlock")
        asked = field(1, b"comesh") + field(2, lease)
        took_ms = []
        began = time.perf_counter()
        for _ in range(count):
            start = time.perf_counter()
            unlock(field(1, fields(lock(asked))[2]))
            took_ms.append((time.perf_counter() - start) * 1000)
        return took_ms, time.perf_counter() - began


async def at_once(address: str, lease_s: int, count: int, workers: int) -> tuple[list[float], float]:
    async with grpc.aio.insecure_channel(address) as channel:
        lease = fields(await channel.unary_unary("/etcdserverpb.Lease/LeaseGrant")(field(1, lease_s)))[2]
        lock = channel.unary_unary("/v3lockpb.Lock/Lock")
        unlock = channel.unary_unary("/v3lockpb.Lock/Unlock")
        left = count
        took_ms = []

        async def work(number: int) -> None:
            nonlocal left
            asked = field(1, f"comesh{number}".encode()) + field(2, lease)
            while left > 0:
                left -= 1
                start = time.perf_counter()
                await unlock(field(1, fields(await lock(asked))[2]))
                took_ms.append((time.perf_counter() - start) * 1000)

        began = time.perf_counter()
        await asyncio.gather(*(work(number) for number in range(workers)))
        return took_ms, time.perf_counter() - began


def main() -> None:
    address, *numbers = sys.argv[1:]
    lease_s, warm_up, count, workers = map(int, numbers)
    for amount in (warm_up, count):
        if workers == 1:
            took_ms, all_s = one_after_the_other(address, lease_s, amount)
        else:
            took_ms, all_s = asyncio.run(at_once(address, lease_s, amount, workers))
    print(json.dumps({"took_ms": took_ms, "all_s": all_s}))


if __name__ == "__main__":
    main()
