"""Whose a data directory is: a journal holds what one node promised."""

from pathlib import Path

import pytest

from comesh.core.ids import NodeId
from comesh.runtime.documents import DocumentError, claim_data_directory


def test_a_node_does_not_go_on_with_the_directory_of_another(tmp_path: Path) -> None:
    claim_data_directory(tmp_path, NodeId("n1"))
    claim_data_directory(tmp_path, NodeId("n1"))
    with pytest.raises(DocumentError, match="is the data directory of n1, not of n2"):
        claim_data_directory(tmp_path, NodeId("n2"))
