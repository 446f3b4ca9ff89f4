"""The archives of this checkout, made once in a run by the backend that a release uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.once import made_once
from tests.support.paths import ROOT


def make_archives(folder: Path) -> None:
    """Make a source archive and a wheel in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)


def own_archives(factory: pytest.TempPathFactory) -> Path:
    """The folder with both, to read only."""
    return made_once(factory, "own-archives", make_archives)
