"""docs/api.md names what there is."""

import re
from pathlib import Path

from real_mesh import Asked

PAGE = (Path(__file__).parent.parent.parent / "docs" / "api.md").read_text()


def test_every_number_is_documented_and_every_documented_number_is_there(asked: Asked) -> None:
    client = asked.client()
    client.get("/api/v1/nodes")
    text = client.get("/metrics").text
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert set(re.findall(r"`(comesh_\w+)`", PAGE)) == told


def test_every_path_is_documented(asked: Asked) -> None:
    for path in asked.client().get("/openapi.json").json()["paths"]:
        shown = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), path).removeprefix("/api/v1")
        assert shown in PAGE, path
