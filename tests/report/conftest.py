"""Made-up matrices for the tests of reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.builds.matrix.matrix import Matrix
from tests.support.matrices import made_up_matrix


@pytest.fixture
def matrix_of(tmp_path: Path) -> Callable[[int], Matrix]:
    """Makes a matrix with a number of configurations, in every state, with logs on disk."""
    return lambda count: made_up_matrix(tmp_path / f"artifacts {count}", count)
