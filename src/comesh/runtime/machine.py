"""Which machine, and which directory on it, a journal belongs to (docs/decisions/0009-moved-journals.md).

A machine is known by facts of its hardware, each kept as a digest: serial numbers (device tree, firmware),
the permanent addresses of its network interfaces, and the id that its system drew when it was installed.
Facts come and go without the machine being another: some can be read by root only, interfaces are plugged
in. So they are compared one by one, the strongest that both sides have decides:

1. a serial number that both have and that differs: another machine; one that is the same: the same machine;
2. else addresses: none in common is another machine;
3. else the id of the installed system.

A directory is known by its inode. Device numbers are compared only within one boot of the kernel: at the next
boot the same disk may get another one. Where the file system has no lasting inodes (FAT), every start
looks like a copy: a data directory does not belong there.
"""

import os
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

MAX_ADDRESSES: Final = 32
"""Of one machine that are kept."""
_MAX_FACT_BYTES: Final = 4096
_SERIALS: Final = {
    "device-tree serial": "proc/device-tree/serial-number",
    "product uuid": "sys/class/dmi/id/product_uuid",
    "product serial": "sys/class/dmi/id/product_serial",
    "board serial": "sys/class/dmi/id/board_serial",
}
_MEANINGLESS: Final = frozenset(
    {"", "0", "none", "default string", "to be filled by o.e.m.", "not specified", "system serial number"}
)
"""What makers write where they have no number."""


class Machine(msgspec.Struct, frozen=True, array_like=True):
    """Hardware and directory; the values are digests."""

    serials: dict[str, str] = {}
    addresses: tuple[str, ...] = ()
    installation: str = ""
    kernel_boot: str = ""
    """In which the device number was seen."""
    device: int = 0
    directory: int = 0
    """Its inode."""

    def why_other(self, now: "Machine") -> str:
        """Why what was written here is not at home where we are now; empty: it is."""
        if self.directory != now.directory:
            return "it was copied from another directory"
        if self.kernel_boot == now.kernel_boot and self.device != now.device:
            return "it was copied from another disk"
        return self._why_other_hardware(now)

    def _why_other_hardware(self, now: "Machine") -> str:
        common = sorted(self.serials.keys() & now.serials.keys())
        for name in common:
            if self.serials[name] != now.serials[name]:
                return f"it was written on another machine ({name})"
        if common:
            return ""
        if self.addresses and now.addresses:
            if set(self.addresses).isdisjoint(now.addresses):
                return "it was written on another machine (network addresses)"
            return ""
        if self.installation and now.installation and self.installation != now.installation:
            return "it was written on another machine (machine-id)"
        return ""


def this_machine(directory: Path, kernel_boot: str, root: Path = Path("/")) -> Machine:
    """root: where the system's files are, other than / in tests only."""
    here = os.stat(directory)
    serials = {name: digest for name, path in _SERIALS.items() if (digest := _digest(_text(root / path)))}
    return Machine(
        serials,
        _addresses(root / "sys/class/net"),
        _digest(_text(root / "etc/machine-id")),
        kernel_boot,
        here.st_dev,
        here.st_ino,
    )


def kernel_boot_id(root: Path = Path("/")) -> str:
    """A new one each time the machine starts. Where the system has none, every start counts as one."""
    return _text(root / "proc/sys/kernel/random/boot_id") or f"unknown {os.urandom(8).hex()}"


def _addresses(interfaces: Path) -> tuple[str, ...]:
    """Of interfaces that are hardware, and whose address was not drawn or set by hand."""
    found: set[str] = set()
    try:
        names = sorted(os.listdir(interfaces))
    except OSError:
        return ()
    for name in names:
        interface = interfaces / name
        if (interface / "device").exists() and _text(interface / "addr_assign_type") in ("", "0"):
            found.add(_digest(_text(interface / "address").lower()))
    return tuple(sorted(found - {""})[:MAX_ADDRESSES])


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FACT_BYTES)
    except OSError:
        return ""
    return data.decode("utf-8", "replace").strip("\x00 \t\r\n")


def _digest(fact: str) -> str:
    if fact.lower() in _MEANINGLESS or not fact.strip("0:-"):
        return ""
    return blake2b(fact.encode(), digest_size=12, person=b"comesh machine").hexdigest()
