"""Tests that a growing recording is read from where the last read ended."""

from pathlib import Path

from comesh.core.effects import RunTraced
from comesh.core.ids import RoutineId
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.traces import ByHand, Failed, Finished, Fired
from comesh.lab.watching import Watch
from comesh.runtime.recording import Recorder, told


def run(number: int) -> RunId:
    return RunId(RoutineId("r"), 1, Stamp(0, Ballot(0, 0), number))


def test_runs_are_known_as_soon_as_they_are_recorded(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.look().fired == {}
    recorder = Recorder(tmp_path / "n1.rec", "n1")
    recorder.write(1000, told(RunTraced(run(1), Fired(ByHand("ann")))))
    assert watch.look().fired == {str(run(1)): 1000}
    recorder.write(2000, told(RunTraced(run(1), Failed("no answer"))))
    recorder.write(3000, told(RunTraced(run(2), Fired(ByHand("ann")))))
    recorder.write(4000, told(RunTraced(run(2), Finished())))
    recorder.close()
    assert watch.look().ended == {str(run(1)): "no answer", str(run(2)): "finished"}
    assert watch.firings_of("r") == [str(run(1)), str(run(2))]
    assert watch.firings_of("another") == []


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "whole.rec", "n1")
    recorder.write(1000, told(RunTraced(run(1), Fired(ByHand("ann")))))
    recorder.close()
    line = (tmp_path / "whole.rec").read_bytes()
    (tmp_path / "whole.rec").unlink()
    growing = tmp_path / "n1.rec"
    watch = Watch(tmp_path)
    growing.write_bytes(line[:-3])
    assert watch.look().fired == {}
    growing.write_bytes(line)
    assert watch.look().fired == {str(run(1)): 1000}
