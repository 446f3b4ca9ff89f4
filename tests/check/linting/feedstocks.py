"""A small GPU feedstock without any finding, in both formats, and what its tests change in it."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.check.linting.lint import lint_feedstock
from feedstock_tools.check.linting.subject import LintFinding

META = """\
{% set version = "1.2" %}
package:
  name: demo-split
  version: "{{ version }}"
build:
  number: 1
outputs:
  - name: libdemo
    script: build.sh
    build:
      string: cuda{{ cuda_compiler_version | replace(".", "") }}_h{{ PKG_HASH }}_1  # [cuda_compiler_version != "None"]
      string: cpu_h{{ PKG_HASH }}_1  # [cuda_compiler_version == "None"]
      run_exports:
        - {{ pin_subpackage("libdemo", max_pin="x.x") }}
    requirements:
      build:
        - {{ compiler("c") }}
        - {{ stdlib("c") }}
      host:
        - zlib
      run:
        - __cuda  # [cuda_compiler_version != "None"]
    test:
      commands:
        - test -f $PREFIX/lib/libdemo.so
  - name: demo-tools
    script: tools.sh
    test:
      commands:
        - demo --help
    requirements:
      build:
        - {{ compiler("c") }}
        - {{ stdlib("c") }}
      host:
        - {{ pin_subpackage("libdemo", exact=True) }}
      run:
        - {{ pin_subpackage("libdemo", exact=True) }}
  - name: demo
    test:
      commands:
        - demo --version
    requirements:
      run:
        - {{ pin_subpackage("libdemo", exact=True) }}
about:
  home: https://example.org/demo
  summary: A demo
  license: MIT
  license_file: LICENSE
extra:
  recipe-maintainers:
    - somebody
"""
V1 = """\
schema_version: 1
context:
  version: "1.2"
recipe:
  name: demo-split
  version: ${{ version }}
build:
  number: 1
outputs:
  - package:
      name: libdemo
    build:
      script: build.sh
      string: ${{ "cuda" if cuda_compiler_version != "None" else "cpu" }}_h${{ hash }}_1
    requirements:
      build:
        - ${{ compiler("c") }}
        - ${{ stdlib("c") }}
      host:
        - zlib
      run:
        - if: cuda_compiler_version != "None"
          then: __cuda
      run_exports:
        - ${{ pin_subpackage("libdemo", upper_bound="x.x") }}
    tests:
      - package_contents:
          lib:
            - demo
  - package:
      name: demo
    tests:
      - script:
          - demo --help
    requirements:
      run:
        - ${{ pin_subpackage("libdemo", exact=True) }}
about:
  homepage: https://example.org/demo
  summary: A demo
  license: MIT
  license_file: LICENSE
extra:
  recipe-maintainers:
    - somebody
"""
JOB = """\
c_compiler:
- gcc
c_compiler_version:
- '14'
c_stdlib:
- sysroot
c_stdlib_version:
- '2.17'
cuda_compiler_version:
- '{cuda}'
target_platform:
- {subdir}
zlib:
- '1'
"""


def feedstock(
    folder: Path,
    recipe: str = META,
    cudas: tuple[str, ...] = ("None", "12.9"),
    subdirs: tuple[str, ...] = ("linux-64",),
) -> Path:
    """Write a feedstock with a job for each CUDA version and platform."""
    is_v1 = "schema_version" in recipe
    (folder / "recipe").mkdir()
    (folder / "recipe" / ("recipe.yaml" if is_v1 else "meta.yaml")).write_text(recipe)
    for name in ("build.sh", "tools.sh", "stubs.sh", "LICENSE"):
        (folder / "recipe" / name).write_text("make install\n")
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n" if is_v1 else "")
    (folder / ".ci_support/migrations").mkdir(parents=True)
    for subdir in subdirs:
        for cuda in cudas:
            name = f"{subdir.replace('-', '_')}_cuda_compiler_version{cuda}"
            (folder / f".ci_support/{name}.yaml").write_text(JOB.format(cuda=cuda, subdir=subdir))
    return folder


def found_in(folder: Path) -> list[LintFinding]:
    """The findings in a feedstock."""
    return list(lint_feedstock(folder).findings)


def line_of(text: str, part: str) -> int:
    """The line of a text that holds a part, from 1."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)
