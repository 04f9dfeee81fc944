"""How long a reproduction takes on two cores, by what its campaigns say of their cases."""

from comesh.cli.time_left import TimeLeft
from comesh.experiments.catalogue import experiment, names
from comesh.experiments.reproduction import REAL_AT_ONCE
from comesh.experiments.stage import Scale

OF_THE_PAPER = [name for name in names() if name.startswith("P")]
REAL = [name for name in names() if experiment(name).campaign.real]


def minutes(ids: list[str], scale: Scale) -> float:
    left = TimeLeft(2, REAL_AT_ONCE)
    for campaign in {experiment(one).campaign.name: experiment(one).campaign for one in ids}.values():
        for case in campaign.cases(scale):
            left.add(campaign, case)
    return left.seconds / 60


def test_quick_takes_less_than_ten_minutes() -> None:
    assert 2 < minutes(names(), Scale.QUICK) < 10


def test_full_takes_less_than_three_hours_for_simulations_and_twelve_for_real_nodes() -> None:
    assert 30 < minutes([one for one in OF_THE_PAPER if one not in REAL], Scale.FULL) < 180
    assert 60 < minutes(REAL, Scale.FULL) < 720
