"""A compiler for stand-in channels on machines without one."""

from __future__ import annotations

import pytest

from feedstock_tools.builds.stand_in.zig import Zig
from tests.support.compilers import zig_without_compiler


@pytest.fixture(scope="session")
def zig() -> Zig | None:
    """zig where PATH has no compiler for this machine."""
    return zig_without_compiler()
