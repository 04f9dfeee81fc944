"""docs/availability.md: its code runs, and gives what the page says of the same mesh."""

import contextlib
import io
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "availability.md").read_text()


def test_the_code_gives_what_the_page_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/availability.md", "exec"), {"__name__": "example"})
    chance, most = printed.getvalue().split()
    assert 0.5 < float(chance) < 0.9, "between what the page says of 17 and of 24 failures"
    assert f"at least 99% up to F = {most} " in PAGE
