"""Messages between nodes about devices that are part of a node: a first byte and MessagePack, carried by the
node transport, which authenticates the sender.

life is drawn by each process. call counts within the life of who asks, so that a call that comes twice is
known; sequence counts what a device says within the life of who hosts it, so that what overtakes is not
followed by what was overtaken.

The asker checks its lease right before it sends, and waits for as long as the action may take: the host does
not begin a command later than that after it came, nor one that was on its way for too long
(`drivers/ages.py`). And the device refuses a lower grant than it has seen.
"""

from typing import Annotated, Final

import msgspec

from comesh.core.ids import Counter, DeviceId
from comesh.core.values import Value
from comesh.drivers.interface import DeviceCommand

FIRST_BYTE: Final = 0xD1
"""Marks a frame about devices, and its version: the next version is 0xD2."""
MAX_CHARACTERS: Final = 100_000
"""Maximum length of a text in a frame."""

Call = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Life = Annotated[str, msgspec.Meta(max_length=64)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS)]
Finite = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]


class DeviceCall(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A read or, if it has one, a command."""

    device: DeviceId
    life: Life
    call: Call
    host_life: Life = ""
    """The life of the host, and the least its clock shows: see `drivers/ages.py`."""
    host_ms: Finite = 0.0
    command: DeviceCommand | None = None


class DeviceReply(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The answer of a device, with the life and number of the call."""

    device: DeviceId
    life: Life
    call: Call
    host_life: Life
    host_ms: Finite
    sequence: Counter
    readings: dict[str, Value]
    error: Text | None = None


class DeviceSubscribe(msgspec.Struct, frozen=True, array_like=True, tag=3):
    device: DeviceId


class DeviceReport(msgspec.Struct, frozen=True, array_like=True, tag=4):
    device: DeviceId
    host_life: Life
    host_ms: Finite
    sequence: Counter
    readings: dict[str, Value]
    token: Text | None = None


class DeviceAcknowledge(msgspec.Struct, frozen=True, array_like=True, tag=5):
    device: DeviceId
    token: Text


Frame = DeviceCall | DeviceReply | DeviceSubscribe | DeviceReport | DeviceAcknowledge


class FrameError(Exception):
    """A frame that cannot be read; str() gives the reason in a few words."""


_FIRST_BYTE: Final = bytes([FIRST_BYTE])
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    return _FIRST_BYTE + _encode(frame)


def decode(data: bytes) -> Frame:
    if data[:1] != _FIRST_BYTE:
        raise FrameError("another version of device frames" if data else "an empty device frame")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise FrameError("a device frame that cannot be read") from wrong
