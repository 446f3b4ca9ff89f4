"""A pinning of a few lines, laid out as conda-forge-pinning's own files are."""

from __future__ import annotations

from pathlib import Path

#: The compilers and C libraries of a pinning, and that of CUDA.
COMPILERS = """\
c_compiler:
  - gcc  # [linux]
  - clang  # [osx]
  - vs2022  # [win]
cxx_compiler:
  - gxx  # [linux]
  - clangxx  # [osx]
  - vs2022  # [win]
c_stdlib:
  - sysroot  # [linux]
  - macosx_deployment_target  # [osx]
  - vs  # [win]
cuda_compiler:
  - cuda-nvcc
"""


def write_pinning(folder: Path, config: str, **migrations: str) -> Path:
    """Write `conda_build_config.yaml` and migrations, by their names without `.yaml`, into a new folder; return it."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "conda_build_config.yaml").write_text(config)
    for name, text in migrations.items():
        (folder / "migrations" / f"{name}.yaml").write_text(text)
    return folder
