"""Tests of event devices: events are kept, sent to the last subscriber, repeated, and in order."""

import pytest
from toys import TICK, Toys, line

from comesh.core.effects import AcknowledgeEvent, Effect, SetTimer, Subscribe
from comesh.core.events import DeviceReported, Started, TimerFired
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.core.values import Value
from comesh.drivers.virtual.devices import EVENTS_KEPT, DeviceSpec
from comesh.drivers.virtual.misbehaviour import FINE, Misbehaviour
from comesh.drivers.virtual.sources import Constant
from comesh.sim.radio import RadioSettings
from comesh.sim.world_settings import WorldSettings

D0 = DeviceId("d0")
BUTTON = DeviceSpec(sources={"press": Constant("short")}, event=True)
LONG: dict[str, Value] = {"press": "long"}


class Subscriber:
    """Subscribes at a time, and then again and again."""

    def __init__(self, *, acks: bool = True, at_ms: float = 0.0, every_ms: float = 1e9) -> None:
        self._acks = acks
        self._at_ms = at_ms
        self._every_ms = every_ms

    def __call__(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(TICK, self._at_ms)]
            case TimerFired():
                return [Subscribe(D0), SetTimer(TICK, self._every_ms)]
            case DeviceReported() if self._acks and event.token is not None:
                return [AcknowledgeEvent(D0, event.token)]
            case _:
                return []


def toys_with(*, loss: float = 0.0, spec: DeviceSpec = BUTTON, **scripts: Subscriber) -> Toys:
    """n0 - n1 - d0 on a line."""
    settings = WorldSettings(start_spread_ms=0.0, radio=RadioSettings(loss_per_message=loss))
    return Toys(line(2, devices=1), dict(scripts), settings=settings, devices={D0: spec})


def heard(toys: Toys, node: str) -> list[tuple[float, str | None]]:
    life = toys[node]
    return [(round(at_ms), event.token) for at_ms, event in life.seen if isinstance(event, DeviceReported)]


def test_an_event_is_not_repeated_once_it_is_acknowledged() -> None:
    toys = toys_with(n0=Subscriber())
    world = toys.world
    world.run_until(100.0)
    world.devices[D0].press(LONG)
    world.devices[D0].press({})
    world.run_until(5000.0)
    reports = toys["n0"].given(DeviceReported)
    assert [(report.readings, report.token) for report in reports] == [
        (LONG, "00000001"),
        ({"press": "short"}, "00000002"),
    ]
    assert heard(toys, "n0") == [(120, "00000001"), (160, "00000002")], "there, back, and there again"
    assert [(event.token, event.values, event.dropped) for event in world.devices.events] == [
        ("00000001", LONG, False),
        ("00000002", {"press": "short"}, False),
    ]
    assert world.devices[D0].next_event is None
    traffic = world.traffic
    sent = {kind: traffic.total(kind=kind).sent.messages for kind in traffic.kinds}
    assert (sent["Subscribe"], sent["DeviceReported"], sent["AcknowledgeEvent"]) == (1, 2, 2)


def test_an_unacknowledged_event_is_repeated_and_delays_the_next() -> None:
    toys = toys_with(n0=Subscriber(acks=False))
    world = toys.world
    world.run_until(100.0)
    world.devices[D0].press({})
    world.devices[D0].press({})
    world.run_until(3500.0)
    assert heard(toys, "n0") == [(at, "00000001") for at in (120, 1120, 2120, 3120)]


def test_only_the_last_subscriber_gets_events() -> None:
    toys = toys_with(n0=Subscriber(acks=False, at_ms=2000.0), n1=Subscriber(acks=False, at_ms=3500.0))
    toys.world.run_until(100.0)
    toys.world.devices[D0].press({})
    toys.world.run_until(5000.0)
    assert [at for at, _ in heard(toys, "n0")] == [2040, 3040]
    assert [at for at, _ in heard(toys, "n1")] == [3520, 4520]


def test_events_survive_loss_a_dead_subscriber_and_a_device_that_is_down() -> None:
    toys = toys_with(loss=0.4, n0=Subscriber(), n1=Subscriber(at_ms=1.0, every_ms=5000.0))
    world = toys.world
    world.run_until(10.0)
    world.kill(world.machines["n1"])
    for number in range(10):
        world.engine.at(1000.0 * number, 1, world.devices[D0].press, {"press": number})
    world.engine.at(3000.0, 0, world.devices[D0].set_misbehaviour, Misbehaviour(silent=True))
    world.engine.at(6000.0, 0, world.devices[D0].set_misbehaviour, FINE)
    world.engine.at(15_000.0, 0, world.start, world.machines["n1"])
    world.run_until(90_000.0)
    told = [report.readings["press"] for node in ("n0", "n1") for report in toys[node].given(DeviceReported)]
    assert sorted(set(map(int, told))) == list(range(10))
    tokens = [report.token or "" for report in toys["n1"].given(DeviceReported)]
    assert tokens == sorted(tokens), "in order, and tokens rise"
    assert not any(3000 < at < 6000 for at, _ in heard(toys, "n0") + heard(toys, "n1"))


def test_kept_events_are_bounded() -> None:
    toys = toys_with()
    for _ in range(EVENTS_KEPT + 2):
        toys.world.devices[D0].press({})
    assert [event.dropped for event in toys.world.devices.events] == [False] * EVENTS_KEPT + [True] * 2


def test_only_event_devices_have_events() -> None:
    toys = toys_with(spec=DeviceSpec())
    with pytest.raises(ValueError, match="d0 is no event device"):
        toys.world.devices[D0].press({})


def test_some_have_events_by_themselves_from_the_seed() -> None:
    lively = DeviceSpec(sources={"press": Constant("short")}, event=True, presses_ms=(1000.0, 3000.0))

    def pressed(seed: int) -> list[float]:
        toys = Toys(line(1, devices=1), {}, seed=seed, devices={D0: lively})
        toys.world.run_until(100_000.0)
        return [event.at_ms for event in toys.world.devices.events]

    times = pressed(1)
    gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    assert all(1000 <= gap <= 3000 for gap in gaps)
    assert 33 <= len(times) <= 100
    assert times == pressed(1) != pressed(2)


def test_a_subscription_to_an_unknown_device_is_ignored() -> None:
    gone = DeviceId("d9")

    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        return [Subscribe(gone), AcknowledgeEvent(gone, "1")] if isinstance(event, Started) else []

    toys = Toys(line(1, devices=1), {"n0": script})
    toys.world.run_until(1000.0)
    assert len(toys["n0"].seen) == 1
