"""One mesh of three real nodes for all tests of the HTTP interface that leave it as it was."""

from collections.abc import Iterator

import pytest
from real_mesh import DEVICES, Asked, asked_mesh, wait_for


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked_mesh(tmp_path_factory.mktemp("asked") / "run") as mesh:
        client = mesh.client("n2")

        def all_up() -> bool:
            found = [client.get(f"/api/v1/devices/{device}").json() for device in DEVICES]
            return all("state" in one and one["state"]["status"] == "up" for one in found)

        wait_for(all_up, "all devices are up")
        yield mesh
