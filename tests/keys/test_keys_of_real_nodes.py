"""Keys of nodes that run: revoked, rotated, replaced, lost; machines that join. One mesh, in this order."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_keys import Keyed, keyed_mesh, wait_for
from real_processes import Running, comesh

from comesh.runtime.credentials import fingerprint, read_certificate
from comesh.runtime.running import REVOKED

ALL = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with keyed_mesh(tmp_path_factory.mktemp("keyed") / "run", *ALL) as running:
        yield running


def test_a_node_takes_new_keys_without_a_restart(mesh: Keyed) -> None:
    pid = mesh.pid("n2")
    mesh.command("rotate", "n2")
    mesh.copy("n2")
    wait_for(lambda: "new keys of this node are used" in mesh.said("n2"), "n2 takes its new keys")
    mesh.kill("n1")  # so that there is a handshake with the new certificate
    mesh.begin_node("n1")
    wait_for(lambda: all(mesh.sees(node, *ALL) for node in ALL), "all see all")
    mesh.fires("n2")
    assert mesh.pid("n2") == pid
    assert mesh.runs("n2")


def test_a_revoked_node_is_out_and_the_mesh_goes_on(mesh: Keyed) -> None:
    """Only n1 is given the list; the others, also the revoked one, come to know of it by themselves."""
    mesh.copy("n3", to="stolen")
    mesh.command("revoke", "n3")
    mesh.copy("n1", "revoked.crl")
    wait_for(lambda: not mesh.runs("n3"), "n3 ends")
    assert mesh.exit_code("n3") == REVOKED
    assert "the certificate of this node is revoked" in mesh.said("n3")
    wait_for((mesh.data_of("n2") / "revoked.crl").is_file, "n2 has the list")
    for node in ("n1", "n2"):
        wait_for(lambda node=node: mesh.sees(node, "n1", "n2"), f"{node} sees who is left")
        mesh.fires(node)


def test_what_was_revoked_stays_so_over_a_restart(mesh: Keyed) -> None:
    mesh.kill("n2")
    (mesh.machine("n2") / "revoked.crl").unlink(missing_ok=True)
    mesh.begin_node("n2")
    wait_for(lambda: mesh.sees("n2", "n1", "n2"), "n2 is back")
    mesh.kill("n3")
    (mesh.data_of("n3") / "revoked.crl").unlink()
    mesh.begin_node("n3")  # knows of nothing, until others refuse it
    wait_for(lambda: not mesh.runs("n3"), "n3 ends again")
    assert mesh.exit_code("n3") == REVOKED
    said = [what for node in ("n1", "n2") for what in mesh.mesh_status(node).nodes[node].trouble]
    assert any(what.startswith("n3 shows a revoked certificate") for what in said), said
    mesh.kill("n3")
    mesh.begin_node("n3")  # it knows by now
    wait_for(lambda: not mesh.runs("n3"), "n3 does not begin")
    assert mesh.exit_code("n3") == REVOKED


def test_another_machine_takes_the_name(mesh: Keyed) -> None:
    mesh.kill("n3")
    mesh.command("node", "n3", "--force")
    mesh.copy("n3")
    shutil.rmtree(mesh.data_of("n3"))
    mesh.begin_node("n3")
    wait_for(lambda: all(mesh.sees(node, *ALL) for node in ALL), "n3 is back, with new keys")
    port = {"listen": (("127.0.0.1", 0),)}
    stolen = mesh.directory / "nodes" / "n3-stolen"
    mesh.start("n3", process="stolen", keys=mesh.machine("stolen"), data=stolen, api=None, **port)
    wait_for(lambda: not mesh.runs("stolen"), "the stolen one ends")
    assert mesh.exit_code("stolen") == REVOKED
    assert mesh.runs("n3")
    assert all(mesh.sees(node, *ALL) for node in ("n1", "n2"))
    mesh.fires("n1")


def test_a_bundle_makes_a_machine_a_node(
    mesh: Keyed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = mesh.directory / "deployment.yaml"
    mesh.command("bundle", "n4", "--document", str(document), "-o", str(tmp_path / "n4.bundle"))
    assert (tmp_path / "n4.bundle").stat().st_mode & 0o777 == 0o600
    monkeypatch.chdir(tmp_path)
    joined = comesh("join", "n4.bundle")
    assert joined.code == 0, joined.stderr
    assert "comesh node deployment.yaml --name n4 --data comesh-data --keys keys" in joined.stdout
    assert (tmp_path / "keys" / "revoked.crl").is_file()
    assert (tmp_path / "deployment.yaml").read_bytes() == document.read_bytes()
    mesh.begin_node("n4", keys=tmp_path / "keys", document=tmp_path / "deployment.yaml")
    wait_for(lambda: all(mesh.sees(node, *ALL, "n4") for node in ALL[:2]), "n4 is in")
    mesh.terminate("n4")


def test_a_token_makes_a_machine_a_node_once(
    mesh: Keyed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = next(at for name, at in mesh.api_at.items() if name == "n2")
    monkeypatch.setenv("COMESH_TOKEN", mesh.operator)
    at = f"http://{host}:{port}"
    token = mesh.command(
        "invite", "n4", "--at", at, "--document", str(mesh.directory / "deployment.yaml")
    ).strip()
    monkeypatch.delenv("COMESH_TOKEN")
    monkeypatch.chdir(tmp_path)
    waiting = list((mesh.data_of("n2") / "invitations").iterdir())
    assert len(waiting) == 1
    assert b"PRIVATE KEY" not in waiting[0].read_bytes()
    with Running(
        tmp_path / "log",
        "join",
        token,
        "--at",
        at,
        "--data",
        mesh.data_of("n4"),
        "--keys",
        tmp_path / "keys",
    ) as joining:
        joining.wait_until_it_says("this machine is n4")
    mesh.begin_node("n4", keys=tmp_path / "keys", document=tmp_path / "deployment.yaml")
    wait_for(lambda: all(mesh.sees(node, *ALL, "n4") for node in ALL[:2]), "n4 is in")
    again = comesh("join", token, "--at", at, "--keys", tmp_path / "other")
    assert again.code == 2
    assert "refuses (403)" in again.stderr
    mesh.terminate("n4")


def replace_the_authority(mesh: Keyed) -> None:
    """As `comesh keys rotate --authority` says; the mesh serves after each step."""
    former = fingerprint(read_certificate(mesh.keys / "authority.crt", ""))
    mesh.command("rotate", "--authority")
    for node in ALL:
        mesh.copy(node, "authority.crt")
    for node in ALL:
        wait_for(
            lambda node=node: _notes(mesh, node),
            f"{node} says that its certificate is of the former authority",
        )
    mesh.fires("n1")
    mesh.command("rotate", "--all")
    for node in ALL:
        mesh.copy(node)
    for node in ALL:
        wait_for(lambda node=node: not _notes(mesh, node), f"{node} has a new certificate")
    mesh.fires("n2")
    mesh.command("rotate", "--authority", "--finish")
    before = {node: mesh.said(node).count("certificates of 1 authority count now") for node in ALL}
    for node in ALL:
        mesh.copy(node, "authority.crt")
    for node in ALL:
        wait_for(
            lambda node=node: mesh.said(node).count("certificates of 1 authority count now") > before[node],
            f"{node} trusts the new authority only",
        )
    assert fingerprint(read_certificate(mesh.keys / "authority.crt", "")) != former
    mesh.kill("n1")
    mesh.begin_node("n1")
    wait_for(lambda: all(mesh.sees(node, *ALL) for node in ("n1", "n2")), "all see all")
    mesh.fires("n1")


def _notes(mesh: Keyed, node: str) -> bool:
    status = mesh.status(node)
    return status is None or any("of the former authority" in what for what in status.trouble)


def test_the_authority_is_rotated_while_the_mesh_goes_on(mesh: Keyed) -> None:
    replace_the_authority(mesh)


def test_the_key_of_the_authority_is_lost(mesh: Keyed) -> None:
    os.unlink(mesh.keys / "authority.key")
    mesh.fires("n1")
    replace_the_authority(mesh)
