"""Converted recipes as conda-smithy loads and lints them, and as a maintainer would write them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from feedstock_tools.recipe.v1.loading import load_without_variants
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import compare_recipes
from tests.support.to_v1 import HEAD, convert

LOADABLE = {
    "a key that is split": (
        "build:\n  string: py{{ python.split('.')[0] }}_h{{ PKG_HASH }}_0\n"
        "requirements: {host: [python], run: [python]}\n",
        'string: py${{ (python | default("None") | split("."))[0] }}_h${{ hash }}_0',
    ),
    "a key that is sliced": (
        "build:\n  string: cu{{ cuda_compiler_version[:2] }}_h{{ PKG_HASH }}_0\n",
        'string: cu${{ (cuda_compiler_version | default("None"))[:2] }}_h${{ hash }}_0',
    ),
    "a part of the version": (
        "{% set major = version.split('.')[0] %}\n{% set kind = 'a' if major in '01' else 'b' %}\n"
        "requirements: {run: ['lib{{ kind }}{{ major }}']}\n",
        """major: '${{ (version | split("."))[0] }}'""",
    ),
    "a list of the parts": (
        "{% set parts = version.split('.') %}\n{% set kind = cuda_compiler_version[:2] %}\n"
        "requirements: {run: ['{{ kind }}{{ parts[1:] | join('.') }}', '{{ kind }}{{ parts[0] }}']}\n",
        """parts: ${{ version | split(".") }}""",
    ),
}


@pytest.mark.parametrize(("text", "line"), LOADABLE.values(), ids=LOADABLE.keys())
def test_conda_smithy_can_load_what_is_written(tmp_path: Path, text: str, line: str) -> None:
    made = convert(tmp_path, HEAD + text)
    assert line in made.text
    assert load_without_variants(made.text, tmp_path / "recipe.yaml")["package"]["name"] == "demo"
    assert compare_recipes(tmp_path, made.text, read_configurations(tmp_path)) == ()


def test_comments_stay_at_their_lines_and_a_license_at_the_start(tmp_path: Path) -> None:
    license_ = "# Copyright\n#\n# Some rights reserved.\n"
    made = convert(
        tmp_path,
        license_
        + HEAD
        + """\
outputs:
  - name: demo-python
    # of Python
    version: "1.2"
    build:
      # of the driver
      ignore_run_exports:
        - zlib
    files:
      # of the library
      include:
        - lib/*.so
    test:
      imports:  # more of them to come
        - demo
""",
    )
    assert made.text.startswith(f"{license_}\nschema_version: 1\n")
    lines = [line.strip() for line in made.text.splitlines()]
    after = {line: lines[at + 1] for at, line in enumerate(lines) if line.startswith("# ")}
    assert after["# of Python"] == 'version: "1.2"'
    assert after["# of the driver"] == "by_name:"
    assert after["# of the library"] == "include:"
    assert after["# more of them to come"] == "imports:"


def test_conditions_do_not_stand_in_conditions_and_are_not_asked_twice(tmp_path: Path) -> None:
    text = """\
requirements:
  build:
    {% if cuda_compiler_version != "None" %}
    - make   # [linux]
    - cmake
    {% endif %}
test:
  commands:
    {% for name in ["a", "b"] %}
    - test -f {{ name }}{{ ".so" if unix else ".dll" }}      # [unix]
    - if not exist {{ name }}{{ ".so" if unix else ".dll" }} exit 1  # [win]
    {% endfor %}
"""
    made = convert(tmp_path, HEAD + text)
    assert (
        """\
    - if: cuda_compiler_version != "None" and linux
      then: make
    - if: cuda_compiler_version != "None"
      then: cmake
"""
        in made.text
    )
    assert (
        """\
      - if: unix
        then:
          - test -f a.so
          - test -f b.so
        else:
          - if not exist a.dll exit 1
          - if not exist b.dll exit 1
"""
        in made.text
    )


def test_items_of_conditions_that_exclude_each_other_stand_together(tmp_path: Path) -> None:
    lines = [
        "a  # [cuda_compiler_version == '12.9']",
        "b  # [cuda_compiler_version == 'None']",
        "c  # [cuda_compiler_version == '12.9']",
        "d",
        "e  # [cuda_compiler_version == 'None']",
    ]
    text = "requirements:\n  host:\n" + "".join(f"    - {line}\n" for line in lines)
    host = yaml.safe_load(convert(tmp_path, HEAD + text).text)["requirements"]["host"]
    cuda, cpu = (f'cuda_compiler_version == "{value}"' for value in ("12.9", "None"))
    assert host == [{"if": cuda, "then": ["a", "c"]}, {"if": cpu, "then": "b"}, "d", {"if": cpu, "then": "e"}]


def test_what_no_platform_of_a_noarch_package_requires_is_left_out(tmp_path: Path) -> None:
    text = "build:\n  noarch: generic\nrequirements:\n  build:\n    - zip   # [win]\n    - make  # [not win]\n"
    text += "    - cross-r-base  # [build_platform != target_platform]\n"
    made = convert(tmp_path, HEAD + text)
    assert "  build:\n    - make\n" in made.text
    assert [(note.line, note.reason) for note in made.notes] == [
        (9, "no platform that builds this noarch package requires 'zip'"),
        (11, "no platform that builds this noarch package requires 'cross-r-base'"),
    ]


def test_a_noarch_output_without_python_is_named_as_conda_build_names_it(tmp_path: Path) -> None:
    made = convert(tmp_path, HEAD + "build:\n  noarch: python\nrequirements: {run: [zlib]}\n")
    assert compare_recipes(tmp_path, made.text, read_configurations(tmp_path)) == ()


def test_a_script_that_some_variants_lack_runs_under_its_condition(tmp_path: Path) -> None:
    text = 'outputs:\n  - name: a\n    script: a.sh  # [cuda_compiler_version != "None"]\n'
    made = convert(tmp_path, HEAD + text, ("a.sh",))
    assert (
        """\
        - if: cuda_compiler_version != "None" and unix
          then: bash -e "${RECIPE_DIR}/a.sh"
"""
        in made.text
    )


@pytest.mark.parametrize(
    ("written", "spdx"),
    [("LGPL-2.1", "LGPL-2.1-only"), ("GPL-3.0+", "GPL-3.0-or-later"), ("MIT or Apache-2.0", "MIT OR Apache-2.0")],
)
def test_licenses_are_written_as_spdx_has_them(tmp_path: Path, written: str, spdx: str) -> None:
    made = convert(tmp_path, HEAD + f"about:\n  license: {written}\n")
    assert f"license: {spdx}\n" in made.text
    assert made.problems == ()
    assert made.notes[0].line == 6


def test_versions_are_compared_as_versions(tmp_path: Path) -> None:
    made = convert(tmp_path, HEAD + "requirements: {run: [foo 2024.05.001.*]}\n")
    text = made.text.replace("2024.05.001", "2024.5.1")
    assert text != made.text
    assert compare_recipes(tmp_path, text, read_configurations(tmp_path)) == ()


def test_requirements_for_older_and_newer_pythons_are_one_condition(tmp_path: Path) -> None:
    items = "    - old 1.*  # [py < 312]\n    - new 2.*  # [py >= 312]\n"
    made = convert(tmp_path, HEAD + "requirements:\n  host:\n    - python\n  run:\n" + items)
    branch = '    - if: match(python, "<3.12")\n      then: old 1.*\n      else: new 2.*\n'
    assert branch in made.text
    assert compare_recipes(tmp_path, made.text, read_configurations(tmp_path)) == ()
