"""`comesh up` follows a changed document: nodes are started, devices are there, who leaves may."""

from pathlib import Path

from real_processes import SMALL, Running, comesh, wait_for

FOURTH = "  n4: {place: [3m, 0m], power_domain: d}\ndevices:\n  bell: {place: [3m, 1m], <<: *lamp}\n"


def test_a_changed_document_is_followed_and_gone_on_with(tmp_path: Path) -> None:
    document, data = tmp_path / "small.yaml", tmp_path / "run"
    document.write_text(SMALL)
    with Running(tmp_path / "output", "up", document, "--data", data, "--quiet", "--no-api") as running:
        running.wait_until_it_says("ready after")
        document.write_text(SMALL.replace("devices:\n", FOURTH))
        applied = comesh("apply", document, "--virtual", "--yes", "--now", "--no-wait", "--data", data)
        assert applied.code == 0, applied
        running.wait_until_it_says("n4 is new: it is started")
        running.wait_until_it_says("virtual devices are started anew")
        assert comesh("status", "--wait", "60", "--data", data).code == 0
        wait_for(lambda: "3 devices, all up" in comesh("status", "--data", data).stdout, "the bell is there")
    with Running(tmp_path / "again", "up", document, "--data", data, "--quiet", "--no-api") as running:
        running.wait_until_it_says("starting 4 nodes")
        running.wait_until_it_says("ready after")
        left = comesh("leave", "n4", "--yes", "--data", data)
        assert left.code == 0, left
        running.wait_until_it_says("n4 leaves")
        wait_for(lambda: comesh("status", "--data", data).code == 0, "all is well without it")
        assert "ended by itself" not in running.said()
        assert "is no longer used" not in running.said(), "it is the document that the mesh goes by"
    with Running(tmp_path / "once more", "up", document, "--data", data, "--quiet", "--no-api") as running:
        running.wait_until_it_says("starting 3 nodes")
        assert f"the mesh goes by version 3 of its document: {document} is no longer used" in running.said()
