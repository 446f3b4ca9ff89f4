"""The examples of docs/library.md, run as they stand."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNING = """\
cxx_compiler:
  - gxx               # [linux]
  - clangxx           # [osx]
  - vs2022            # [win]
cuda_compiler:
  - cuda-nvcc
cuda_compiler_version:
  - None
  - 12.9              # [linux]
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
zlib:
  - 1
channel_targets:
  - conda-forge main
"""


def test_the_examples_give_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "tests" / "rerender" / "solver-feedstock", tmp_path / "solver-feedstock")
    (tmp_path / "pinning").mkdir()
    (tmp_path / "pinning" / "conda_build_config.yaml").write_text(PINNING)
    monkeypatch.chdir(tmp_path)

    shown = doctest.testfile(str(ROOT / "docs" / "library.md"), module_relative=False, encoding="utf-8")

    assert shown.attempted > 10
    assert not shown.failed
