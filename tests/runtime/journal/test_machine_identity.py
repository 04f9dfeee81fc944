"""Which machine a journal belongs to: facts that come and go do not make another machine of it."""

from pathlib import Path

import pytest

from comesh.runtime.machine import Machine, kernel_boot_id, this_machine

HOME = Machine({"product uuid": "u1", "board serial": "s1"}, ("a1", "a2"), "i1", "boot 1", 5, 77)


def home(**changed: object) -> Machine:
    fields = {name: getattr(HOME, name) for name in HOME.__struct_fields__}
    return Machine(**{**fields, **changed})


@pytest.mark.parametrize(
    "now",
    [
        HOME,
        home(serials={}),
        home(serials={"product uuid": "u1"}),
        home(addresses=()),
        home(addresses=("a9",), serials={"board serial": "s1"}),
        home(serials={}, addresses=("a2", "a3"), installation="i2"),
        home(serials={}, addresses=(), installation=""),
        home(kernel_boot="boot 2", device=9),
    ],
    ids=[
        "all the same",
        "serials that only root can read",
        "one of them",
        "no interface",
        "other interfaces",
        "one more, and a new system",
        "nothing is known",
        "another device number after a restart",
    ],
)
def test_the_same_machine(now: Machine) -> None:
    assert HOME.why_other(now) == ""
    assert now.why_other(HOME) == ""


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (home(directory=78), "another directory"),
        (home(device=6), "another disk"),
        (home(serials={"product uuid": "u2", "board serial": "s1"}), "product uuid"),
        (home(serials={}, addresses=("a3",)), "network addresses"),
        (home(serials={}, addresses=(), installation="i2"), "machine-id"),
    ],
)
def test_another_machine(now: Machine, why: str) -> None:
    assert why in HOME.why_other(now)
    assert why in now.why_other(HOME)


def system(root: Path) -> None:
    """The files of a small computer."""
    for path, content in {
        "proc/device-tree/serial-number": "10000000abcdef01\x00",
        "sys/class/dmi/id/product_serial": "To Be Filled By O.E.M.\n",
        "sys/class/dmi/id/board_serial": "0000\n",
        "etc/machine-id": "0123456789abcdef\n",
        "proc/sys/kernel/random/boot_id": "b-1\n",
        "sys/class/net/eth0/address": "DC:A6:32:01:02:03\n",
        "sys/class/net/eth0/addr_assign_type": "0\n",
        "sys/class/net/eth0/device/vendor": "",
        "sys/class/net/wlan0/address": "02:00:00:00:00:01\n",
        "sys/class/net/wlan0/addr_assign_type": "1\n",
        "sys/class/net/wlan0/device/vendor": "",
        "sys/class/net/lo/address": "00:00:00:00:00:00\n",
        "sys/class/net/veth1/address": "de:ad:be:ef:00:01\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def test_facts_are_read_and_not_kept_in_the_clear(tmp_path: Path) -> None:
    system(tmp_path)
    machine = this_machine(tmp_path, "b-1", tmp_path)
    assert set(machine.serials) == {"device-tree serial"}
    assert len(machine.addresses) == 1, "hardware, with its own address"
    assert "abcdef01" not in repr(machine)
    assert machine.directory == tmp_path.stat().st_ino
    assert kernel_boot_id(tmp_path) == "b-1"


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    machine = this_machine(tmp_path, "b-1", tmp_path)
    assert (machine.serials, machine.addresses, machine.installation) == ({}, (), "")
    assert kernel_boot_id(tmp_path) != kernel_boot_id(tmp_path), "every start may be another boot"
