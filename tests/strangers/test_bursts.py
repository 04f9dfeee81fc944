"""Ten thousand datagrams of garbage, and a thousand handshakes that nobody ends, at a node that goes on."""

import asyncio
import os
import random
import time

from attacked import Attacked, attacked, counted, drained, more, stranger
from transport_parts import HOST, ONE, THREE, TWO, Inbox, begin_handshake, make, opened, until

from comesh.runtime.transport.packets import (
    DATA,
    VERSION,
    Flight,
    Gone,
    Hello,
    Knock,
    decode,
    encode,
)
from comesh.runtime.transport.settings import (
    GONE_PER_S,
    MAX_HALF_OPEN_OF_ONE_HOST,
    MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK,
)

GARBAGE = 10_000
HELLOS = 1_000
TOGETHER = 50
"""Datagrams sent in a row; then it is waited until they were read, so that the kernel drops none."""
STALL_S = 0.3
"""Everything stands still, as on a busy machine: then all that is due is said at once."""
RECORD = b"\x17\xfe\xfd\x00\x01" + bytes(6)


def garbage(pair: Attacked, chance: random.Random) -> bytes:
    """Of every kind, and also such as only somebody can send who sees the ids of the session."""
    seen = next(iter(pair.two._sessions.by_id))
    body = chance.randbytes(chance.randrange(24, 200))
    record = RECORD + len(body).to_bytes(2, "big") + body
    match chance.randrange(9):
        case 0:
            return chance.randbytes(chance.randrange(1, 1200))
        case 1:
            return bytes((chance.randrange(0xC1, 0xC8),)) + chance.randbytes(chance.randrange(200))
        case 2:
            return bytes((DATA,)) + chance.randbytes(8) + record
        case 3:
            return bytes((DATA,)) + seen + record
        case 4:
            return bytes((DATA,)) + seen + bytes((chance.randrange(256),)) + record[1:]
        case 5:
            return encode(Flight(seen, chance.randbytes(8), record))
        case 6:
            return encode(Hello(os.urandom(17), os.urandom(16), os.urandom(8), record))
        case 7:
            return encode(Gone(chance.randbytes(8)))
        case _:
            return encode(Knock(chance.choice((VERSION, 0, 9)), os.urandom(16), os.urandom(8)))


async def until_read(pair: Attacked, sent: int, before: dict[str, int]) -> None:
    await until(lambda: more(pair.two, before, "datagrams received") >= sent)


def test_garbage() -> None:
    async def story() -> None:
        chance = random.Random(1)
        async with attacked() as pair:
            before = counted(pair.two)
            with stranger() as one:
                for turn in range(GARBAGE // TOGETHER):
                    for datagram in (garbage(pair, chance) for _ in range(TOGETHER)):
                        one.sendto(datagram, pair.at)
                    await until_read(pair, (turn + 1) * TOGETHER, before)
                    drained(one)
                    if turn % 20 == 0:
                        await pair.go_on()
                        pair.nothing_got_in()
                assert more(pair.two, before, "dropped: not a datagram of ours") > GARBAGE / 10
                assert more(pair.two, before, "dropped: unknown session") > GARBAGE / 10
                assert more(pair.two, before, "dropped: repeated or damaged") > GARBAGE / 20
                assert more(pair.two, before, "dropped: no valid cookie") > GARBAGE / 20
                assert more(pair.two, before, "sessions established") == 0
                assert not pair.two._sessions.half_open
                assert not pair.two.counters["peers followed to another address"]

    asyncio.run(story())


def test_no_more_is_said_than_was_asked() -> None:
    """Nobody can use a node to send more to somebody else than it sends itself."""

    async def story() -> None:
        chance = random.Random(2)
        async with attacked() as pair:
            with stranger() as one:
                asked_bytes = answered_bytes = 0
                for _ in range(20):
                    before = counted(pair.two)
                    for datagram in (garbage(pair, chance) for _ in range(TOGETHER)):
                        one.sendto(datagram, pair.at)
                        asked_bytes += len(datagram)
                    await until_read(pair, TOGETHER, before)
                    answered_bytes += sum(map(len, drained(one)))
                assert 0 < answered_bytes < asked_bytes
                unknown = bytes((DATA,)) + bytes(8) + RECORD + b"\x00\x01x"
                before = counted(pair.two)
                drained(one)
                for _ in range(10):
                    for _ in range(TOGETHER):
                        one.sendto(unknown, pair.at)
                    await until_read(pair, TOGETHER, before)
                    before = counted(pair.two)
                assert sum(isinstance(decode(said), Gone) for said in drained(one)) <= 2 * GONE_PER_S

    asyncio.run(story())


def test_handshakes_that_nobody_ends() -> None:
    """With valid cookies, from an address of the book (as all on one machine are) and from another one."""

    async def story() -> None:
        async with attacked() as pair:
            before, own = counted(pair.two), pair.one.counters["sessions established"]
            with stranger() as near, stranger("127.0.3.1") as far:
                for number in range(HELLOS):
                    if number % 250 == 249:
                        time.sleep(STALL_S)
                    await begin_handshake(near if number % 2 else far, pair.at)
                    if number % 100 == 0:
                        await pair.go_on()
                        pair.nothing_got_in()
                hosts = [str(address[0]) for address, _ in pair.two._sessions.half_open]
                assert hosts.count(HOST) <= MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK
                assert hosts.count("127.0.3.1") <= MAX_HALF_OPEN_OF_ONE_HOST
                assert more(pair.two, before, "sessions established") == 0
                await pair.go_on()
            assert pair.one.counters["sessions established"] == own, "their own session was not touched"

    asyncio.run(story())


def test_a_node_that_comes_during_it_gets_in() -> None:
    """Strangers take all slots that they can; a third node that nobody has heard of yet is let in."""

    async def story() -> None:
        async with attacked() as pair:
            with stranger("127.0.3.1") as far, stranger() as near:
                for number in range(300):
                    await begin_handshake(near if number % 2 else far, pair.at)
                async with opened(make(THREE, {TWO: pair.two.port}), Inbox()) as three:
                    three.send(TWO, b"here I am")
                    await until(lambda: (THREE, b"here I am") in pair.inbox_two.got)
                assert list(pair.two.peers()) == [ONE, THREE]
                pair.known.add(THREE)

    asyncio.run(story())
