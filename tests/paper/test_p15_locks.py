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
from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.measures.histories import Moment, Sample
from comesh.experiments.measures.lock_delays import lock_delays
from comesh.experiments.p15_locks import (
    ACQUISITION,
    AVERAGE,
    MEDIAN,
    STABLE,
    SYNC,
    WAIT,
    compare,
    draw,
    medians,
)
from comesh.experiments.table import Table
from comesh.experiments.trials import QUIET, REAL

BALLOT = Ballot(0, 0)
CONFIG = Config(GroupId("c1"), 1, 0, (Seat(NodeId("n1"), 1),), 1000, 1)
FIRST = RunId(RoutineId("r1"), 1, Stamp(1, BALLOT, 1))
SECOND = RunId(RoutineId("r2"), 1, Stamp(1, BALLOT, 2))


def wrote(at_ms: float, *records: Record, by: str = "n1", number: int = 1) -> Moment:
    return Moment(at_ms, by, Appended(CONFIG.mark, BALLOT, number, records))


def committed(at_ms: float, *records: Record, number: int = 1) -> Moment:
    return Moment(at_ms, "n1", Committed(CONFIG.group, CONFIG, BALLOT, number, records, 0))


def told(at_ms: float, run: RunId, what: str, detail: str = "") -> Moment:
    return Moment(at_ms, "n1", RunTraced(run, what, detail))


def run_in(run: RunId, stage: Stage) -> RunRecord:
    return RunRecord(run, stage, 1, 0.0, "", Strategy.SEQUENTIAL, (), {})


def held(device: str, run: RunId) -> DeviceRecord:
    return DeviceRecord(DeviceId(device), hold=Hold(run, 1, Strategy.SEQUENTIAL, 0.0, run.stamp))


HISTORY = [
    wrote(0.0, run_in(FIRST, Stage.ACQUIRING_LOCKS)),
    told(1.0, FIRST, "lock asked", "d1 of c1, attempt 1"),
    committed(5.0, held("d1", FIRST)),
    told(7.0, FIRST, "executing"),
    wrote(10.0, run_in(SECOND, Stage.ACQUIRING_LOCKS)),
    told(11.0, SECOND, "lock asked", "d1 of c1, attempt 1"),
]
"""r1 has d1; r2 wants d1 and then d2, of its own group."""


def test_p15_a_device_is_free_when_its_holder_begins_to_give_it_back() -> None:
    found = lock_delays(
        [
            *HISTORY,
            wrote(1000.0, run_in(FIRST, Stage.RELEASING_LOCKS)),
            committed(1004.0, held("d1", SECOND)),
            committed(1007.0, held("d2", SECOND)),
            told(1009.0, SECOND, "executing"),
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
            told(8.0, FIRST, "lock passed on", "d2, d3 of c2, attempt 1"),
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
            told(1004.0, SECOND, "executing"),
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
    assert by_routines[20] < STABLE * by_routines[10]


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


def judged_with(
    measure: str, shape: str, *trials: tuple[float, float], load: str = "", column: str = MEDIAN
) -> Comparison:
    """Of trials that have such a median, or average, with 10 and with 20 routines; load: where it is higher.
    With 20 routines a quarter of the runs that fire begin."""
    table = together(simulated(shape, 10), simulated(shape, 20))
    rows = [
        {**row, "where": REAL, "count": 50, "seed": seed, column: of_trial[row["routines"] == 20]}
        for seed, of_trial in enumerate(trials)
        for row in table.where(measure=measure)
    ]
    busy = [
        {**row, "measure": "machine load", "value": row["value"] * (-1 if load == "where quick" else 1)}
        for row in rows
        if load
    ]
    fired = [
        {**row, "where": REAL, "value": 40.0 if row["measure"] == "runs fired" or few else 10.0}
        for few, table in ((True, simulated(shape, 10)), (False, simulated(shape, 20)))
        for row in table
        if row["measure"].startswith("runs ")
    ]
    found = {one.what: one for one in compare(Table(rows + busy + fired))}
    average = "average " if column == AVERAGE else ""
    return found[f"{average}{measure}, real, {shape}, default, by routines"]


def test_p15_the_papers_lock_acquisition_is_lock_wait_and_rises_on_the_line_or_differs() -> None:
    assert judged_with(WAIT, "line", (10.0, 15.0)).verdict is Verdict.AGREES
    same, steep = judged_with(WAIT, "line", (10.0, 10.0)), judged_with(WAIT, "line", (10.0, 21.0))
    assert (same.verdict, steep.verdict) == (Verdict.DIFFERS, Verdict.DIFFERS)
    assert ("is no rise" in same.why, "by more" in steep.why) == (True, True)
    assert same.in_short != steep.in_short
    assert judged_with(ACQUISITION, "line", (10.0, 15.0)).verdict is Verdict.OURS


def test_p15_what_rises_in_some_trials_and_falls_in_others_is_not_decided() -> None:
    trials = [(10.0, 12.0), (10.0, 9.0), (10.0, 12.5), (10.0, 9.5), (10.0, 12.0)]
    unsure = judged_with(WAIT, "line", *trials)
    assert unsure.verdict is Verdict.OURS
    assert unsure.why.startswith("not decided: it rises in 3 of 5 trials; ")
    assert judged_with(WAIT, "line", *trials[::2], (10.0, 11.5)).verdict is Verdict.AGREES


def test_p15_what_is_not_stable_says_whether_trials_or_the_load_explain_it() -> None:
    assert judged_with(SYNC, "grid", (10.0, 14.0)).verdict is Verdict.AGREES
    twice = judged_with(SYNC, "grid", (10.0, 20.0))
    assert (twice.verdict, "load" in twice.why) == (Verdict.DIFFERS, False)
    assert "which trials of one kind are not" in twice.in_short
    mixed = [(10.0, 40.0), (20.0, 60.0), (5.0, 30.0), (8.0, 12.0), (9.0, 18.0)]
    assert "by no more than trials of one kind are" in judged_with(SYNC, "grid", *mixed).in_short
    assert "the busier the machine was" in judged_with(SYNC, "grid", *mixed, load="where slow").why
    assert "not the load of the machine" in judged_with(SYNC, "grid", *mixed, load="where quick").why


def test_p15_averages_are_judged_as_well() -> None:
    def judged(shape: str, *ends: float) -> Comparison:
        return judged_with(WAIT, shape, ends, column=AVERAGE)

    stable, rises = judged("grid", 1000.0, 1400.0), judged("grid", 1000.0, 4000.0)
    assert (stable.verdict, rises.verdict) == (Verdict.AGREES, Verdict.DIFFERS)
    assert rises.ours == "1.0, 4.0 s at 10, 20 routines: 4.00 times"
    assert "the commands of another run" in rises.why
    assert "its median hardly" in rises.in_short
    falls = judged("grid", 4000.0, 1000.0)
    assert falls.verdict is Verdict.DIFFERS
    assert "commands" not in falls.why + falls.in_short
    assert judged("line", 1000.0, 1400.0).verdict is Verdict.AGREES
    same, steep = judged("line", 1000.0, 1000.0), judged("line", 1000.0, 4000.0)
    assert (same.verdict, steep.verdict) == (Verdict.DIFFERS, Verdict.DIFFERS)
    assert "falls on average" in same.in_short
    assert "its median hardly" in steep.in_short


def test_p15_commands_are_blamed_for_averages_only_where_the_median_does_not_rise() -> None:
    table = together(simulated("grid", 10), simulated("grid", 20))
    rows = [
        {**row, "count": 50, "value": 10.0 * (1 + 3 * many), "mean": 1000.0 * (1 + 3 * many)}
        for row in table.where(measure=WAIT)
        for many in (row["routines"] == 20,)
    ]
    fired = [row for row in table if row["measure"].startswith("runs ")]
    found = {one.what: one for one in compare(Table(rows + fired))}
    average = found["average lock wait, simulated, grid, default, by routines"]
    assert average.verdict is Verdict.DIFFERS
    assert "the median becomes 4.00 times as long as well" in average.why
    assert "commands" not in average.why + average.in_short


def test_p15_where_many_runs_never_began_it_is_said_beside_what_is_judged() -> None:
    for measure in (WAIT, SYNC):
        assert "with 20 routines 0.25 runs began for each firing" in judged_with(measure, "grid", (5, 5)).why


def test_p15_how_many_runs_began_for_each_firing_is_told() -> None:
    """Some had fired before it was measured."""
    rows = [
        {**row, "count": 50, "value": {"runs fired": 40.0, "runs executing": done}.get(row["measure"], 5.0)}
        for routines, done in ((10, 44.0), (20, 30.0))
        for row in simulated("grid", routines)
    ]
    told = {one.what: one.why for one in compare(Table(rows))}
    why = told["lock wait, simulated, default: averages over shapes and routines"]
    assert "For each firing 1.10, 0.75 runs began to execute, with 10, 20 routines" in why


def test_p15_a_hub_has_all_locks_at_once() -> None:
    central = simulated("grid", 20, "central")
    assert central.where(measure=ACQUISITION).numbers("value") == [0.0]


def test_p15_what_is_compared_and_drawn() -> None:
    table = together(simulated("grid", 10), simulated("grid", 20))
    as_real = Table({**row, "where": REAL} for row in table)
    told_of = {one.what: one for one in compare(together(table, as_real))}
    sizes = told_of[f"{SYNC}, real, default: medians over shapes and routines"]
    assert (sizes.verdict, sizes.met) == (Verdict.AGREES, False), "hops take as long as its program"
    assert "the authors' program had it for itself" in sizes.why
    as_quiet = Table({**row, "where": QUIET} for row in table)
    told_of = {one.what: one for one in compare(together(table, as_real, as_quiet))}
    assert told_of[sizes.what].met is None, "those that share the machine with few are judged"
    quiet = told_of[f"{SYNC}, quiet, default: medians over shapes and routines"]
    assert (quiet.met, "for itself" in quiet.why) == (False, False)
    both = told_of["sync delay in quorums, real and simulated, default"]
    assert (both.ours.endswith(": 1.00 times"), both.why) == (True, "")
    assert len(draw(together(table, as_real)).axes) == 2
