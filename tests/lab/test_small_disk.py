"""A disk for one node that can be filled."""

import errno
from pathlib import Path

import pytest

from comesh.lab.small_disk import DISK_KB, fill, make_room, small_disk, why_no_small_disk


@pytest.mark.skipif(bool(why_no_small_disk()), reason=why_no_small_disk() or "all is there")
def test_a_small_disk_is_filled_and_has_room_again(tmp_path: Path) -> None:
    where = tmp_path / "disk"
    with small_disk(where):
        assert 0 < fill(where) <= DISK_KB * 1024
        with pytest.raises(OSError, match="No space") as full:
            (where / "more").write_bytes(b"one more")
        assert full.value.errno == errno.ENOSPC
        make_room(where)
        (where / "more").write_bytes(b"one more")
    assert list(where.iterdir()) == [], "it is gone"
