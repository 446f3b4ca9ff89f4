"""A release of conda-smithy of our own writing, and a feedstock that it renders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.smithy_release import write_release
from tests.support.whole_tree import copy_of_demo


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of the release."""
    return write_release(tmp_path / "release")


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """The folder of the feedstock."""
    return copy_of_demo(tmp_path / "demo-feedstock")
