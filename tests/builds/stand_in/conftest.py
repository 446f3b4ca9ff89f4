"""zig for machines without a compiler, fetched once for whoever runs the tests and not into each test's own cache."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in.limits import lacking_compiler
from feedstock_tools.builds.stand_in.zig import Zig, fetch_zig, zig_folder
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform

#: Of the user who runs the tests; read before a test's own cache takes its place.
CACHE = user_cache(os.environ, Path(tempfile.gettempdir(), "feedstock-tools"))


@pytest.fixture(scope="session")
def zig() -> Zig | None:
    """zig where PATH has no compiler for this machine, which is where the stand-in channel needs it."""
    return fetch_zig(zig_folder(CACHE), os.environ) if lacking_compiler(Platform.here()) else None
