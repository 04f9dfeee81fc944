"""P15: how long runs wait for free locks: what is measured, and how it goes in simulation."""

import pytest
from deployed_trials import simulated, together

from comesh.core.effects import Committed, RunTraced
from comesh.core.group.config import Config, Seat
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import Appended
from comesh.core.records import DeviceRecord, Gone, Hold, Record, RunRecord, Stage, run_key
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.core.traces import ByHand, Executing, LockAsked, LockPassedOn, Trace
from comesh.experiments.measures.histories import Moment, Sample
from comesh.experiments.measures.lock_delays import lock_delays
from comesh.experiments.p15_locks import (
    ACQUISITION,
    SYNC,
    WAIT,
    bars,
    draw,
    medians,
    tables,
)
from comesh.experiments.stage import Table
from comesh.experiments.trials import QUIET, REAL

BALLOT = Ballot(0, 0)
CONFIG = Config(GroupId("c1"), 1, 0, (Seat(NodeId("n1"), 1),), 1000, 1)
FIRST = RunId(RoutineId("r1"), 1, Stamp(1, BALLOT, 1))
SECOND = RunId(RoutineId("r2"), 1, Stamp(1, BALLOT, 2))


def wrote(at_ms: float, *records: Record, by: str = "n1", number: int = 1) -> Moment:
    return Moment(at_ms, by, Appended(CONFIG.mark, BALLOT, number, records))


def committed(at_ms: float, *records: Record, number: int = 1) -> Moment:
    return Moment(at_ms, "n1", Committed(CONFIG.group, CONFIG, BALLOT, number, records, 0))


def told(at_ms: float, run: RunId, trace: Trace) -> Moment:
    return Moment(at_ms, "n1", RunTraced(run, trace))


def run_in(run: RunId, stage: Stage) -> RunRecord:
    return RunRecord(run, stage, 1, 0.0, ByHand("ann"), Strategy.SEQUENTIAL, (), {})


def held(device: str, run: RunId) -> DeviceRecord:
    return DeviceRecord(DeviceId(device), hold=Hold(run, 1, Strategy.SEQUENTIAL, 0.0, run.stamp))


HISTORY = [
    wrote(0.0, run_in(FIRST, Stage.ACQUIRING_LOCKS)),
    told(1.0, FIRST, LockAsked((DeviceId("d1"),), GroupId("c1"), 1)),
    committed(5.0, held("d1", FIRST)),
    told(7.0, FIRST, Executing(1, 1)),
    wrote(10.0, run_in(SECOND, Stage.ACQUIRING_LOCKS)),
    told(11.0, SECOND, LockAsked((DeviceId("d1"),), GroupId("c1"), 1)),
]
"""r1 has d1; r2 wants d1 and then d2, of its own group."""


def test_p15_a_device_is_free_when_its_holder_begins_to_give_it_back() -> None:
    found = lock_delays(
        [
            *HISTORY,
            wrote(1000.0, run_in(FIRST, Stage.RELEASING_LOCKS)),
            committed(1004.0, held("d1", SECOND)),
            committed(1007.0, held("d2", SECOND)),
            told(1009.0, SECOND, Executing(1, 1)),
        ]
    )
    assert found.acquisitions == [Sample(5.0, 4.0), Sample(1004.0, 4.0), Sample(1007.0, 3.0)]
    assert found.waits == [Sample(5.0, 5.0), Sample(1004.0, 4.0), Sample(1007.0, 997.0)]
    assert found.syncs == [Sample(7.0, 7.0), Sample(1009.0, 9.0)]
    assert found.conflict_syncs == [Sample(1009.0, 9.0)]


def test_p15_who_a_request_is_passed_on_to_was_asked_when_the_one_before_granted() -> None:
    """Also where two devices come with one entry, and whenever the run hears of it."""
    found = lock_delays(
        [
            *HISTORY[:3],
            told(8.0, FIRST, LockPassedOn((DeviceId("d2"), DeviceId("d3")), GroupId("c2"), 1)),
            committed(9.0, held("d2", FIRST), held("d3", FIRST)),
            committed(15.0, held("d4", FIRST)),
        ]
    )
    assert [sample.took_ms for sample in found.acquisitions] == [4.0, 4.0, 4.0, 6.0]


def test_p15_a_run_of_its_own_group_lets_go_in_the_entry_that_ends_it() -> None:
    found = lock_delays(
        [
            *HISTORY,
            wrote(1000.0, Gone(run_key(FIRST.routine)), held("d1", SECOND)),
            committed(1003.0, Gone(run_key(FIRST.routine)), held("d1", SECOND)),
        ]
    )
    assert found.acquisitions[-1] == Sample(1003.0, 3.0)


def test_p15_a_run_that_is_seen_to_execute_before_its_last_grant_counts_with_that_device() -> None:
    found = lock_delays(
        [
            *HISTORY,
            wrote(1000.0, run_in(FIRST, Stage.RELEASING_LOCKS)),
            committed(1003.0, held("d2", SECOND)),
            told(1004.0, SECOND, Executing(1, 1)),
            committed(1004.5, held("d1", SECOND)),
        ]
    )
    assert found.conflict_syncs == [Sample(1004.0, 4.0)], "from when d1 is free, and not from the firing"


def test_p15_what_a_member_writes_late_does_not_end_the_next_run_of_its_routine() -> None:
    again = RunId(FIRST.routine, 2, Stamp(2, BALLOT, 1))
    end = Gone(run_key(FIRST.routine))
    found = lock_delays(
        [
            wrote(0.0, run_in(FIRST, Stage.ACQUIRING_LOCKS)),
            wrote(1.0, run_in(FIRST, Stage.ACQUIRING_LOCKS), by="n2"),
            wrote(100.0, end),
            wrote(101.0, run_in(again, Stage.ACQUIRING_LOCKS)),
            committed(105.0, held("d1", again)),
            wrote(110.0, end, by="n2"),  # of the first run: n2 is late
            wrote(111.0, run_in(again, Stage.ACQUIRING_LOCKS), by="n2"),
            wrote(120.0, run_in(SECOND, Stage.ACQUIRING_LOCKS)),
            wrote(500.0, run_in(again, Stage.RELEASING_LOCKS)),
            committed(504.0, held("d1", SECOND)),
        ]
    )
    assert found.waits[-1] == Sample(504.0, 4.0), "free from 500 on, and not from 110"


def test_p15_what_is_asked_for_and_granted_in_one_entry_counts_from_that_entry() -> None:
    """The run asked for d1, and the entry that grants it asks its own group for d2 at once."""
    found = lock_delays(
        [
            *HISTORY,
            wrote(1000.0, run_in(FIRST, Stage.RELEASING_LOCKS), number=2),
            committed(1004.0, held("d1", SECOND), held("d2", SECOND), number=2),
        ]
    )
    assert found.acquisitions[-2:] == [Sample(1004.0, 4.0), Sample(1004.0, 4.0)]


def test_p15_a_lock_that_is_free_is_had_within_some_round_trips() -> None:
    """A hop takes 10 ms, and no two stations of the grid are more than six apart."""
    for routines in (10, 20):
        row = simulated("grid", routines).where(measure=ACQUISITION).rows[0]
        assert row["count"] >= 10
        assert 0 < row["value"] < row["p90"] < 400


def test_p15_runs_that_asked_for_a_held_device_start_soon_after_it_is_free() -> None:
    conflict = simulated("grid", 20).where(measure="sync delay, conflict").rows[0]
    assert conflict["count"] >= 5
    assert conflict["value"] < 600, "commands take seconds: it is the protocol that is measured"


def test_p15_waiting_for_its_turn_takes_longer_than_the_lock() -> None:
    mesh = simulated("grid", 20)
    assert mesh.where(measure=WAIT).mean("mean") > 3 * mesh.where(measure=ACQUISITION).mean("mean")


@pytest.mark.parametrize("measure", [WAIT, SYNC])
@pytest.mark.parametrize("shape", ["grid", "line"])
def test_p15_the_median_wait_and_sync_delay_do_not_grow_with_the_routines(shape: str, measure: str) -> None:
    """The paper: stable, and lock wait on the line a little longer with more routines."""
    by_routines = medians(together(simulated(shape, 10), simulated(shape, 20)), measure)
    assert set(by_routines) == {10, 20}
    assert by_routines[20] < 1.5 * by_routines[10]


def test_p15_on_average_a_run_waits_longer_with_more_routines() -> None:
    """Unlike in the paper, if its average is that of all waits: for one another, while commands last."""
    few, many = (simulated("grid", routines).where(measure=WAIT).mean("mean") for routines in (5, 20))
    assert many > 2 * few


def test_p15_a_free_device_starts_a_run_after_a_few_locks() -> None:
    """In order: who waited for one device still asks for those after it."""
    for shape in ("grid", "line"):
        mesh = simulated(shape, 20)
        sync, lock = (mesh.where(measure=measure).mean("value") for measure in (SYNC, ACQUISITION))
        assert lock < sync < 4 * lock


def test_p15_a_hub_has_all_locks_at_once() -> None:
    central = simulated("grid", 20, "central")
    assert central.where(measure=ACQUISITION).numbers("value") == [0.0]


def test_p15_quiet_trials_are_held_to_the_authors_program_if_there_are_any() -> None:
    table = together(simulated("grid", 10), simulated("grid", 20))
    assert bars(table) == []
    as_real = Table({**row, "where": REAL} for row in table)
    (real,) = bars(together(table, as_real))
    assert (real.met, "real" in real.name) == (False, True), "hops take as long as its program"
    as_quiet = Table({**row, "where": QUIET, "value": row["value"] / 100} for row in table)
    (quiet,) = bars(together(table, as_real, as_quiet))
    assert (quiet.met, "quiet" in quiet.name) == (True, True)


def test_p15_it_is_tabulated_and_drawn() -> None:
    table = together(simulated("grid", 10), simulated("grid", 20))
    middle, *_, began = tables(table).values()
    (wait,) = middle.where(measure=WAIT)
    assert wait["20 routines"] == medians(table, WAIT)[20]
    assert 0.8 < began.rows[0]["10 routines"] <= 1.2
    assert len(draw(together(table, Table({**row, "where": REAL} for row in table))).axes) == 2
