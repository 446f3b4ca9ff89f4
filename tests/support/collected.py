"""The files that a run has collected tests from, before any test is deselected."""

from __future__ import annotations

import pytest

#: Paths from the top of the checkout, with slashes.
COLLECTED = pytest.StashKey[set[str]]()
