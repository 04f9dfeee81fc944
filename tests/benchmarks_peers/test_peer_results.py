"""Results of the peers: percentiles, ratios, what is said when a peer is missing. No peer is started here."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import peers  # noqa: PLC0415 -- found only with the path above

    return peers


def test_percentiles_are_by_nearest_rank(peers: ModuleType) -> None:
    made = peers.results.result("pairs", "ms", [float(one) for one in range(100, 0, -1)], 4.0)
    assert (made.count, made.p50, made.p90, made.p99, made.per_second) == (100, 50.0, 90.0, 99.0, 25.0)
    assert peers.results.result("one", "s", [3.0]).p99 == 3.0
    with pytest.raises(ValueError, match="nothing was measured"):
        peers.results.result("none", "s", [])


def test_ratios_are_above_one_where_ours_is_better(peers: ModuleType) -> None:
    ours = peers.Result("ours", "ms", 10, 1.0, 2.0, 3.0, 4000.0)
    theirs = peers.Result("theirs", "ms", 10, 2.5, 2.6, 2.7, 2000.0)
    assert peers.ratio(ours, theirs) == 2.5
    assert peers.rate_ratio(ours, theirs) == 2.0
    slow = peers.Result("slow", "s", 1, 4.0, 4.0, 4.0)
    with pytest.raises(ValueError, match="ours is in ms, slow in s"):
        peers.ratio(ours, slow)
    with pytest.raises(ValueError, match="has no rate"):
        peers.rate_ratio(ours, slow)
    assert [line.split()[-1] for line in peers.table([ours, slow])] == ["second", "4000", "s"]


def test_what_is_missing_is_said_and_fails(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers.stage.os, "geteuid", lambda: 1000)

    def measure(effort: object) -> Iterator[object]:
        peers.stage.install("some-package", "a-program-that-no-machine-has")
        yield effort

    from peers import __main__ as command  # noqa: PLC0415 -- found only with the path of the fixture

    monkeypatch.setitem(peers.MEASURES, "serf", measure)
    monkeypatch.setattr(command.sys, "argv", ["peers", "--json", "serf"])
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert command.main() == 1
    assert (
        "a-program-that-no-machine-has is missing; as root on Debian: apt-get install"
        in capsys.readouterr().out
    )


def test_an_answer_of_the_gateway_is_read_when_it_is_whole(peers: ModuleType) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    assert peers.etcd.split_answer(whole) == b"{}"
    assert all(peers.etcd.split_answer(whole[:size]) is None for size in range(len(whole)))
    with pytest.raises(peers.MissingError, match="500 Internal"):
        peers.etcd.split_answer(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
