"""Tests of finding leaders: when a silent group is tried again, and at which node."""

import pytest

from comesh.core.group.config import UNBOUND_STORE, Config, Seat
from comesh.core.group.finder import UNANSWERED, Finder, is_quiet, listing_announcement
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.membership.announcements import Board
from comesh.core.messages import Announcement
from comesh.core.plan import Plan, SelectionSettings
from comesh.core.program import Program, ProtocolSettings
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot, Fence, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Strategy
from comesh.core.work_messages import GroupMessage, Home, LockRequest, Seen, Watch

HALL = GroupId("hall")
N4, N5, N6, N7 = (NodeId(f"n{number}") for number in range(4, 8))
FIRST = Fence(1, OPENING)
SECOND = Fence(1, Ballot(1, 1))
RESEND_MS = 1000.0
ASKS = GroupMessage(HALL, None, None, 1, Watch((DeviceId("lamp"),)))
TELLS = GroupMessage(HALL, None, None, 1, Seen(DeviceId("lamp"), Stamp(1, OPENING, 1)))
PLAN = Plan(
    version=1,
    settings=SelectionSettings(),
    nodes=(),
    devices=(),
    routines=(),
    clusters=(),
    anchors={},
    genesis={HALL: (N4, N5, N6)},
    spacing_mm=1000,
    groups_made=1,
)
PROGRAM = Program(plan=PLAN, devices={}, routines={}, settings=ProtocolSettings())


class Desk:
    """Writes to the hall by hand, under a board and a clock of its own."""

    def __init__(self) -> None:
        self.board = Board()
        self.finder = Finder(self.board)
        self.now_ms = 0.0

    @property
    def step(self) -> Step:
        return Step(self.now_ms, self.now_ms)

    def write(self, message: GroupMessage = ASKS) -> NodeId | None:
        to = self.finder.where(HALL, PROGRAM)
        self.finder.wrote(HALL, message, 0, self.step)
        return to

    def hear(self, fence: Fence = FIRST, node: NodeId = N4) -> None:
        self.finder.heard(HALL, fence, node, self.step)

    def is_reached(self) -> bool:
        return self.finder.reached(HALL, RESEND_MS, self.step)

    def post_listing(self, ballot: Ballot, leader: NodeId) -> None:
        seats = tuple(Seat(node, UNBOUND_STORE) for node in (N4, N5, N6))
        config = Config(HALL, 1, 0, seats, 1000, 1)
        key, version, value = listing_announcement(config, ballot, leader, quiet=False)
        self.board.put(Announcement(key, version, value))


def test_a_group_is_silent_from_the_first_request_to_its_next_message() -> None:
    desk = Desk()
    desk.hear()
    desk.write(TELLS)
    desk.now_ms += RESEND_MS
    assert not desk.is_reached(), "nothing was asked"
    desk.write()
    desk.now_ms += RESEND_MS
    desk.write()
    assert desk.is_reached()
    assert not desk.is_reached(), "what is said then has to stay without an answer first"
    desk.write()
    desk.hear()
    desk.now_ms += RESEND_MS
    assert not desk.is_reached(), "it answered"


def test_a_group_that_is_reached_is_asked_where_its_leader_is() -> None:
    desk = Desk()
    desk.hear()
    assert [desk.write() for _ in range(2 * UNANSWERED)] == [N4] * 2 * UNANSWERED, "the first member, too"
    assert desk.write() == N5, "the members in order"
    desk.now_ms += RESEND_MS
    assert desk.is_reached()
    assert desk.write() == N4


def test_silent_groups_with_a_node_that_is_back() -> None:
    desk = Desk()
    desk.hear(SECOND, N7)
    assert desk.finder.silent_with({N5, N7}, PROGRAM) == [], "nobody was asked"
    desk.write()
    assert desk.finder.silent_with({N5}, PROGRAM) == [HALL], "a member"
    assert desk.finder.silent_with({N7}, PROGRAM) == [HALL], "the leader"
    assert desk.finder.silent_with({NodeId("n1")}, PROGRAM) == []


def test_silent_groups_with_a_newer_leader_in_the_directory() -> None:
    desk = Desk()
    desk.post_listing(OPENING, N4)
    assert desk.write() == N4
    assert desk.finder.silent_and_listed() == []
    desk.post_listing(SECOND.ballot, N5)
    assert desk.finder.silent_and_listed() == [HALL]
    assert desk.write() == N5
    assert desk.finder.silent_and_listed() == [], "it is asked now"


def test_a_member_that_names_the_same_leader_has_it_tried_again() -> None:
    desk = Desk()
    desk.hear()
    desk.write()
    assert desk.finder.corrected(HALL, FIRST, N4, desk.step) == [], "that is who was asked"
    while desk.write() != N5:
        pass
    desk.now_ms += 1.0
    assert [sent.message for sent in desk.finder.corrected(HALL, FIRST, N4, desk.step)][-1] == ASKS
    assert desk.finder.corrected(HALL, FIRST, N4, desk.step) == [], "once"


@pytest.mark.parametrize(
    ("nodes", "periods", "quiet"),
    [(299, 60.0, False), (300, 60.0, True), (4000, 29.9, False), (4000, 30.0, True)],
)
def test_listings_ride_along_only_in_large_meshes_with_long_epochs(
    nodes: int, periods: float, quiet: bool
) -> None:
    assert is_quiet(nodes, periods, OPENING) is quiet
    assert not is_quiet(nodes, periods, Ballot(1, 1)), "elected: the leader before answers nobody"


def test_answers_and_forwarded_messages_do_not_show_silence() -> None:
    desk = Desk()
    desk.hear()
    run = RunId(RoutineId("r"), 1, Stamp(1, OPENING, 1))
    request = LockRequest(run, 1, (DeviceId("lamp"),), 0.0, Strategy.SEQUENTIAL, FIRST, Home(HALL, N7))
    for message in (TELLS, GroupMessage(HALL, GroupId("cellar"), FIRST, 1, request)):
        assert {desk.write(message) for _ in range(4 * UNANSWERED)} == {N4}
    desk.now_ms += RESEND_MS
    assert not desk.is_reached()


def test_an_outdated_denial_is_ignored_after_a_message_of_the_leader() -> None:
    desk = Desk()
    desk.write()
    desk.hear(node=N5)
    nobody = Fence(0, NO_BALLOT)
    assert desk.finder.corrected(HALL, nobody, None, desk.step), "what it was asked goes to the leader"
    assert desk.write() == N5
    desk.finder.corrected(HALL, FIRST, None, desk.step)
    assert desk.write() == N4, "the leader itself serves no more: another member is tried"
