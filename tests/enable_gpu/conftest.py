"""A pinning with CUDA, and feedstocks without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pinnings import COMPILERS, write_pinning

PINNING = f"""\
{COMPILERS}cuda_compiler_version:
  - None
  - 12.9  # [(linux or win64) and os.environ.get("CF_CUDA_ENABLED", "False") == "True"]
python:
  - 3.12.* *_cpython
  - 3.13.* *_cp313
"""
MIGRATION = """\
migrator_ts: 1755016036
__migrator:
  operation: key_add
  primary_key: cuda_compiler_version
  ordering:
    cuda_compiler_version: [12.9, None, "13.0", 11.8]
cuda_compiler_version:
  - VERSION
"""


@pytest.fixture
def pinning(tmp_path: Path) -> Path:
    """The folder of a pinning with CUDA 12.9, and 13.0 in a migration."""
    return write_pinning(tmp_path / "pinning", PINNING, cuda130=MIGRATION.replace("VERSION", "13.0"))


@pytest.fixture
def feedstock(tmp_path: Path) -> Callable[..., Path]:
    """Makes a feedstock of files of its recipe."""

    def make(**files: str) -> Path:
        folder = tmp_path / "demo-feedstock"
        for name, text in files.items():
            path = folder / "recipe" / name.replace("_yaml", ".yaml").replace("_sh", ".sh").replace("_bat", ".bat")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        tool = "conda_build_tool: rattler-build\n" if "recipe_yaml" in files else ""
        (folder / "conda-forge.yml").write_text(f"build_platform: {{linux_aarch64: linux_64}}\n{tool}")
        return folder

    return make
