"""Made-up matrices for the tests of reports, and a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from feedstock_tools.builds.matrix.matrix import Matrix
from tests.support.browser import Page, opened_browser
from tests.support.matrices import made_up_matrix


@pytest.fixture
def matrix_of(tmp_path: Path) -> Callable[[int], Matrix]:
    """Makes a matrix with a number of configurations, in every state, with logs on disk."""
    return lambda count: made_up_matrix(tmp_path / f"artifacts {count}", count)


@pytest.fixture(scope="session")
def tab() -> Iterator[Page]:
    """The one tab of a browser, which keeps nothing of a page once another is opened."""
    with opened_browser() as page:
        yield page
