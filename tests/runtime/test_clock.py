"""Clocks of a node: what is believed, when, and what is said about it. No test waits for time."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comesh.core.ids import NodeId
from comesh.runtime.clock import (
    FAR_MS,
    HEARD_FOR_MS,
    LATEST_MS,
    MADE_MS,
    MAX_HELD_MS,
    MAX_NODES,
    MESH_WAIT_MS,
    WRITTEN_EVERY_MS,
    Clock,
    LastWall,
    MeshClock,
    monotonic_ms,
    system_wall_ms,
)

NOW_MS = MADE_MS + 1e9
HOUR_MS = 3_600_000.0


class Times:
    """The time sources of a machine, moved by hand."""

    def __init__(self, wall_ms: float = NOW_MS) -> None:
        self.up_ms = 5000.0
        self.system_ms = wall_ms

    def pass_ms(self, by_ms: float) -> None:
        self.up_ms += by_ms
        self.system_ms += by_ms

    def clock(self, offset_ms: float = 0.0) -> Clock:
        return Clock(offset_ms=offset_ms, monotonic=lambda: self.up_ms, system=lambda: self.system_ms)


def say(mesh: MeshClock, *walls_ms: float, round_trip_ms: float = 0.0) -> None:
    for number, wall_ms in enumerate(walls_ms):
        mesh.heard(NodeId(f"n{number}"), wall_ms, round_trip_ms)


def test_the_real_clocks_run() -> None:
    clock = Clock()
    assert clock.monotonic_ms() <= clock.monotonic_ms()
    assert abs(clock.wall_ms() - system_wall_ms()) < HOUR_MS
    assert abs(clock.monotonic_us() / 1000 - monotonic_ms()) < HOUR_MS
    assert abs(Clock(offset_ms=2 * HOUR_MS).wall_ms() - clock.wall_ms()) > HOUR_MS


def test_a_valid_clock_is_used_without_a_word() -> None:
    times = Times()
    mesh = MeshClock(times.clock())
    assert mesh.wall_ms() == NOW_MS
    assert mesh.valid
    assert not mesh.waiting
    times.pass_ms(250)
    assert mesh.wall_ms() == NOW_MS + 250
    assert not mesh.notes


def test_without_a_clock_the_mesh_is_waited_for_and_its_median_taken() -> None:
    times, told = Times(wall_ms=0.0), list[str]()
    mesh = MeshClock(times.clock(), told=told.append)
    assert mesh.waiting
    assert mesh.wall_ms() == MADE_MS
    say(mesh, NOW_MS, NOW_MS + 40)
    assert mesh.waiting, "two are not enough yet"
    say(mesh, NOW_MS, NOW_MS + 40, NOW_MS + 7 * HOUR_MS, round_trip_ms=20)
    assert not mesh.waiting
    assert mesh.wall_ms() == NOW_MS + 50, "half a round trip later; the one that is wrong does not count"
    assert not mesh.valid, "it tells nobody else"
    assert "asked for the time" in told[0]
    assert "median of 3 other nodes" in told[1]
    assert told == [*mesh.notes]


def test_after_the_wait_one_node_is_enough() -> None:
    times = Times(wall_ms=0.0)
    mesh = MeshClock(times.clock())
    say(mesh, NOW_MS)
    assert mesh.waiting
    times.pass_ms(MESH_WAIT_MS)
    assert mesh.wall_ms() == NOW_MS + MESH_WAIT_MS
    assert mesh.source == "mesh"


def test_without_anybody_time_is_counted_on_from_the_floor() -> None:
    times = Times(wall_ms=0.0)
    mesh = MeshClock(times.clock(), floor_ms=NOW_MS)
    times.pass_ms(MESH_WAIT_MS + 5)
    assert mesh.wall_ms() == NOW_MS + MESH_WAIT_MS + 5
    assert (mesh.source, mesh.waiting, mesh.valid) == ("guessed", False, False)
    assert "come late" in mesh.notes[-1]


def test_the_time_of_the_mesh_is_counted_on_when_it_falls_silent() -> None:
    times = Times(wall_ms=0.0)
    mesh = MeshClock(times.clock())
    say(mesh, NOW_MS, NOW_MS, NOW_MS)
    assert mesh.wall_ms() == NOW_MS
    times.pass_ms(2 * HEARD_FOR_MS)
    assert mesh.mesh_wall_ms() is None
    assert mesh.wall_ms() == NOW_MS + 2 * HEARD_FOR_MS


def test_a_clock_that_is_set_later_is_gone_over_to() -> None:
    times = Times(wall_ms=0.0)
    mesh = MeshClock(times.clock())
    say(mesh, NOW_MS, NOW_MS, NOW_MS)
    given_ms = mesh.wall_ms()
    times.system_ms = NOW_MS - 2000
    assert mesh.wall_ms() == given_ms, "a small step back is waited out"
    assert mesh.valid
    assert "is its own" in mesh.notes[-1]
    times.pass_ms(1500)
    assert mesh.wall_ms() == given_ms
    times.pass_ms(1500)
    assert mesh.wall_ms() == given_ms + 1000


def test_a_large_step_back_is_made_and_said() -> None:
    times = Times()
    mesh = MeshClock(times.clock())
    mesh.wall_ms()
    times.system_ms -= HOUR_MS
    assert mesh.wall_ms() == NOW_MS - HOUR_MS
    assert mesh.notes[-1] == "the time went back by 3600 s"


OFF = pytest.mark.parametrize(
    ("offset_ms", "way"), [(HOUR_MS, "3600 s ahead of"), (-HOUR_MS, "3600 s behind")]
)


@OFF
def test_a_clock_that_is_an_hour_off_is_reported_and_outvoted(offset_ms: float, way: str) -> None:
    times = Times()
    mesh = MeshClock(times.clock(offset_ms))
    say(mesh, NOW_MS)
    assert mesh.wall_ms() == NOW_MS + offset_ms, "one against one"
    assert f"{way} what 1 other nodes" in mesh.notes[0]
    assert mesh.trouble == mesh.notes[0]
    say(mesh, *[NOW_MS] * 5)
    say(mesh, *[NOW_MS] * 5)
    assert mesh.wall_ms() == NOW_MS
    assert not mesh.valid, "others do not go by what it has from them"
    assert f"{way} what most nodes say" in mesh.trouble
    said = len(mesh.notes)
    say(mesh, NOW_MS)
    assert mesh.wall_ms() == NOW_MS
    assert len(mesh.notes) == said, "said once"
    times.system_ms -= offset_ms
    say(mesh, NOW_MS)
    assert "agrees" in mesh.notes[-1]
    assert mesh.wall_ms() == NOW_MS
    assert mesh.valid
    assert mesh.trouble == ""


@OFF
def test_nodes_that_do_not_agree_outvote_nobody(offset_ms: float, way: str) -> None:
    mesh = MeshClock(Times().clock())
    say(mesh, NOW_MS, NOW_MS, NOW_MS + offset_ms, NOW_MS + offset_ms)
    assert mesh.wall_ms() == NOW_MS
    assert mesh.valid


def test_nodes_that_do_not_know_and_nonsense_are_counted() -> None:
    mesh = MeshClock(Times(wall_ms=0.0).clock())
    mesh.heard(NodeId("n1"), NOW_MS, 1.0, valid=False)
    for wall_ms, round_trip_ms in [
        (0.0, 1.0),
        (LATEST_MS * 2, 1.0),
        (float("nan"), 1.0),
        (float("inf"), 1.0),
        (NOW_MS, -1.0),
        (NOW_MS, float("nan")),
        (NOW_MS, 1e9),
    ]:
        mesh.heard(NodeId("n2"), wall_ms, round_trip_ms)
    assert mesh.mesh_wall_ms() is None
    assert mesh.counters == {"times of nodes that do not know it": 1, "times that cannot be right": 7}


def test_what_is_kept_of_others_is_bounded() -> None:
    mesh = MeshClock(Times().clock())
    say(mesh, *[NOW_MS] * (MAX_NODES * 3))
    assert len(mesh._heard) == MAX_NODES


# -- the floor ---------------------------------------------------------------------------------------------


def test_the_last_time_is_written_down_now_and_then(tmp_path: Path) -> None:
    times, last = Times(), LastWall(tmp_path)
    assert last.read() == 0.0
    mesh = MeshClock(times.clock(), last=last)
    mesh.wall_ms()
    assert last.read() == NOW_MS
    times.pass_ms(WRITTEN_EVERY_MS / 2)
    mesh.wall_ms()
    assert last.read() == NOW_MS
    times.pass_ms(WRITTEN_EVERY_MS / 2)
    mesh.wall_ms()
    assert last.read() == NOW_MS + WRITTEN_EVERY_MS


def test_a_clock_before_the_last_time_is_not_believed(tmp_path: Path) -> None:
    LastWall(tmp_path).write(NOW_MS)
    late = MeshClock(Times(NOW_MS - HOUR_MS).clock(), last=LastWall(tmp_path))
    assert late.waiting
    assert late.wall_ms() == NOW_MS
    assert LastWall(tmp_path).read() == NOW_MS, "a guess is not written down"
    adjusted = MeshClock(Times(NOW_MS - FAR_MS).clock(), last=LastWall(tmp_path))
    assert adjusted.valid, "a time service may have put it back a little"


def test_a_last_time_that_was_wrong_is_corrected_by_the_mesh(tmp_path: Path) -> None:
    LastWall(tmp_path).write(NOW_MS + 1000 * HOUR_MS)
    mesh = MeshClock(Times().clock(), last=LastWall(tmp_path))
    assert not mesh.valid
    say(mesh, NOW_MS + 10)
    assert mesh.valid
    assert mesh.wall_ms() == NOW_MS
    assert LastWall(tmp_path).read() == NOW_MS


def test_dates_that_are_passed_in_raise_the_floor() -> None:
    mesh = MeshClock(Times().clock())
    assert mesh.valid
    mesh.raise_floor(NOW_MS + HOUR_MS)
    assert not mesh.valid
    mesh.raise_floor(LATEST_MS * 2)
    assert mesh.wall_ms() < NOW_MS + 2 * HOUR_MS


@pytest.mark.parametrize("content", [b"", b"tomorrow", b"nan", b"-5", b"9e99", b"\xff" * 100])
def test_a_last_time_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wall").write_bytes(content)
    assert LastWall(tmp_path).read() == 0.0


def test_a_directory_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    LastWall(tmp_path / "gone").write(NOW_MS)
    assert LastWall(tmp_path / "gone").read() == 0.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(-2e8, 2e8), st.booleans()), max_size=30))
def test_small_steps_never_run_backwards(moves: list[tuple[float, float, bool]]) -> None:
    times = Times()
    mesh = MeshClock(times.clock())
    before_ms = mesh.wall_ms()
    for passed_ms, step_ms, heard in moves:
        times.pass_ms(passed_ms)
        times.system_ms += step_ms
        if heard:
            say(mesh, NOW_MS + times.up_ms, NOW_MS + times.up_ms, NOW_MS + times.up_ms)
        now_ms = mesh.wall_ms()
        assert now_ms >= before_ms or before_ms - now_ms > MAX_HELD_MS
        assert now_ms >= MADE_MS
        before_ms = now_ms
