"""Tests of the checkers on recordings: sound ones pass, and every change to one is found."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from recorded_worlds import BASE_US, WorldRecorder, record, rewrite

from comesh.core.effects import Committed, LeaderChanged, RunTraced
from comesh.core.journal import Appended
from comesh.core.program import Program
from comesh.core.records import Gone, RoutineRecord
from comesh.core.traces import Ending
from comesh.lab.judging import JudgeError, Quiet, Verdict, judge, judge_recordings
from comesh.lab.merging import recordings
from comesh.runtime.recording import (
    Began,
    DeviceActed,
    Line,
    RecordingError,
    Told,
    Wrote,
    observation_of,
    record_of,
    told,
)
from comesh.sim.checks import Promise
from comesh.sim.fault_model import Fault
from comesh.sim.faults import Crash, Kill, Pause, Restart
from comesh.sim.swarm import Swarm
from comesh.sim.topology import Shape, make_topology

NODES = sorted(make_topology(Shape.GRID, devices=12, smart=0.7, seed=1).nodes)
SECONDS = 30.0
Sound = tuple[Path, Program]
T = TypeVar("T", Committed, LeaderChanged)


def faults() -> Iterator[Fault]:
    for number, node in enumerate(NODES[:3]):
        at_ms = 6000.0 + 7000.0 * number
        yield Crash(at_ms=at_ms, node=node) if number == 1 else Kill(at_ms=at_ms, node=node)
        yield Restart(at_ms=at_ms + 3000.0, node=node)
        yield Pause(at_ms=at_ms + 1000.0, node=NODES[-1], for_ms=2500.0)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    directory = tmp_path_factory.mktemp("sound")
    return directory, record(directory, *faults(), seconds=SECONDS)


@pytest.fixture
def changed(sound: Sound, tmp_path: Path) -> Sound:
    """Returns a copy of the recording to be changed."""
    directory = tmp_path / "changed"
    shutil.copytree(sound[0], directory)
    return directory, sound[1]


def verdict_of(recorded: Sound, quiet: Quiet | None = None) -> Verdict:
    return judge_recordings(recordings(recorded[0]), [recorded[1]], quiet=quiet)


def promises(verdict: Verdict) -> set[Promise]:
    return {violation.promise for violation in verdict.violations}


def change_told(directory: Path, kind: type[T], change: Callable[[T], list[T] | None], skip: int = 3) -> str:
    """Have `change` put other observations in the place of one; None: not this one. The first ones are left,
    so that something has happened before. Who told it."""
    for path in recordings(directory):
        done = False
        seen = 0

        def lines(before: list[Line]) -> list[Line]:
            nonlocal done, seen
            after: list[Line] = []
            for line in before:
                observation = observation_of(line.what) if isinstance(line.what, Told) else None
                instead = None
                if not done and isinstance(observation, kind):
                    seen += 1
                    instead = change(observation) if seen > skip else None
                if instead is None:
                    after.append(line)
                else:
                    done = True
                    after += [Line(line.at_us, line.who, told(one)) for one in instead]
            return after

        rewrite(path, lines)
        if done:
            return path.stem
    raise AssertionError("nothing of that kind in the recordings")


def test_a_sound_mesh_breaks_nothing(sound: Sound) -> None:
    quiet = Quiet(BASE_US, BASE_US + int(SECONDS * 1e6), bound_ms=20_000.0)
    verdict = verdict_of(sound, quiet)
    assert verdict.violations == (), str(verdict)
    assert verdict.kept
    assert verdict.acts > 50
    assert verdict.runs > 50
    assert verdict.commits > 500
    assert verdict.leader_changes > 3
    assert verdict.lives == len(NODES) + 3
    assert verdict.unsure == ()
    assert "all promises kept" in str(verdict)


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_losses_of_the_swarm_are_found_in_its_recordings(tmp_path: Path, seed: int) -> None:
    """Power losses and lossy elections: the recordings give the same verdict as the world itself."""
    swarm = Swarm(seed)
    with WorldRecorder(tmp_path, swarm.world).listening():
        broken = swarm.run().broken
    verdict = verdict_of((tmp_path, swarm.program))
    assert (broken, verdict.violations) == ((), ())
    assert len(verdict.losses) == len(swarm.checks.losses) > 0
    assert [one.entries for one in verdict.losses] == [one.entries for one in swarm.checks.losses]


def test_a_commit_that_is_left_out_is_found(changed: Sound) -> None:
    change_told(changed[0], Committed, lambda _: [])
    verdict = verdict_of(changed)
    assert Promise.ONE_HISTORY in promises(verdict)
    assert "numbers were left out" in str(verdict)


def test_an_entry_that_nobody_proposed_is_found(changed: Sound) -> None:
    def other(one: Committed) -> list[Committed] | None:
        return [msgspec.structs.replace(one, entry=one.entry[:-1])] if len(one.entry) > 1 else None

    change_told(changed[0], Committed, other)
    assert Promise.ONE_HISTORY in promises(verdict_of(changed))


def test_an_act_without_a_lock_is_found(changed: Sound) -> None:
    def forge(lines: list[Line]) -> list[Line]:
        acts = [line for line in lines if isinstance(line.what, DeviceActed) and line.what.acted.run]
        first, last = acts[0].what, acts[-1]
        assert isinstance(first, DeviceActed) and isinstance(last.what, DeviceActed)
        late = last.what.acted
        command = msgspec.structs.replace(first.acted.command, sent_ms=late.command.sent_ms)
        forged = msgspec.structs.replace(first.acted, at_ms=late.at_ms, command=command)
        return [*lines, Line(last.at_us, last.who, DeviceActed(forged))]

    rewrite(changed[0] / "devices.rec", forge)
    verdict = verdict_of(changed)
    assert promises(verdict) == {Promise.NO_STRAY}
    assert "did not hold it when that was sent" in str(verdict)


def test_a_second_leader_of_a_ballot_is_found(changed: Sound) -> None:
    served: list[LeaderChanged] = []

    def note(one: LeaderChanged) -> list[LeaderChanged] | None:
        served.append(one)
        return [one] if one.state == "serving" else None

    node = change_told(changed[0], LeaderChanged, note)
    other = next(one for one in served[-1].config.nodes if one != node)

    def claims_too(lines: list[Line]) -> list[Line]:
        """At the end of all: the other one leads by then."""
        last = next(line for line in reversed(lines) if isinstance(line.what, Told))
        return [*lines, Line(BASE_US + int(SECONDS * 1e6), last.who, told(served[-1]))]

    rewrite(changed[0] / f"{other}.rec", claims_too)
    verdict = verdict_of(changed)
    assert Promise.ONE_HISTORY in promises(verdict)
    assert f"{other} leads with ballot {served[-1].ballot}" in str(verdict)
    assert f"as did {node}" in str(verdict)


def test_a_run_without_an_end_is_found(changed: Sound) -> None:
    def ends_nothing(one: Committed) -> list[Committed] | None:
        routines = [record for record in one.entry if isinstance(record, RoutineRecord) and record.ended]
        if not routines or not any(isinstance(record, Gone) for record in one.entry):
            return None
        entry = tuple(
            msgspec.structs.replace(record, ended=None) if isinstance(record, RoutineRecord) else record
            for record in one.entry
        )
        return [msgspec.structs.replace(one, entry=entry)]

    for path in recordings(changed[0]):
        rewrite(path, lambda lines: [line for line in lines if not _tells_an_end(line)])
    change_told(changed[0], Committed, ends_nothing)
    verdict = verdict_of(changed)
    assert Promise.NO_LOSS in promises(verdict)
    assert "is gone without an end" in str(verdict)


def _tells_an_end(line: Line) -> bool:
    observation = observation_of(line.what) if isinstance(line.what, Told) else None
    return isinstance(observation, RunTraced) and isinstance(observation.trace, Ending)


def test_a_commit_that_no_quorum_wrote_is_found(changed: Sound) -> None:
    def is_entry(line: Line) -> bool:
        return isinstance(line.what, Wrote) and isinstance(record_of(line.what), Appended)

    for node in NODES:
        rewrite(changed[0] / f"{node}.rec", lambda lines: [line for line in lines if not is_entry(line)])
    assert Promise.QUORUM in promises(verdict_of(changed))


def test_a_restarted_leader_is_another_leader(changed: Sound) -> None:
    """A second life in the middle of a leadership was never elected."""
    ballots: list[LeaderChanged] = []

    def note(one: LeaderChanged) -> list[LeaderChanged] | None:
        ballots.append(one)
        return [one] if one.state == "serving" else None

    node = change_told(changed[0], LeaderChanged, note, skip=0)

    def restarted(lines: list[Line]) -> list[Line]:
        began = next(line.what for line in lines if isinstance(line.what, Began))
        after: list[Line] = []
        commits = 0
        for line in lines:
            observation = observation_of(line.what) if isinstance(line.what, Told) else None
            if isinstance(observation, Committed) and observation.ballot == ballots[-1].ballot:
                commits += 1
                if commits == 3:
                    after.append(Line(line.at_us, line.who, began))
            after.append(line)
        return after

    rewrite(changed[0] / f"{node}.rec", restarted)
    assert "after a restart" in str(verdict_of(changed))


def test_a_group_without_a_leader_is_found(tmp_path: Path) -> None:
    died_ms = 8000.0
    recorded = (
        tmp_path,
        record(tmp_path, *(Kill(at_ms=died_ms, node=node) for node in NODES[1:]), seconds=20.0),
    )
    from_us = BASE_US + int(died_ms * 1000)
    verdict = verdict_of(recorded, Quiet(from_us, from_us + 12_000_000, bound_ms=5000.0))
    assert promises(verdict) == {Promise.PROGRESS}
    assert "nobody serves" in str(verdict)
    assert verdict_of(recorded).kept, "outside of a quiet phase nothing is promised"


def test_half_a_line_at_the_end_is_left_out(changed: Sound) -> None:
    before = verdict_of(changed)
    path = changed[0] / f"{NODES[0]}.rec"
    path.write_bytes(path.read_bytes()[:-3])
    assert verdict_of(changed).lines == before.lines - 1


def test_files_that_are_not_recordings_are_refused(tmp_path: Path) -> None:
    document = tmp_path / "no.yaml"
    document.write_text("nodes: 1\n")
    with pytest.raises(JudgeError, match=r"no\.yaml"):
        judge(tmp_path, document)
    with pytest.raises(RecordingError, match="no recordings here"):
        recordings(tmp_path)
    bad = tmp_path / "n1.rec"
    bad.write_bytes(b"\x00\x00\x00\x02no")
    with pytest.raises(RecordingError, match=r"n1\.rec: the line at byte 0 cannot be read"):
        judge_recordings([bad], [])
