"""Messages between nodes and a process of virtual devices: datagrams of a version byte and MessagePack.

What is said in one turn of the event loop to one address shares a datagram: a list of packets, or of answers.

It stands for things outside of the mesh, such as a bulb on a radio: there is no encryption and nobody is
authenticated. Whoever reaches the socket can do what a person in the room could. Listen on loopback, or in a
network that you trust.

client is drawn by each process that asks, number counts its requests: together they tell a request that came
twice from a new one. An answer has both of its request. sequence counts what a device says, answers and
reports alike, within the life of its process: what overtakes is not followed by what was overtaken.
"""

from typing import Annotated, Final

import msgspec

from comesh.core.ids import Counter, DeviceId
from comesh.core.values import Value
from comesh.drivers.virtual.devices import Acted, Pressed, Reply, Request
from comesh.drivers.virtual.misbehaviour import Misbehaviour

VERSION: Final = 1
MAX_BYTES: Final = 60_000
"""Maximum size of one part of a datagram; a longer one is not sent."""

Finite = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """A read or a command."""

    request: Request
    life: str = ""
    """The life of the device process, and the least its clock shows: see `ages.py`."""
    at_ms: Finite = 0.0


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    life: str
    """The life of the device, as in a report."""
    sequence: Counter
    reply: Reply


class Listen(msgspec.Struct, frozen=True, array_like=True, tag="listen"):
    """Subscribes the sender to the device's reports, until it stops renewing."""

    device: DeviceId


class Report(msgspec.Struct, frozen=True, array_like=True, tag="report"):
    device: DeviceId
    life: str
    sequence: Counter
    readings: dict[str, Value]
    token: str | None = None


class Acknowledge(msgspec.Struct, frozen=True, array_like=True, tag="acknowledge"):
    device: DeviceId
    token: str


class SetMisbehaviour(msgspec.Struct, frozen=True, array_like=True, tag="misbehave"):
    device: DeviceId
    how: Misbehaviour


class Press(msgspec.Struct, frozen=True, array_like=True, tag="press"):
    device: DeviceId
    values: dict[str, Value] = {}


class SetReading(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    device: DeviceId
    reading: str
    value: Value


class TellReadings(msgspec.Struct, frozen=True, array_like=True, tag="readings"):
    """Asks for the true readings, whatever the device answers to nodes."""

    device: DeviceId


class TellLog(msgspec.Struct, frozen=True, array_like=True, tag="log"):
    """Asks for the log, starting at the entry with this number."""

    first: Counter


class TellCounters(msgspec.Struct, frozen=True, array_like=True, tag="counters"):
    pass


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    readings: dict[str, Value] = {}
    token: str | None = None
    counters: dict[str, int] = {}


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    why: str


class LogPage(msgspec.Struct, frozen=True, array_like=True, tag="page"):
    """Log entries from that number on, each [which, entry]; further ones begin at next; there are end in
    all."""

    first: Counter
    acted: tuple[tuple[int, Acted], ...]
    pressed: tuple[tuple[int, Pressed], ...]
    next: Counter
    end: Counter


ToDevices = (
    Ask | Listen | Acknowledge | SetMisbehaviour | Press | SetReading | TellReadings | TellLog | TellCounters
)
FromDevices = Answer | Report | Done | Refused | LogPage


class Packet(msgspec.Struct, frozen=True, array_like=True):
    client: Counter
    number: Counter
    body: ToDevices


class Back(msgspec.Struct, frozen=True, array_like=True):
    client: Counter
    number: Counter
    body: FromDevices
    life: str
    """The life of the device process, and what its clock shows."""
    now_ms: Finite


class PacketError(Exception):
    """A datagram that is no valid message."""


_encode = msgspec.msgpack.Encoder().encode
_decode_packets = msgspec.msgpack.Decoder(list[Packet]).decode
_decode_backs = msgspec.msgpack.Decoder(list[Back]).decode
_VERSION_BYTE: Final = bytes([VERSION])


def encode(packet: Packet | Back) -> bytes:
    """Returns one part of a datagram."""
    return _encode(packet)


def join(parts: list[bytes]) -> bytes:
    """Returns the datagram with these parts."""
    return _VERSION_BYTE + _encode([msgspec.Raw(part) for part in parts])


def decode_packets(data: bytes) -> list[Packet]:
    _check(data)
    try:
        return _decode_packets(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise PacketError("not a request of ours") from wrong


def decode_backs(data: bytes) -> list[Back]:
    _check(data)
    try:
        return _decode_backs(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise PacketError("not an answer of ours") from wrong


def _check(data: bytes) -> None:
    if data[:1] != _VERSION_BYTE:
        raise PacketError("another version" if data else "empty")


def split_address(address: str) -> tuple[str, int]:
    """Split "host:port" or "[host]:port". ValueError says what is wrong."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{address!r} is no address; write host:port, such as 127.0.0.1:7500")
    return host.removeprefix("[").removesuffix("]"), int(port)


def show_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
