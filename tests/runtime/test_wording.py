"""Texts of the core as people read them."""

import pytest

from comesh.runtime.wording import in_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hall_motion.active=True, door.open=False", "hall_motion.active=true, door.open=false"),
        ("true for 5 s: door.open=None", "true for 5 s: door.open=unknown"),
        ("a.on=True; cooldown for 0.561453 s more", "a.on=true; cooldown for 0.6 s more"),
        ("x; cooldown for 61.4 s more", "x; cooldown for 61 s more"),
        ("step 0: lamp switch True", "step 0: lamp switch true"),
        ("set lamp: switch False", "set lamp: switch false"),
        ("attempt 1, 1 steps", "attempt 1, 1 step"),
        ("attempt 1, 11 steps", "attempt 1, 11 steps"),
        ("step 0: sign say It is True", "step 0: sign say It is True"),
        ("event 1 of sign: text=True love", "event 1 of sign: text=True love"),
    ],
)
def test_values_and_numbers_are_told_as_people_write_them(text: str, words: str) -> None:
    assert in_words(text) == words
