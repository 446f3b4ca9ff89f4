"""Feedstocks with a `meta.yaml` and a `recipe.yaml`, and what importing them gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from feedstock_tools.importing import Imported, import_recipe
from tests.support.pinnings import COMPILERS

PINNING = f"""\
{COMPILERS}cuda_compiler_version:
  - None
  - 12.9         # [linux or win]
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
mpi:
  - nompi
zlib:
  - 1
libsolve:
  - 4
channel_targets:
  - conda-forge main
"""
FORGE = "build_platform:\n  osx_arm64: osx_64\nprovider:\n  linux_aarch64: default\n"
META = """
{% set version = "2.4.1" %}
{% set data_version = "7.0" %}
{% set build = 3 %}
{% if cuda_compiler_version != "None" %}
{% set build = build + 100 %}
{% endif %}
{% set headers = ["axis.h", "grid.h"] + (cuda_compiler_version != "None") * ["gpu.h"] %}
{% set flavour = "cuda" ~ cuda_compiler_version.replace(".", "") if cuda_compiler_version != "None" else "cpu" %}

package:
  name: solver-split
  version: {{ version }}

source:
  - url: https://example.org/solver-{{ version }}.tar.gz
    sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    patches:
      - patches/a.patch
      - patches/b.patch  # [win]
  - url: https://example.org/data-{{ data_version }}.tar.gz
    sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    folder: data

build:
  number: {{ build }}
  skip: true  # [win and cuda_compiler_version != "None"]
  skip: true  # [aarch64 and level == 3]

outputs:
  - name: libsolver
    script: build-lib.sh   # [unix]
    script: build-lib.bat  # [win]
    build:
      string: {{ flavour }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}
      missing_dso_whitelist:
        - "*/libcuda.so*"  # [linux]
      run_exports:
        - {{ pin_subpackage("libsolver", max_pin="x.x") }}
    requirements:
      build:
        - {{ compiler("c") }}
        - {{ stdlib("c") }}
        - {{ compiler("cuda") }}  # [cuda_compiler_version != "None"]
        - level-flags =={{ level }}  # [linux]
        - cmake  # [build_platform != target_platform]
      host:
        # Newer ones
        # work as well.
        - zlib
        {% if cuda_compiler_version != "None" %}
        - cuda-version {{ cuda_compiler_version }}
        - libcublas-dev  # [linux]
        {% endif %}
      run:
        - __cuda  # [cuda_compiler_version != "None"]
      run_constrained:
        - solver-data =={{ data_version }}
    test:
      commands:
        {% for header in headers %}
        - test -f $PREFIX/include/{{ header }}  # [unix]
        {% endfor %}

  # For those who calculate in Python.
  - name: pysolver
    build:
      # It needs the new syntax.
      skip: true  # [py < 312]
      string: py{{ CONDA_PY }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}
      track_features:
        - solver-cpu  # [cuda_compiler_version == "None"]
      entry_points:
        - solve = pysolver:main
      script:
        - {{ PYTHON }} -m pip install .
    requirements:
      build:
        - python                              # [build_platform != target_platform]
        - cross-python_{{ target_platform }}  # [build_platform != target_platform]
      host:
        - python
        - pip
        - {{ pin_subpackage("libsolver", exact=True) }}
      run:
        - python
        - numpy >=2,<3
        - {{ pin_subpackage("libsolver", exact=True) }}
    test:
      requires:
        - pip
      imports:
        - pysolver  # [build_platform == target_platform]
      commands:
        - python -c "print(f'{pysolver}')"

about:
  home: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Solves
  doc_source_url: https://example.org/docs

extra:
  recipe-maintainers:
    - someone
"""
CONFIG = """
level:
  - 1
  - 3  # [linux]
"""
RECIPE = """
context:
  version: "2.4.1"
  build: 3
  flavour: ${{ "cuda" + (cuda_compiler_version | replace(".", "")) if cuda_compiler_version != "None" else "cpu" }}

package:
  name: solver
  version: ${{ version }}

source:
  url: https://example.org/solver-${{ version }}.tar.gz
  sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

build:
  number: ${{ build if cuda_compiler_version == "None" else build + 200 }}
  string: ${{ flavour }}_py${{ python | version_to_buildstring }}h${{ hash }}_${{ build_number }}
  skip:
    - win
    - match(python, "<3.12")
  script:
    - if: unix
      then: |
        cmake -B build
        cmake --install build
  dynamic_linking:
    missing_dso_allowlist:
      - "*/libcuda.so*"

requirements:
  build:
    - ${{ compiler("cxx") }}
    - if: cuda_compiler_version != "None"
      then:
        - ${{ compiler("cuda") }}
    - if: build_platform != target_platform
      then:
        - python
        - cross-python_${{ target_platform }}
  host:
    - python
    - zlib
    - if: cuda_compiler_version != "None"
      then: cuda-version ${{ cuda_compiler_version }}.*
  run:
    - python
    - ${{ pin_compatible("zlib", upper_bound="x.x") }}
  run_exports:
    weak:
      - ${{ pin_subpackage("solver", upper_bound="x.x") }}

tests:
  - python:
      imports: [solver]
      pip_check: true
  - package_contents:
      lib: [solver]

about:
  homepage: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Solves

extra:
  recipe-maintainers: [someone]
"""


def feedstock(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"pinning/conda_build_config.yaml": PINNING, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "solver-feedstock"


#: What importing has given: the files of a feedstock and of its pinning → its result.
_KNOWN: dict[frozenset[tuple[Path, bytes]], Imported] = {}


def imported(feedstock: Path) -> Imported:
    """What importing a feedstock gives, with the pinning beside it; the same files are imported once."""
    top = feedstock.parent
    files = frozenset((path.relative_to(top), path.read_bytes()) for path in top.rglob("*") if path.is_file())
    if files not in _KNOWN:
        _KNOWN[files] = import_recipe(feedstock, pinning=top / "pinning")
    return replace(_KNOWN[files], feedstock=feedstock)
