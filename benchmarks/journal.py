"""The journal file beside SQLite: one record per append, with and without a flush, and reading it all again.

The same records, encoded the same way. SQLite keeps them as rows in WAL mode, one transaction per append.
`synchronous=NORMAL` leaves a commit to the system's cache, as append does; `FULL` flushes it, as append and
flush do. Reading folds all records into an image. On memory (tmpfs), and on the disk of the temporary
directory, or of another one.

    python benchmarks/journal.py [--quick] [--json] [--disk DIRECTORY]

The exit code is 1 if the file is slower than SQLite at writing, by the median. Reading happens once a start.
"""

import argparse
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from comesh.core.group.config import Config, Seat
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import Appended, ConfigKept, Image, JournalRecord
from comesh.core.records import DeviceRecord, Hold, Status
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.runtime.journal import Journal
from comesh.runtime.journal import journal as writing

MEMORY = Path("/dev/shm")
BALLOT = Ballot(1, 0)
CONFIG = Config(GroupId("lamps"), 1, 0, tuple(Seat(NodeId(f"n{n}"), n) for n in range(3)), 1000, 1)
KEPT = ConfigKept(CONFIG, 1, 0, (), True)
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(JournalRecord).decode


class Row(NamedTuple):
    place: str
    what: str
    way: str
    p50_us: float
    p99_us: float
    records: int


class Recovery(NamedTuple):
    place: str
    way: str
    records: int
    seconds: float
    megabytes: float


def record(number: int) -> Appended:
    """A lock that is granted: what a node writes most."""
    stamp = Stamp(1, BALLOT, number)
    run = RunId(RoutineId("night"), 1, stamp)
    hold = Hold(run, 1, Strategy.SEQUENTIAL, 1e12, stamp)
    device = DeviceRecord(DeviceId(f"lamp_{number % 10}"), Status.UP, number, hold)
    return Appended(CONFIG.mark, BALLOT, number, (device,))


def timed(do: Callable[[int], None], count: int) -> tuple[float, float]:
    """The median and the 99th percentile, in microseconds."""
    took: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        do(number)
        took.append((time.perf_counter() - began) * 1e6)
    took.sort()
    return statistics.median(took), took[min(len(took) - 1, int(len(took) * 0.99))]


def connect(directory: Path, synchronous: str) -> sqlite3.Connection:
    database = sqlite3.connect(directory / f"{synchronous}.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("CREATE TABLE IF NOT EXISTS journal (number INTEGER PRIMARY KEY, record BLOB NOT NULL)")
    return database


def file_rows(place: str, directory: Path, count: int) -> Iterator[Row]:
    journal = Journal.open(directory / "file", create="initialise")
    journal.append([KEPT])

    def append(number: int) -> None:
        journal.append([record(number)])

    def append_and_flush(number: int) -> None:
        journal.append([record(number)])
        journal.flush()

    yield Row(place, "append", "file", *timed(append, count), count)
    yield Row(place, "append and flush", "file", *timed(append_and_flush, count // 4), count // 4)
    journal.close()


def sqlite_rows(place: str, directory: Path, count: int) -> Iterator[Row]:
    for synchronous, what, times in (
        ("NORMAL", "append", count),
        ("FULL", "append and flush", count // 4),
    ):
        with closing(connect(directory, synchronous)) as database:
            image = Image()
            image.apply(KEPT)

            def append(number: int, database: sqlite3.Connection = database, image: Image = image) -> None:
                one = record(number)
                database.execute("INSERT INTO journal (record) VALUES (?)", (encode(one),))
                image.apply(one)

            yield Row(place, what, f"SQLite {synchronous}", *timed(append, times), times)


def recoveries(place: str, directory: Path, count: int) -> Iterator[Recovery]:
    path = directory / "long"
    journal = Journal.open(path, create="initialise")
    journal.append([KEPT])
    for start in range(0, count, 100):
        journal.append([record(number) for number in range(start, start + 100)])
    journal.close()
    megabytes = (path / "journal").stat().st_size / 1e6
    began = time.perf_counter()
    again = Journal.open(path)
    yield Recovery(place, "file read", count, time.perf_counter() - began, megabytes)
    again._compact_at = 0
    began = time.perf_counter()
    again.compact_if_due()
    megabytes = (path / "journal").stat().st_size / 1e6
    yield Recovery(place, "snapshot of the file written", count, time.perf_counter() - began, megabytes)
    again.close()
    with closing(connect(directory, "OFF")) as database:
        database.execute("BEGIN")
        rows = ((encode(record(number)),) for number in range(count))
        database.executemany("INSERT INTO journal (record) VALUES (?)", rows)
        database.execute("COMMIT")
    megabytes = (directory / "OFF.db").stat().st_size / 1e6
    began = time.perf_counter()
    image = Image()
    image.apply(KEPT)
    with closing(connect(directory, "OFF")) as database:
        for (body,) in database.execute("SELECT record FROM journal ORDER BY number"):
            image.apply(decode(body))
    yield Recovery(place, "SQLite read", count, time.perf_counter() - began, megabytes)


def measure(place: str, where: Path, *, quick: bool) -> tuple[list[Row], list[Recovery]]:
    directory = Path(tempfile.mkdtemp(prefix="comesh-journal-", dir=where))
    count, long = (400, 10_000) if quick else (8_000, 100_000)
    try:
        rows = [*file_rows(place, directory, count), *sqlite_rows(place, directory, count)]
        return rows, [*recoveries(place, directory, long)]
    finally:
        shutil.rmtree(directory)


def slower(rows: list[Row]) -> list[str]:
    """Where the file is slower than SQLite."""
    found: list[str] = []
    for place in dict.fromkeys(row.place for row in rows):
        for what in ("append", "append and flush"):
            medians = {row.way: row.p50_us for row in rows if (row.place, row.what) == (place, what)}
            file_us = medians.pop("file")
            if file_us > min(medians.values()):
                found.append(f"{what} on {place}: {file_us:.1f} us, SQLite {min(medians.values()):.1f}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="The journal beside SQLite.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    rows: list[Row] = []
    recovered: list[Recovery] = []
    places = {"memory": MEMORY, "disk": arguments.disk}
    for place, where in places.items():
        if where.is_dir():
            some, more = measure(place, where, quick=arguments.quick)
            rows += some
            recovered += more
    if arguments.json:
        print(msgspec.json.encode({"rows": rows, "recoveries": recovered}).decode())
    else:
        size = len(encode(record(1)))
        print(f"{size} bytes a record; snapshots from {writing.COMPACT_MIN_BYTES >> 20} MiB on")
        print(f"{'':8}{'':18}{'':14}{'p50 us':>10}{'p99 us':>10}")
        for row in rows:
            print(f"{row.place:8}{row.what:18}{row.way:14}{row.p50_us:10.1f}{row.p99_us:10.1f}")
        for one in recovered:
            print(
                f"{one.place:8}{one.records} records, {one.way}: {one.seconds:.3f} s, {one.megabytes:.3f} MB"
            )
    missed = slower(rows)
    for line in missed:
        print(f"slower than SQLite: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
