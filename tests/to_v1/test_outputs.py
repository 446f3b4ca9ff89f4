"""Recipes with several outputs: what they inherit, and when they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from tests.support.to_v1 import HEAD, content, convert

SPLIT = """\
{% set version = "2.0" %}
package:
  name: demo-split
  version: {{ version }}
source:
  url: https://example.org/demo.tar.gz
  sha256: AAAA
build:
  number: 1
  skip: true  # [win]
requirements:
  build:
    - {{ compiler("c") }}
outputs:
  # the library
  - name: libdemo
    files:
      - lib/libdemo.*
    build:
      run_exports:
        - {{ pin_subpackage("libdemo", max_pin="x") }}
    requirements:
      build:
        - {{ compiler("c") }}
  - name: demo-python
    script: install.sh   # [unix]
    script: install.bat  # [win]
    requirements:
      host:
        - python
        - {{ pin_subpackage("libdemo", exact=True) }}
      run:
        - python
        - {{ pin_subpackage("libdemo", exact=True) }}
    test:
      imports:
        - demo
  - name: demo-cpu   # [cuda_compiler_version == "None"]
  - name: demo-gpu   # [cuda_compiler_version != "None"]
    requirements:
      run:
        - demo-python {{ version }} *
about:
  home: https://example.org
  license: MIT
  summary: Demo
""".replace("AAAA", "c" * 64)


def test_outputs_inherit_what_the_top_level_builds(tmp_path: Path) -> None:
    made = content(tmp_path, SPLIT)
    stage, library, python, meta = made["outputs"]
    assert made["recipe"] == {"name": "demo-split", "version": "${{ version }}"}
    assert made["build"] == {"number": 1, "skip": ["win"]}
    assert stage["staging"] == {"name": "demo-split-build"}
    assert stage["requirements"] == {"build": ['${{ compiler("c") }}']}
    assert library["inherit"] == {"from": "demo-split-build", "run_exports": False}
    assert library["build"]["files"] == ["lib/libdemo.*"]
    [script] = python["build"]["script"]
    assert (script["then"][1], script["else"]) == (
        'bash -e "${RECIPE_DIR}/install.sh"',
        'call "%RECIPE_DIR%\\install.bat"',
    )
    assert "RATTLER_BUILD_PACKAGE_FILES" in script["then"][2]
    assert python["requirements"]["run"][1] == '${{ pin_subpackage("libdemo", exact=true) }}'
    assert python["tests"] == [{"python": {"imports": ["demo"], "pip_check": False}}]
    assert "inherit" not in meta


def test_items_that_begin_in_one_of_two_ways_are_one(tmp_path: Path) -> None:
    *_, last = content(tmp_path, SPLIT)["outputs"]
    assert last["package"]["name"] == 'demo-${{ "cpu" if cuda_compiler_version == "None" else "gpu" }}'


def test_an_output_of_one_variant_is_skipped_in_the_others(tmp_path: Path) -> None:
    meta = SPLIT.replace('  - name: demo-cpu   # [cuda_compiler_version == "None"]\n', "")
    meta = meta.replace("    requirements:\n      run:\n        - demo-python {{ version }} *\n", "")
    *_, last = content(tmp_path, meta)["outputs"]
    assert last["package"]["name"] == "demo-gpu"
    assert last["build"]["skip"] == ["win", 'cuda_compiler_version == "None"']


def test_a_top_level_that_needs_its_outputs_is_an_output_too(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
requirements:
  run:
    - {{ pin_subpackage("libdemo", exact=True) }}
outputs:
  - name: libdemo
test:
  commands:
    - demo
""",
        (),
    )
    assert [output["package"]["name"] for output in made["outputs"]] == ["libdemo", "demo"]
    assert made["outputs"][1]["tests"] == [{"script": ["demo"]}]


def test_a_variable_that_depends_on_python_does_not_multiply_the_other_outputs(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set skips = "a" %}
{% set skips = skips + " or b" %}  # [py==312]
outputs:
  - name: libdemo
    requirements:
      host:
        - zlib
  - name: demo-python
    requirements:
      host:
        - python
      run:
        - python
    test:
      commands:
        - run "{{ skips }}"
""",
        (),
    )
    assert "skips" not in made.get("context", {})


def test_an_output_of_the_top_level_s_name_shares_its_build(tmp_path: Path) -> None:
    above = "requirements:\n  build:\n    - cmake\n"
    library = "  - name: demo\n    requirements:\n      host:\n        - zlib\n"
    meta = f"{HEAD}{above}outputs:\n{library}  - name: demo-extra\n    files:\n      - extra/*\n"
    stage, library, extra = content(tmp_path, meta)["outputs"]
    assert stage["requirements"] == library["requirements"] == {"build": ["cmake"], "host": ["zlib"]}
    assert stage["build"]["script"] == {"env": {"PKG_NAME": "demo", "PKG_VERSION": "${{ version }}"}, "file": "build"}
    assert library["inherit"] == extra["inherit"]
    assert "build" not in library
    assert extra["build"]["files"] == {"include": ["extra/*"], "exclude": ["extra/*/*"]}


def test_a_name_that_only_some_variants_share_with_the_top_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"meta\.yaml:6: cannot be converted: .* only some variants have this output"):
        convert(tmp_path, f"{HEAD}outputs:\n  - name: demo  # [linux]\n    files:\n      - lib\n")
