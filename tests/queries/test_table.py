"""The table of requests: orders once per id, time, rights, and errors that say what happened."""

import asyncio
from typing import Any

import pytest
from small_mesh import ANN, NAMES, SmallMesh, SmallView

from comesh.queries import table
from comesh.queries.answers import (
    ERRORS,
    ConflictError,
    Done,
    ForbiddenError,
    InternalError,
    MalformedError,
    QueryError,
    RefusedError,
    TooSlowError,
    UnansweredError,
    UnavailableError,
    UnknownNameError,
    raised,
)
from comesh.queries.mesh import QUERY_HANDLERS, Asker, Mesh
from comesh.queries.requests import (
    FireRoutine,
    ListNames,
    ListNodes,
    PauseAll,
    PauseRoutine,
    Query,
    ResumeRoutine,
    SetDevice,
    ShowDevice,
)
from comesh.queries.table import Table

PAUSE = PauseRoutine(routine="light", request="mine")


async def given(view: SmallView, count: int) -> None:
    async with asyncio.timeout(10.0):
        while len(view.given) < count:
            await asyncio.sleep(0)


def alone() -> tuple[Table, SmallView]:
    small = SmallMesh()
    return small.table(), small.views[NAMES[0]]


def test_an_equal_order_with_an_open_id_joins_it_and_another_one_is_refused() -> None:
    desk, view = alone()

    async def story() -> None:
        both = [asyncio.ensure_future(desk.answer(PAUSE, ANN)) for _ in range(2)]
        await given(view, 1)
        with pytest.raises(ConflictError) as other:
            await desk.answer(ResumeRoutine(routine="light", request="mine"), ANN)
        assert (other.value.status, other.value.request) == (409, "mine")
        view.say("mine")
        assert await asyncio.gather(*both) == [Done(request="mine")] * 2
        assert len(view.given) == 1, "the group is asked once"
        again = asyncio.ensure_future(desk.answer(PAUSE, ANN))
        await given(view, 2)
        view.say("mine", "paused already")
        with pytest.raises(RefusedError, match="paused already"):
            await again

    asyncio.run(story())


def test_an_order_has_its_id_before_anything_happens_and_errors_say_it() -> None:
    desk, view = alone()

    async def story() -> None:
        ordered = asyncio.ensure_future(desk.answer(PauseRoutine(routine="light"), ANN))
        await given(view, 1)
        (event,) = view.given
        assert (event.request, event.by) == ("n1.1.o1", "ann (token)")
        view.say(event.request, "no")
        with pytest.raises(RefusedError) as wrong:
            await ordered
        assert wrong.value.as_error().request == "n1.1.o1"
        with pytest.raises(UnknownNameError) as unknown:
            await desk.answer(PauseRoutine(routine="lihgt"), ANN)
        assert unknown.value.as_error().request == "n1.1.o2"
        assert unknown.value.did_you_mean == "light"

    asyncio.run(story())


@pytest.mark.parametrize("request_id", ["", "x" * 129, "a\nb", "a\n", "ä", "\x7f"])
def test_ids_are_printable_and_bounded(request_id: str) -> None:
    desk, view = alone()
    with pytest.raises(MalformedError, match="1 to 128 printable ASCII characters"):
        asyncio.run(desk.answer(PauseRoutine(routine="light", request=request_id), ANN))
    assert view.given == []


def test_an_order_goes_on_when_its_asker_leaves() -> None:
    desk, view = alone()

    async def story() -> None:
        leaves = asyncio.ensure_future(desk.answer(PAUSE, ANN))
        await given(view, 1)
        leaves.cancel()
        stays = asyncio.ensure_future(desk.answer(PAUSE, ANN))
        await asyncio.sleep(0)
        view.say("mine")
        assert await stays == Done(request="mine")
        assert len(view.given) == 1

    asyncio.run(story())


def test_an_order_to_all_groups_has_an_id_for_each() -> None:
    desk, view = alone()

    async def story() -> None:
        ordered = asyncio.ensure_future(desk.answer(PauseAll(request="stop"), ANN))
        groups = [group for group in view.program.plan.genesis if group != "deployment"]
        await given(view, len(groups))
        assert sorted(one.request for one in view.given) == sorted(f"stop/{group}" for group in groups)
        for group in groups:
            view.say(f"stop/{group}", f"{group} will not")
        with pytest.raises(RefusedError) as wrong:
            await ordered
        assert wrong.value.problems == tuple(f"{group}: {group} will not" for group in sorted(groups))
        assert wrong.value.request == "stop"

    asyncio.run(story())


def test_what_has_no_answer_in_time_may_still_be_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comesh.queries.mesh.ORDER_WAIT_S", 0.01)
    desk, _ = alone()
    with pytest.raises(UnansweredError, match="ask again with the request id f-1") as wrong:
        asyncio.run(desk.answer(FireRoutine(routine="light", request="f-1"), ANN))
    assert (wrong.value.status, wrong.value.request) == (503, "f-1")


def test_open_orders_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_OPEN_ORDERS", 1)
    desk, view = alone()

    async def story() -> None:
        first = asyncio.ensure_future(desk.answer(PAUSE, ANN))
        await given(view, 1)
        with pytest.raises(UnavailableError):
            await desk.answer(PauseRoutine(routine="light", request="another"), ANN)
        view.say("mine")
        await first

    asyncio.run(story())


def test_who_may_only_look_gives_no_orders() -> None:
    desk, view = alone()
    looks = Asker(by="eve (token)")
    with pytest.raises(ForbiddenError, match="eve is a viewer, and this needs an operator"):
        asyncio.run(desk.answer(PAUSE, looks))
    assert view.given == []
    assert asyncio.run(desk.answer(ListNames(kind="device"), looks)) == ("lamp",)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (SetDevice(device="lamp", command="set", argument="blue"), "lamp set takes"),
        (SetDevice(device="lamp", command="sett"), "did you mean 'set'"),
        (SetDevice(device="lmap", command="set"), "did you mean 'lamp'"),
    ],
)
def test_what_the_document_does_not_have_is_refused(order: SetDevice, says: str) -> None:
    desk, _ = alone()
    with pytest.raises(QueryError, match=says):
        asyncio.run(desk.answer(order, ANN))


def test_a_handler_that_takes_too_long_or_breaks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, view = alone()

    async def never(query: Query[Any], mesh: Mesh) -> object:
        return await asyncio.Event().wait()

    async def breaks(query: Query[Any], mesh: Mesh) -> object:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(ShowDevice, "within_s", 0.01)
    monkeypatch.setitem(QUERY_HANDLERS, ShowDevice, never)
    monkeypatch.setitem(QUERY_HANDLERS, ListNodes, breaks)
    with pytest.raises(TooSlowError, match="no answer within"):
        asyncio.run(desk.answer(ShowDevice(device="lamp"), ANN))
    with pytest.raises(InternalError, match="please report it"):
        asyncio.run(desk.answer(ListNodes(), ANN))
    assert "ZeroDivisionError: by nothing" in view.errors[0]


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_an_error_is_the_same_on_both_sides_of_an_adapter(kind: str) -> None:
    wrong = ERRORS[kind]("what happened", did_you_mean="lamp", request="a", problems=("one",))
    again = raised(wrong.as_error())
    assert (type(again), again.as_error()) == (type(wrong), wrong.as_error())
    assert 400 <= wrong.status < 600
    assert wrong.exit_code in (1, 2)


def test_every_error_has_its_kind() -> None:
    declared = {one for one in QueryError.__subclasses__() if one.__module__ == QueryError.__module__}
    assert set(ERRORS.values()) == declared
