"""Tests that decoding any bytes ends in a value or in the documented error."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from comesh.core.actions import Action, Origin
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.stamps import OPENING, RunId, Stamp
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual import wire
from comesh.drivers.virtual.devices import Request
from comesh.drivers.virtual.misbehaviour import Misbehaviour
from comesh.runtime.devices.frames import FIRST_BYTE, DeviceCall, DeviceReply, FrameError, decode, encode

LAMP = DeviceId("lamp")
ORIGIN = Origin(RunId(RoutineId("dusk"), 1, Stamp(1, OPENING, 1)), 1, 2, Stamp(1, OPENING, 3))
COMMAND = DeviceCommand(Action("set", True, expects={"on": True}), ORIGIN, NodeId("n1"), 1.0)
DATAGRAM = wire.join(
    [
        wire.encode(wire.Packet(1, 1, wire.Ask(Request(LAMP, 1, COMMAND)))),
        wire.encode(
            wire.Packet(1, 2, wire.SetMisbehaviour(LAMP, Misbehaviour(slow_ms=3.0, wrong={"on": "?"})))
        ),
    ]
)
FRAME = encode(DeviceCall(LAMP, "life", 1, "host", 5.0, COMMAND))


def changed(good: bytes) -> st.SearchStrategy[bytes]:
    """Anything, and what is good but for one place."""
    places = st.integers(0, len(good) - 1)
    one_byte = st.builds(lambda at, to: good[:at] + bytes([to]) + good[at + 1 :], places, st.integers(0, 255))
    return st.one_of(st.binary(max_size=200), st.binary().map(lambda tail: good[:1] + tail), one_byte)


@settings(max_examples=400)
@given(changed(DATAGRAM))
def test_datagrams_of_devices(data: bytes) -> None:
    for read in (wire.decode_packets, wire.decode_backs):
        with suppress(wire.PacketError):
            read(data)


@settings(max_examples=400)
@given(changed(FRAME))
def test_frames_between_nodes(data: bytes) -> None:
    with suppress(FrameError):
        decode(data)


def test_messages_survive_encoding_and_decoding() -> None:
    assert [packet.number for packet in wire.decode_packets(DATAGRAM)] == [1, 2]
    reply = DeviceReply(LAMP, "life", 1, "host", 2.0, 3, {"on": True}, None)
    assert decode(encode(reply)) == reply
    assert encode(reply)[0] == FIRST_BYTE
