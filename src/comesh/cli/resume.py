"""`comesh resume`: lets a paused routine fire again; with --all every one."""

from comesh.cli.asking import asking
from comesh.cli.ordering import Json, Request, order, say
from comesh.cli.pause import All, Routine, check
from comesh.cli.terminal import number
from comesh.core.ids import RoutineId
from comesh.queries.requests import ResumeAll, ResumeRoutine
from comesh.runtime.client import AnyClient


@asking
def resume(
    client: AnyClient,
    routine: Routine = None,
    *,
    everything: All = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Let a paused routine, or all of them, fire again.

    What a routine missed is not made up for: a clause that is already true fires when it next becomes true.
    Exit code 0: the order is committed; 1: it is not, with the reason.
    """
    check(routine, everything=everything)
    if routine is None:
        done = order(client, ResumeAll(request=request))
    else:
        done = order(client, ResumeRoutine(routine=RoutineId(routine), request=request))
    say(done, f"resumed {routine or 'all routines of ' + number(done.groups, 'group')}", json=json)
