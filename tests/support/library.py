"""The folder for the examples in docs/library.md and in the library's docstrings."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.git import committed
from tests.support.paths import ROOT
from tests.support.smithy_release import write_release

_PINNING = """\
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
_CPU_RECIPE = """\
package:
  name: demo
  version: "1.2"
build:
  number: 3
requirements:
  build:
    - {{ compiler('c') }}
    - {{ compiler('cxx') }}
"""
_NO_PACKAGES = '{"packages": {}, "packages.conda": {}}'


def make_library_folder(folder: Path) -> None:
    """Make feedstocks with and without CUDA, a clone, a spec, a pinning, a channel without packages, a conda-smithy."""
    shutil.copytree(ROOT / "tests" / "rerender" / "solver-feedstock", folder / "solver-feedstock")
    shutil.copytree(ROOT / "tests" / "rerender" / "solver-feedstock", folder / "clone")
    script = folder / "solver-feedstock" / "recipe" / "build.sh"
    script.write_text("cmake ${CMAKE_ARGS} -DSOLVER_CUDA=ON .\n", encoding="utf-8")
    committed(folder / "clone")
    write_release(folder / "smithy")
    tour = (ROOT / "docs" / "five-minutes.md").read_text(encoding="utf-8")
    spec = tour[tour.index("```yaml\nname: hello\n") + len("```yaml\n") :].partition("```")[0]
    for path, text in (
        ("hello/feedstock.yaml", spec),
        ("cpu-feedstock/recipe/meta.yaml", _CPU_RECIPE),
        ("pinning/conda_build_config.yaml", _PINNING),
        ("empty-channel/noarch/repodata.json", _NO_PACKAGES),
        ("smithy/info/index.json", '{"name": "conda-smithy", "version": "2026.8.5"}'),
    ):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text, encoding="utf-8")
    (folder / "hello/src").mkdir()
