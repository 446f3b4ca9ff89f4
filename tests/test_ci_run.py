"""`.ci/run` fails when any of its parts does: each part stands in for itself here, and only its exit status counts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.needs import needs
from tests.support.paths import ROOT

#: In place of Python: fails where the words of the call have $FAILING, and takes no time otherwise.
STAND_IN = """\
#!/usr/bin/env bash
case "$*" in *"$FAILING"*) exit 1;; esac
"""
PARTS = ["python -c", "coverage run -m pytest", "ruff check", "ruff format", "mypy", "lint-imports", "coverage report"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the script, and with the stand-in for Python."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(STAND_IN)
    (tmp_path / "bin" / "python3").chmod(0o755)
    return tmp_path


def status(folder: Path, failing: str) -> int:
    variables = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "FAILING": failing}
    return subprocess.run(["bash", str(folder / ".ci" / "run")], env=variables, capture_output=True).returncode


@needs("system", shutil.which("bash"), "bash")
@pytest.mark.parametrize("part", PARTS)
def test_any_part_that_fails_fails_the_whole(folder: Path, part: str) -> None:
    assert status(folder, part) == 1


@needs("system", shutil.which("bash"), "bash")
def test_it_passes_when_all_parts_do(folder: Path) -> None:
    assert status(folder, "nothing of this name") == 0
