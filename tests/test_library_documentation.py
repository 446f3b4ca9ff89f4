"""The library as docs/library.md tells of it: its examples, run as they stand, and what importing it brings along."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from feedstock_tools import api
from tests.support.paths import ROOT

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


def test_importing_the_library_brings_in_nothing_that_solves_or_builds() -> None:
    code = "import sys, feedstock_tools.api; print([name for name in sys.modules if name.startswith(%r)])"
    rooms = ("rattler", "yaml", "pydantic", "networkx", "feedstock_tools.builds", "feedstock_tools.channel")

    shown = subprocess.run([sys.executable, "-c", code % (rooms,)], capture_output=True, text=True, check=True)

    assert shown.stdout == "[]\n"


def test_every_name_of_the_library_is_there() -> None:
    assert {name for name in api.__all__ if getattr(api, name, None) is None} == set()
    assert set(api.__all__) <= set(dir(api))


def test_a_name_that_the_library_lacks_is_said() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'rerendr'"):
        getattr(api, "rerendr")  # noqa: B009 - mypy would complain of it


def test_every_name_and_its_attributes_are_documented() -> None:
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    tables = text[text.index("## All names") :]
    assert {name for name in api.__all__ if f"`{name}`" not in tables and f"`{name}(" not in tables} == set()
    for name in sorted(set(api.__all__) - {"Rules"}):  # the rules themselves are for the program alone
        value = getattr(api, name)
        attributes = [field.name for field in fields(value)] if is_dataclass(value) else []
        (row,) = re.findall(rf"^\| [^|]*`{name}[`(].*$", tables, re.MULTILINE)
        assert [each for each in attributes if f"`{each}`" not in row and f"`{each}:" not in row] == []
