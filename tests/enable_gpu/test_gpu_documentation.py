"""The example of docs/enable-gpu.md is what the command prints."""

from __future__ import annotations

from pathlib import Path

from tests.support import command
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "enable-gpu.md"
RECIPE = """\
{% set version = "1.2" %}

package:
  name: solver
  version: {{ version }}

source:
  url: https://example.org/solver-{{ version }}.tar.gz
  sha256: AAAA

build:
  number: 3

requirements:
  build:
    - {{ compiler('c') }}
    - {{ stdlib('c') }}
    - {{ compiler('cxx') }}
    - cmake
    - ninja
  host:
    - libblas
    - zlib

test:
  commands:
    - test -f $PREFIX/lib/libsolver${SHLIB_EXT}

about:
  home: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Solves

extra:
  recipe-maintainers:
    - somebody
""".replace("AAAA", "a" * 64)
SCRIPT = """\
#!/usr/bin/env bash
set -euo pipefail

cmake ${CMAKE_ARGS} -B build -G Ninja
cmake --build build --target install
"""


def example() -> tuple[list[str], str]:
    """The command of the page, and what it shows."""
    text = PAGE.read_text(encoding="utf-8").partition("```console\n$ feedstock-tools ")[2].partition("```")[0]
    line, _, shown = text.partition("\n")
    return line.split(), shown


def test_the_page_shows_the_diff_that_the_command_prints(tmp_path: Path, pinning: Path) -> None:
    words, shown = example()
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text(RECIPE)
    (tmp_path / "recipe/build.sh").write_text(SCRIPT)
    ended = command.run(command.tool(*words, "--pinning", str(pinning)), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == shown
