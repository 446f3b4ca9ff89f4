"""What a conversion reports: lines without a form, text that is not YAML, packages that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import compare_recipes
from tests.support.to_v1 import HEAD, convert


def test_what_has_no_form_is_listed_with_its_line_and_reason(tmp_path: Path) -> None:
    converted = convert(
        tmp_path,
        HEAD
        + """\
build:
  number: 0
  features:
    - mkl
about:
  license: Not a license
  license_url: https://example.org/license
{% import "other.yaml" as other %}


app:
  entry: demo
""",
    )
    assert [(problem.line, problem.reason.split(":")[0]) for problem in converted.problems] == [
        (7, "'build"),
        (10, "the license"),
        (11, "'about"),
        (12, "'{% import %}' has no equivalent in a recipe.yaml"),
        (15, "the section 'app' has no equivalent in a recipe.yaml"),
    ]
    assert "license: LicenseRef-Not-a-license" in converted.text


@pytest.mark.parametrize(
    ("meta", "line"),
    [
        ("package:\n  name: a\n\tversion: 1\n", 3),
        ("- a\n- b\n", 1),
        ("package: {name: a\n", 2),
    ],
)
def test_text_that_is_not_yaml_is_an_error_with_its_line(tmp_path: Path, meta: str, line: int) -> None:
    with pytest.raises(InputError) as error:
        convert(tmp_path, meta)
    assert abs((error.value.mistakes[0].line or 0) - line) <= 1


def test_a_difference_names_the_configuration_and_what_it_would_build(tmp_path: Path) -> None:
    converted = convert(tmp_path, HEAD + "requirements:\n  run:\n    - zlib\n")
    text = converted.text.replace("- zlib", "- bzip2")
    first, _ = compare_recipes(tmp_path, text, read_configurations(tmp_path))
    assert first.configuration == "linux_64_cuda12.9"
    assert first.lines == ("demo: - run: zlib", "demo: + run: bzip2")


def test_a_section_that_conda_build_does_not_read_is_listed_and_changes_nothing(tmp_path: Path) -> None:
    converted = convert(tmp_path, HEAD + "requirements:\n  run_exports:\n    - demo\n")
    (problem,) = converted.problems
    assert problem.reason == "conda-build does not read 'requirements: run_exports'"
    assert compare_recipes(tmp_path, converted.text, read_configurations(tmp_path)) == ()


def test_values_of_a_table_that_depend_on_the_variant_are_listed(tmp_path: Path) -> None:
    table = "{% set table = {'12.9': 'a', '13.0': 'b'} %}\n{% set same = table['12.9'] %}\n"
    looked = "{% set name = table[cuda_compiler_version] %}\n"
    converted = convert(tmp_path, table + looked + HEAD + "about:\n  summary: {{ same }}\n")
    assert [(problem.line, problem.reason) for problem in converted.problems] == [
        (3, "'{% set name %}': a context has no tables such as 'table'")
    ]
    assert "same: a\n" in converted.text
