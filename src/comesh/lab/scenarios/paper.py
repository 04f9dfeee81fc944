"""The paper's eleven nodes, in its grid and on its line, with links that lose."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from comesh.core.ids import GroupId
from comesh.lab.namespaces import Namespaces, what_is_missing
from comesh.lab.proxy import Link
from comesh.lab.proxy_thread import ProxyThread
from comesh.lab.scenarios.documents import paper_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.lab.shapes import Shape, links_of, paper_places

LOSS: Final = 0.02
"""Per link and direction; over ten hops and back a third of what is asked is lost."""
EPOCHS: Final = 3
ROUTES_S: Final = 60.0


def the_papers_grid(stage: Stage) -> None:
    """Eleven nodes in the paper's grid, over links that lose: routines fire, epochs pass, conflicts
    serialize."""
    _live(stage, Shape.GRID)


def the_papers_line(stage: Stage) -> None:
    """Runs the paper's workload on the paper's line, where messages take up to ten hops."""
    _live(stage, Shape.LINE)


def _live(stage: Stage, shape: Shape) -> None:
    text = paper_rooms(shape, stage.seed)
    with _links(stage, shape) as links, stage.mesh(text, links=links) as play:
        _lose(play, LOSS)
        routines = sorted(play.program.group_of_routine)
        began = dict.fromkeys(play.program.plan.genesis, 0)
        for _, group, _, epoch in play.watch.look().leads:
            began[group] = max(began[group], epoch)
        play.goes_on(*routines, more=3)
        play.until(f"{EPOCHS} epochs passed in every group", lambda: _passed(play, began), bound_s=120.0)
        play.goes_on(*routines, more=2)
        finished = sum(how == "finished" for how in play.watch.look().ended.values())
        play.must(f"{finished} runs finished, {len(play.watch.ended) - finished} did not", finished > 0)
        play.figure("finished", finished)
        play.figure("not finished", len(play.watch.ended) - finished)
        _lose(play, 0.0)


def _passed(play: Play, began: dict[GroupId, int]) -> bool:
    newest = dict(began)
    for _, group, _, epoch in play.watch.look().leads:
        newest[group] = max(newest[group], epoch)
    return all(newest[group] >= epoch + EPOCHS for group, epoch in began.items())


@contextmanager
def _links(stage: Stage, shape: Shape) -> Iterator[Namespaces | ProxyThread]:
    """Hops and routes where that is possible; else a relay that loses as much on each way."""
    why_not = what_is_missing()
    if why_not:
        stage.say(f"over a relay on loopback: {why_not}")
        yield ProxyThread(seed=stage.seed)
        return
    places = paper_places(shape, stage.seed)
    with Namespaces(sorted(places), links_of(places)) as namespaces:
        stage.say(f"routes after {namespaces.wait_for_routes(bound_s=ROUTES_S):.1f} s")
        yield namespaces


def _lose(play: Play, loss: float) -> None:
    links = play.mesh.links
    if isinstance(links, Namespaces):
        links.set_all_loss(loss)
    elif links is not None:
        links.proxy.set_all(Link(loss=loss, delay_ms=2.0, jitter_ms=2.0))
    play.say(f"links lose {loss:.0%}")
