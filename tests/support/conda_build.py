"""A conda-build that someone has made: FEEDSTOCK_TOOLS_TEST_CONDA_BUILD=/path/to/bin/conda-build.

docs/engines.md describes how to make one from source with packages from PyPI.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.needs import needs

_PROGRAM = os.environ.get("FEEDSTOCK_TOOLS_TEST_CONDA_BUILD", "")
NEEDS_CONDA_BUILD = needs("fetched", _PROGRAM, "a conda-build that FEEDSTOCK_TOOLS_TEST_CONDA_BUILD names")


def path_with_conda_build(folder: Path) -> str:
    """The search path, and before it a folder, which is made, with conda-build and nothing else of its installation."""
    folder.mkdir(exist_ok=True)
    (folder / "conda-build").symlink_to(_PROGRAM)
    return f"{folder}:{os.environ['PATH']}"
