"""The stand-in channel of this machine, with a compiler where the machine has none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in.channel import Sources, StandInChannel, ensure_stand_in_channel
from feedstock_tools.builds.stand_in.compilers import Zig
from feedstock_tools.platforms import Platform
from tests.support.compilers import zig_without_compiler
from tests.support.once import of_this_run


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of channels that all workers of a run share; each channel in it is made once, and stays as it is."""
    return of_this_run(tmp_path_factory) / "stand-in-of-these-tests"


@pytest.fixture(scope="session")
def zig() -> Zig | None:
    """zig where PATH has no compiler for this machine."""
    return zig_without_compiler()


@pytest.fixture(scope="session")
def channel(root: Path, zig: Zig | None) -> StandInChannel:
    """The channel for this machine and the running Python."""
    return ensure_stand_in_channel(root, Platform.here(), ["{}.{}".format(*sys.version_info[:2])], Sources(zig=zig))
