"""Tests of worlds in which devices push changed readings to the nodes that read them."""

from toys import TICK, Toys, line

from comesh.core.effects import Effect, ReadDevice, SetTimer
from comesh.core.events import DeviceAnswered, DeviceReported, Started, TimerFired
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.drivers.virtual.devices import LOOK_MS, DeviceSpec
from comesh.drivers.virtual.sources import Constant, RandomWalk, Script, SquareWave, next_change_ms
from comesh.sim.world_settings import WorldSettings

D0 = DeviceId("d0")
DOOR = DeviceSpec(sources={"open": Script(((0.0, False), (2500.0, True), (2600.0, True), (4200.0, False)))})
BUTTON = DeviceSpec(sources={"press": SquareWave(period_ms=1000.0)}, event=True)


class Reader:
    """Reads d0 from at_ms on, every second."""

    def __init__(self, at_ms: float = 0.0) -> None:
        self._at_ms = at_ms

    def __call__(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(TICK, self._at_ms)]
            case TimerFired():
                return [ReadDevice(D0, int(now_ms)), SetTimer(TICK, 1000.0)]
            case _:
                return []


def toys_with(*, push: bool, spec: DeviceSpec = DOOR, **readers: Reader) -> Toys:
    """n0 - n1 - d0 on a line."""
    settings = WorldSettings(start_spread_ms=0.0, push=push)
    return Toys(line(2, devices=1), dict(readers), settings=settings, devices={D0: spec})


def reports(toys: Toys, node: str) -> list[tuple[float, object]]:
    seen = toys[node].seen
    return [
        (round(at_ms), one.readings.get("open")) for at_ms, one in seen if isinstance(one, DeviceReported)
    ]


def test_a_change_is_pushed_at_once_and_once() -> None:
    toys = toys_with(push=True, n0=Reader())
    toys.world.run_until(6000.0)
    first = (20 + LOOK_MS + 20, False)
    assert reports(toys, "n0") == [first, (2520, True), (4220, False)], "two hops later; not what stays"
    assert all(one.token is None for one in toys["n0"].given(DeviceReported))


def test_without_push_readings_are_only_read() -> None:
    toys = toys_with(push=False, n0=Reader())
    toys.world.run_until(6000.0)
    assert reports(toys, "n0") == []
    assert toys.world.traffic.total(kind="Subscribe").sent.messages == 0
    assert len(toys["n0"].given(DeviceAnswered)) == 6


def test_the_last_node_to_begin_reading_gets_pushes() -> None:
    toys = toys_with(push=True, n0=Reader(), n1=Reader(at_ms=3000.0))
    toys.world.run_until(4900.0)
    assert reports(toys, "n0") == [(240, False), (2520, True)]
    assert reports(toys, "n1") == [(4210, False)]


def test_a_subscription_is_renewed_every_five_seconds() -> None:
    toys = toys_with(push=True, n0=Reader())
    toys.world.run_until(10_500.0)
    assert toys.world.traffic.total(kind="Subscribe").sent.messages == 3


def test_a_device_that_is_down_pushes_nothing_until_it_is_up() -> None:
    toys = toys_with(push=True, n0=Reader())
    world = toys.world
    world.run_until(2000.0)
    world.devices[D0].misbehave(silent=True)
    world.run_until(3000.0)
    world.devices[D0].misbehave(silent=False)
    world.run_until(6000.0)
    told = [(240, False), (3020, True), (4220, False)]
    assert reports(toys, "n0") == told, "what changed meanwhile it tells once it is back"


def test_event_devices_push_events_only() -> None:
    toys = toys_with(push=True, spec=BUTTON, n0=Reader())
    toys.world.run_until(6000.0)
    assert toys["n0"].given(DeviceReported) == []


def test_sources_know_when_they_may_change() -> None:
    assert next_change_ms(Constant(1), 0.0) is None
    assert next_change_ms(SquareWave(period_ms=100.0), 0.0) == 50.0
    assert next_change_ms(SquareWave(period_ms=100.0), 50.0) == 100.0
    assert next_change_ms(RandomWalk(every_ms=1000.0), 1500.0) == 2000.0
    script = Script(((10.0, 1), (20.0, 2)))
    assert [next_change_ms(script, at_ms) for at_ms in (0.0, 10.0, 15.0, 20.0)] == [10.0, 20.0, 20.0, None]


def test_the_next_change_is_later_than_now_despite_rounding() -> None:
    wave = SquareWave(period_ms=0.7)
    at_ms = 0.0
    for _ in range(10_000):
        then_ms = next_change_ms(wave, at_ms)
        assert then_ms is not None and then_ms > at_ms
        at_ms = then_ms
