"""P15: how long runs wait for free locks: what is measured, and how it goes in simulation."""

from deployed_trials import simulated, together

from comesh.core.effects import Committed, RunTraced
from comesh.core.group.config import Config, Seat
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import Appended
from comesh.core.records import DeviceRecord, Gone, Hold, Record, RunRecord, Stage, run_key
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Verdict
from comesh.experiments.measures.histories import Moment, Sample
from comesh.experiments.measures.lock_delays import lock_delays
from comesh.experiments.p15_locks import ACQUISITION, SYNC, compare, draw, medians
from comesh.experiments.table import Table
from comesh.experiments.trials import QUIET, REAL

BALLOT = Ballot(0, 0)
FIRST = RunId(RoutineId("r1"), 1, Stamp(1, BALLOT, 1))
SECOND = RunId(RoutineId("r2"), 1, Stamp(1, BALLOT, 2))


def wrote(at_ms: float, *records: Record) -> Moment:
    return Moment(at_ms, "n1", Appended(1, BALLOT, 1, records))


def committed(at_ms: float, *records: Record) -> Moment:
    config = Config(GroupId("c1"), 1, 0, (Seat(NodeId("n1"), 1),), 1000, 1)
    return Moment(at_ms, "n1", Committed(config.group, config, BALLOT, 1, records, 0))


def told(at_ms: float, run: RunId, what: str, detail: str = "") -> Moment:
    return Moment(at_ms, "n1", RunTraced(run, what, detail))


def run_in(run: RunId, stage: Stage) -> RunRecord:
    return RunRecord(run, stage, 1, 0.0, "", Strategy.SEQUENTIAL, ())


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
    assert mesh.where(measure="lock wait").mean("mean") > 3 * mesh.where(measure=ACQUISITION).mean("mean")


def test_p15_stable_by_routines_on_the_grid() -> None:
    by_routines = medians(together(simulated("grid", 10), simulated("grid", 20)), ACQUISITION)
    assert set(by_routines) == {10, 20}
    assert 0.5 < by_routines[20] / by_routines[10] < 1.5


def test_p15_rises_slightly_on_the_line() -> None:
    by_routines = medians(together(simulated("line", 10), simulated("line", 20)), ACQUISITION)
    assert 1 < by_routines[20] / by_routines[10] < 2


def test_p15_a_free_device_starts_a_run_after_a_few_locks() -> None:
    """In order: who waited for one device still asks for those after it."""
    for shape in ("grid", "line"):
        mesh = simulated(shape, 20)
        sync, lock = (mesh.where(measure=measure).mean("value") for measure in (SYNC, ACQUISITION))
        assert lock < sync < 4 * lock


def test_p15_what_does_not_rise_differs_where_the_paper_has_it_rise() -> None:
    table = together(simulated("line", 10), simulated("line", 20))

    def said(few: float, many: float) -> Verdict:
        rows = ({**row, "count": 50, "value": {10: few, 20: many}[row["routines"]]} for row in table)
        return {one.what: one for one in compare(Table(rows))}[
            "lock acquisition, simulated, line, default, by routines"
        ].verdict

    assert said(10.0, 15.0) is Verdict.AGREES
    assert said(10.0, 10.0) is Verdict.DIFFERS
    assert said(10.0, 21.0) is Verdict.DIFFERS


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
    assert told_of["sync delay in quorums, real and simulated"].verdict is Verdict.OURS
    assert len(draw(together(table, as_real)).axes) == 2
