"""Tests of the lab's flood: it sends as much as it reports, and no more than requested."""

import socket
import subprocess
import sys

import msgspec

from comesh.lab.flooding import FROM, Sent
from comesh.runtime.transport.packets import VERSION, Cookie, Hello, Knock, decode, encode

COMMAND = (sys.executable, "-m", "comesh.lab.flooding", FROM[0])


def test_a_flood_is_bounded_and_peers_continue_with_cookies() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as node:
        node.bind((FROM[0], 0))
        node.settimeout(0.2)
        rates = ("--garbage", "500", "--hellos", "100", "--seconds", "1")
        command = [*COMMAND, str(node.getsockname()[1]), *rates]
        knocks = hellos = others = 0
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
            while True:
                try:
                    datagram, where = node.recvfrom(2048)
                except TimeoutError:
                    if flood.poll() is not None:
                        break
                    continue
                match decode(datagram):
                    case Knock(version, nonce):
                        assert version == VERSION
                        knocks += 1
                        node.sendto(encode(Cookie(nonce, b"c" * 17)), where)
                    case Hello(cookie=cookie) if cookie == b"c" * 17:
                        hellos += 1
                    case _:
                        others += 1
            assert flood.stdout is not None
            sent = msgspec.json.decode(flood.stdout.read(), type=Sent)
    assert 0 < hellos <= knocks <= sent.knocks <= 100
    assert 0 < others <= sent.garbage <= 500


def test_a_flood_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen([*COMMAND, "9", "--seconds", "600"], stdin=subprocess.PIPE) as flood:
        assert flood.stdin is not None
        flood.stdin.close()
        assert flood.wait(timeout=60) == 0
