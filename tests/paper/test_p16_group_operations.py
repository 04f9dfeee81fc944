"""P16: quorum, election and state transfer: what is measured, and how long they take in simulation."""

from deployed_trials import simulated, together

from comesh.core.effects import Committed, LeaderChanged
from comesh.core.group.config import Config, Seat
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, Promised
from comesh.core.stamps import FIRST_ERA, Ballot
from comesh.experiments.measures.histories import Moment, Sample, elections, quorums, transfers
from comesh.experiments.measures.trial import Window
from comesh.experiments.p16_group_operations import PAPER_S, bars, draw, statistics, tables
from comesh.experiments.stage import Table
from comesh.experiments.trials import QUIET, REAL

FIRST, NEXT = Ballot(0, 0), Ballot(1, 1)
SEATS = (Seat(NodeId("n1"), 1), Seat(NodeId("n2"), 2), Seat(NodeId("n3"), 3))


def config(number: int) -> Config:
    return Config(GroupId("c1"), number, 0, SEATS, 1000, 1)


def leader(at_ms: float, who: str, number: int, ballot: Ballot, state: str) -> Moment:
    told = LeaderChanged(GroupId("c1"), config(number), ballot, state, 0, 0, FIRST_ERA)
    return Moment(at_ms, who, told)


def test_p16_a_quorum_is_from_the_leaders_own_record_to_its_count() -> None:
    appended = Appended(config(1).mark, FIRST, 4, ())
    told = Committed(GroupId("c1"), config(1), FIRST, 4, (), 0)
    moments = [Moment(1.0, "n1", appended), Moment(2.0, "n2", appended), Moment(3.5, "n1", told)]
    assert quorums(moments) == [Sample(3.5, 2.5)]


def test_p16_what_was_written_for_another_leader_begins_no_quorum() -> None:
    moments = [
        Moment(1.0, "n2", Appended(config(1).mark, FIRST, 4, ())),
        Moment(2.0, "n2", Appended(config(1).mark, FIRST, 5, ())),
        Moment(10.0, "n2", Appended(config(1).mark, NEXT, 4, ())),
        Moment(12.0, "n2", Committed(GroupId("c1"), config(1), NEXT, 4, (), 0)),
        Moment(13.0, "n2", Committed(GroupId("c1"), config(1), NEXT, 5, (), 0)),
    ]
    assert quorums(moments) == [Sample(12.0, 2.0)]


def test_p16_an_election_is_from_the_claim_and_a_first_leader_needs_none() -> None:
    moments = [
        leader(0.5, "n1", 1, FIRST, "serving"),
        Moment(10.0, "n2", Promised(config(1).mark, NEXT)),
        Moment(11.0, "n3", Promised(config(1).mark, NEXT)),
        leader(14.0, "n2", 1, NEXT, "serving"),
    ]
    assert elections(moments) == [Sample(14.0, 4.0)]


def test_p16_a_state_transfer_is_from_the_end_of_a_config_to_the_next_leader() -> None:
    moments = [
        leader(10.0, "n1", 1, FIRST, "handing off"),
        leader(11.0, "n1", 1, FIRST, "retired"),
        leader(16.0, "n3", 2, FIRST, "serving"),
        leader(17.0, "n3", 2, NEXT, "serving"),
    ]
    assert transfers(moments) == [Sample(16.0, 6.0)]


def test_p16_what_ends_outside_of_the_window_does_not_count() -> None:
    samples = [Sample(5.0, 1.0), Sample(15.0, 2.0), Sample(25.0, 3.0)]
    assert Window(10.0, 20.0, 30.0).of(samples) == [2.0]


def test_p16_all_three_take_some_round_trips() -> None:
    for shape in ("grid", "line"):
        mesh = simulated(shape, 10)
        took = {operation: statistics(mesh, operation) for operation in PAPER_S}
        for middle, mean, most in (one for one in took.values() if one is not None):
            assert 10 <= middle < 1000
            assert mean <= most or mean < 2 * middle
        assert all(took.values())


def test_p16_a_quorum_is_the_quickest_of_them() -> None:
    mesh = simulated("grid", 10)
    quorum = mesh.where(measure="quorum").mean("value")
    assert all(mesh.where(measure=one).mean("value") > quorum for one in ("election", "state transfer"))


def test_p16_a_change_of_epoch_transfers_every_group_once() -> None:
    """Four clusters, two epochs, each group in its own time, so that some move thrice or once."""
    (count,) = simulated("grid", 10).where(measure="state transfer").numbers("count")
    assert 6 <= count <= 10


def test_p16_nobody_elects_unless_a_leader_is_killed() -> None:
    assert simulated("grid", 10).where(measure="election").mean("count") >= 2
    assert not simulated("grid", 10, "central").where(measure="election").rows


def test_p16_quiet_trials_are_held_to_the_authors_program_if_there_are_any() -> None:
    table = together(simulated("grid", 10), simulated("line", 10))
    assert bars(table) == []
    as_real = Table({**row, "where": REAL} for row in table)
    real = bars(together(table, as_real))
    assert [one.limit for one in real] == [3.2, 45.3, 48.8]
    assert real[0].met is False, "simulated hops are no machine"
    as_quiet = Table({**row, "where": QUIET, "value": 1.0} for row in table)
    quiet = bars(together(table, as_real, as_quiet))
    assert {one.met for one in quiet} == {True}
    assert len(draw(together(table, as_real)).axes) == 2


def test_p16_operations_are_tabulated_in_quorums_as_well() -> None:
    rows = simulated("grid", 10)
    set_to = {"quorum": 10.0, "election": 20.0, "state transfer": 8.0}
    changed = Table({**row, "value": set_to.get(row["measure"], row["value"])} for row in rows)
    (found,) = tables(changed).values()
    assert found.numbers("in quorums") == [1.0, 2.0, 0.8]
