"""Decides which locks a run needs, in which order it asks for them, and which it gives back.

Rules:
- sequential: in one global order that is the same for all routines, so that no circle of waiting can form.
  With order `cluster` that is (group, device), and one group's locks can be one request (batch `cluster`):
  they enter all queues of that group in one commit. A group that grants them at once passes the request on to
  the next one (`onward`), so that a run does not wait for each answer to come home. With order `device`
  groups interleave, so that a request for several devices could hold a later one while it waits for an
  earlier one: there it is one by one;
- optimistic and priority: all at once. A registered strategy may ask in rounds of its own: the next when
  all of the one before is held (`core/strategies.py`);
- a device whose earlier attempt is not given back yet is not asked for: the newer request could overtake the
  release and renew the very grant that is to be given back.

All are functions of the run's record.
"""

import itertools
from collections.abc import Iterable

from comesh.core.ids import DeviceId, GroupId
from comesh.core.program import ProtocolSettings
from comesh.core.records import RunRecord
from comesh.core.strategies import (
    AtDevices,
    Batch,
    LockOrder,
    Manner,
    Rounds,
    Wanted,
    is_known,
    strategy_of,
)

Batched = tuple[GroupId, tuple[DeviceId, ...]]
"""Devices of one group that are requested together."""


def by_group(run: RunRecord, devices: Iterable[DeviceId]) -> list[Batched]:
    """Returns the devices of the run, sorted, by their groups."""
    found: dict[GroupId, list[DeviceId]] = {}
    for group, device in sorted([(run.groups[device], device) for device in devices]):
        found.setdefault(group, []).append(device)
    return [(group, tuple(members)) for group, members in found.items()]


def holds_all(run: RunRecord) -> bool:
    return run.groups.keys() <= {one.device for one in run.held}


def manner_of(run: RunRecord) -> Manner:
    """Returns how its attempt asks for locks."""
    return strategy_of(run.strategy).manner(run.attempt)


def _one_by_one(manner: Manner, settings: ProtocolSettings) -> bool:
    batched = settings.order is LockOrder.CLUSTER and settings.batch is Batch.CLUSTER
    return manner.at_devices is AtDevices.QUEUE and not batched


def request_name(run: RunRecord, settings: ProtocolSettings, one: Batched) -> str:
    """Returns the name of a request among those of its attempt: a later request has another name."""
    group, devices = one
    manner = manner_of(run)
    if _one_by_one(manner, settings):
        return devices[0]
    return group if manner.rounds is None else f"{group} {_round(run, manner.rounds)[0]}"


def _round(run: RunRecord, rounds: Rounds) -> tuple[int, list[DeviceId]]:
    """Returns the number of the first incomplete round, and the devices it lacks."""
    lacking = dict.fromkeys(run.groups)
    for one in run.held:
        lacking.pop(one.device, None)
    number = -1
    for number, devices in enumerate(rounds([Wanted(*one) for one in run.groups.items()])):
        found = [device for device in dict.fromkeys(devices) if device in lacking]
        if found:
            return number, found
    return number + 1, list(lacking)


def _all_lacking(run: RunRecord) -> list[Batched]:
    held = {one.device for one in run.held}
    return by_group(run, [device for device in run.groups if device not in held])


def _lacking(run: RunRecord, settings: ProtocolSettings) -> list[Batched]:
    """Returns the devices that the run does not hold and may ask for by its strategy."""
    manner = manner_of(run)
    if manner.rounds is not None:
        return by_group(run, _round(run, manner.rounds)[1])
    lacking = _all_lacking(run)
    if manner.at_devices is not AtDevices.QUEUE:
        return lacking
    if not _one_by_one(manner, settings):
        return lacking[:1]
    singly: list[Batched] = [(group, (device,)) for group, devices in lacking for device in devices]
    if settings.order is LockOrder.DEVICE:
        singly.sort(key=lambda one: one[1])
    return singly[:1]


def to_ask(run: RunRecord, settings: ProtocolSettings) -> list[Batched]:
    """Returns the devices that the run asks for now."""
    return [one for one in _lacking(run, settings) if not _is_pending(run, one)]


def onward(run: RunRecord, settings: ProtocolSettings, home: GroupId) -> tuple[Batched, ...]:
    """Returns the requests that follow, which the granting group sends on the run's behalf: up to the run's
    own group, which stages its own grants."""
    manner = manner_of(run)
    if manner.at_devices is not AtDevices.QUEUE or _one_by_one(manner, settings):
        return ()
    lacking = _all_lacking(run)
    if not lacking or lacking[0][0] == home:
        return ()
    return tuple(itertools.takewhile(lambda one: one[0] != home and not _is_pending(run, one), lacking[1:]))


def went_past(run: RunRecord, group: GroupId) -> bool:
    """True if it lacks locks of this group while later ones may be held or requested already, on its behalf
    or by an earlier leader with other settings."""
    if manner_of(run).at_devices is not AtDevices.QUEUE:
        return False
    later = any(other > group for other in run.groups.values())
    return later and any(other == group for other, _ in _all_lacking(run))


def _is_pending(run: RunRecord, one: Batched) -> bool:
    """True if an earlier attempt of one of these devices is not given back yet."""
    pending = {device for device, _, _ in run.to_release}
    return any(device in pending for device in one[1])


def maybe_asked(run: RunRecord, settings: ProtocolSettings) -> list[DeviceId]:
    """Returns all devices that may have been requested in this attempt, by any leader or on its behalf. These
    are all of them where requests are passed on, or for a strategy that this node lacks; else the held ones
    and the next ones."""
    manner = manner_of(run)
    passed_on = manner.at_devices is AtDevices.QUEUE and not _one_by_one(manner, settings)
    if passed_on or not is_known(run.strategy):
        return list(run.groups)
    asked = [one.device for one in run.held]
    return asked + [device for _, devices in _lacking(run, settings) for device in devices]


def released(
    run: RunRecord, devices: Iterable[DeviceId], attempt: int
) -> tuple[tuple[DeviceId, GroupId, int], ...]:
    """Returns to_release with these devices added, up to this attempt; a release frees lower attempts as
    well."""
    pending = {device: (device, group, before) for device, group, before in run.to_release}
    for device in devices:
        pending[device] = (device, run.groups[device], attempt)
    return tuple(pending[device] for device in sorted(pending))


def acknowledged(
    run: RunRecord, devices: Iterable[DeviceId], attempt: int
) -> tuple[tuple[DeviceId, GroupId, int], ...]:
    """Returns to_release without the acknowledged devices."""
    answered = frozenset(devices)
    return tuple(one for one in run.to_release if one[0] not in answered or one[2] > attempt)
