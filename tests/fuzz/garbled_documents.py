"""Deployment documents with something wrong: small ones, so that many can be tried."""

import random
import re
from typing import Final

from mutating import changed_bytes

from comesh.deployment.load import load_bytes

PARTS: Final = (
    b"name: x\n",
    b"settings: {f: 0}\n",
    b"settings: {f: 1, epoch: 60s, lease: 1s, locks: {batch: none}, selection: {lsh: {m: 2}}}\n",
    b"nodes: {a: {place: [0m, 0m]}}\n",
    b"nodes:\n  a: {place: [0m, 0m], address: 'h:1'}\n  b: &b {place: [1m, 0m], power_domain: x}\n  c: *b\n",
    b"devices: {l: {place: [1m, 1m], readings: {on: bool}, commands: {go: null}}}\n",
    b"devices:\n  l:\n    on: a\n    readings: {n: {type: int, range: [0, 9]}, m: [x, y]}\n"
    b"    commands: {set: {argument: bool, sets: n, takes: 5ms}}\n"
    b"    driver: {type: mqtt, topic: !secret t}\n",
    b"routines: {r: {when: 'l.on && l.n > 3', for: 5s, do: [{device: l, command: go}]}}\n",
    b"routines:\n  r: {at: ['07:30', sunset], days: [mon],\n"
    b"    do: [{device: l, command: set, argument: true}]}\n",
    b"routines: {r: {cron: '* * * * *', do: []}, s: {every: 5s}}\n",
)
WHOLE: Final = (
    b"settings: {f: 0}\nnodes: {a: {place: [0m, 0m]}}\n",
    b"settings: {f: 0}\nnodes: {a: {place: [0m, 0m]}}\n"
    b"devices: {l: {on: a, readings: {on: bool}, commands: {go: null}}}\n"
    b"routines: {r: {when: l.on, do: [{device: l, command: go}]}}\n",
)
"""Nothing is wrong with these."""
WORDS: Final = (
    *(b"\n", b": ", b"- ", b"*b", b"&b ", b"!secret ", b"<<: *b", b"\t", b"{", b"}", b"[", b"]", b"'", b'"'),
    *(b"\xff", b"\xef\xbb\xbf", b"%YAML 1.1\n", b"? ", b"|\n", b">\n", b"---\n", b"...\n", b"#", b"\0"),
    *(b"1e999", b".nan", b"-.inf", b"0x7f", b"null", b"~", b"9" * 30, b"{" * 40, b"[" * 40, b"a: " * 20),
    *(b"settings", b"nodes", b"devices", b"routines", b"when", b"do", b"l.on", b"(" * 30, b"!" * 30, b"&& "),
)
_WORD: Final = re.compile(rb"\w+|\W")
_OTHERS: Final = sorted({one for part in (*PARTS, *WHOLE) for one in _WORD.findall(part) if one.isalnum()})
SMALL_BYTES: Final = 90
"""Most documents have less: reading takes time by its length."""


def make_document(chance: random.Random) -> bytes:
    way = chance.random()
    if way < 0.1:
        return b"".join(chance.choices(WORDS, k=chance.randrange(1, 9)))
    if way < 0.15:
        return chance.randbytes(chance.randrange(40))
    if way < 0.35:
        return _other_words(chance.choice(WHOLE), chance)
    parts = chance.sample(PARTS, k=chance.choice((1, 1, 1, 1, 2, 3)))
    found = b"".join(parts)
    if len(found) > SMALL_BYTES and chance.random() < 0.8:
        begin = chance.randrange(len(found) - SMALL_BYTES)
        found = found[begin : begin + SMALL_BYTES]
    if chance.random() < 0.5:
        at = chance.randrange(len(found) + 1)
        found = found[:at] + chance.choice(WORDS) + found[at:]
        if chance.random() < 0.5:
            return found
    return _text(changed_bytes(found, chance, chance.choice(PARTS)), chance)


def _other_words(data: bytes, chance: random.Random) -> bytes:
    """A word or two are others."""
    words = _WORD.findall(data)
    places = [at for at, word in enumerate(words) if word.isalnum()]
    for _ in range(chance.choice((0, 1, 1, 2))):
        words[chance.choice(places)] = chance.choice(_OTHERS)
    return b"".join(words)


def _text(data: bytes, chance: random.Random) -> bytes:
    """Mostly text again, so that it is not refused for that alone."""
    if chance.random() < 0.1:
        return data
    return bytes(one if one in b"\n\t" or 32 <= one < 127 else 33 + one % 94 for one in data)


def take_document(data: bytes) -> str:
    outcome = load_bytes(data)
    assert (outcome.deployment is None) == bool(outcome.errors)
    for problem in outcome.problems:
        assert problem.what
        assert str(problem).isprintable()
        assert str(problem).encode()
        assert problem.line >= 0
        assert problem.column >= 0
    if outcome.could_not_read:
        return "refused: not a text"
    if outcome.stopped_early:
        return "refused: not YAML"
    return "taken" if outcome.deployment is not None else "refused: with problems"
