"""Variables, loops and macros of a `meta.yaml` in a `recipe.yaml` that renders to the same packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import compare_recipes
from tests.support.to_v1 import HEAD, content, convert


def test_variables_become_a_context_in_order(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set major = version.split(".")[0] %}
{% set build = 4 %}
{% if cuda_compiler_version != "None" %}
{% set build = build + 200 %}
{% endif %}
{% set kind = "cuda" if cuda_compiler_version != "None" else "cpu" %}
{% set unused = "x" %}
build:
  number: {{ build }}
  string: {{ kind }}_{{ major }}_h{{ PKG_HASH }}_{{ build }}
""",
    )
    assert made["context"] == {
        "version": "1.2.3",
        "major": '${{ (version | split("."))[0] }}',
        "build": 4,
        "build_number": '${{ build + (200 if cuda_compiler_version != "None" else 0) }}',
        "kind": '${{ "cuda" if cuda_compiler_version != "None" else "cpu" }}',
    }
    assert made["build"]["string"] == "${{ kind }}_${{ major }}_h${{ hash }}_${{ build_number }}"


def test_a_value_in_a_branch_asks_for_its_condition_once(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        """\
{% if cuda_compiler_version == "None" %}
{% set cuda_major = 0 %}
{% else %}
{% set cuda_major = cuda_compiler_version.split(".")[0] | int if cuda_compiler_version != "None" else 1 %}
{% endif %}
"""
        + HEAD
        + "build:\n  string: cuda{{ cuda_major }}\n",
    )
    assert made["context"]["cuda_major"].count("if") == 1, made["context"]


def test_a_chain_of_additions_is_one_expression_and_keeps_its_comments(tmp_path: Path) -> None:
    meta = (
        HEAD
        + """\
test:
  commands:
    {% set skips = "one" %}
    # fails on Windows
    {% set skips = skips + " or two" %}  # [win]
    {% set skips = skips + " or three" %}
    - run "{{ skips }}"
"""
    )
    converted = convert(tmp_path, meta)
    assert '  # fails on Windows\n  skips: ${{ "one" ~ (" or two" if win else "") ~ " or three" }}\n' in converted.text


def test_the_number_that_people_raise_stays_a_number(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set build = 0 %}
{% set build = build + 200 %}  # [cuda_compiler_version != "None"]
{% set build = build + 100 %}  # [win]
build:
  number: {{ build }}
""",
    )
    number = '${{ build + (200 if cuda_compiler_version != "None" else 0) + (100 if win else 0) }}'
    assert made["context"] == {"version": "1.2.3", "build": 0, "build_number": number}


def test_a_recipe_keeps_the_name_of_its_lowest_python(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        '{% set python_min = "3.11" %}\n'
        + HEAD
        + """\
build:
  noarch: python
requirements:
  host:
    - python {{ python_min }}
  run:
    - python >={{ python_min }}
""",
    )
    assert made["context"]["python_min"] == "3.11"
    assert made["requirements"]["run"] == ["python >=${{ python_min }}"]


def test_values_by_platform_become_one_conditional_value(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        """\
        {% set target = "x86_64-linux" %}  # [linux64]
        {% set target = "sbsa-linux" %}    # [aarch64]
        {% set target = "x64" %}           # [win]
        package:
          name: demo
          version: 1
        build:
          number: 0
          script_env:
            - TARGET={{ target }}
            - MODE=debug   # [win]
            - TOKEN
        """,
    )
    value = '${{ "x64" if win else "sbsa-linux" if aarch64 else "x86_64-linux" if linux64 else "" }}'
    assert made["context"] == {"target": value}
    assert made["build"]["script"]["env"] == {
        "TARGET": "${{ target }}",
        "MODE": '${{ "debug" if win }}',
        "TOKEN": '${{ env.get("TOKEN", default="") }}',
    }


def test_build_strings_of_several_selectors_are_one(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set digits = cuda_compiler_version | replace('.', '') %}
build:
  number: 3
  string: cuda{{ digits }}_h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}  # [cuda_compiler_version != "None"]
  string: cpu_h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}               # [cuda_compiler_version == "None"]
""",
    )
    choice = '"cuda" ~ digits if cuda_compiler_version != "None" else "cpu"'
    assert made["build"]["string"] == f"${{{{ {choice} }}}}_h${{{{ hash }}}}_${{{{ build_number }}}}"


def test_a_condition_is_asked_once(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set build = 4 %}
{% set build = build + 100 * (cuda_compiler_version | replace(".", "") | int) %}  # [cuda_compiler_version != "None"]
build:
  number: {{ build }}
""",
    )
    number = '100 * cuda_compiler_version | replace(".", "") | int'
    assert (
        made["context"]["build_number"] == f'${{{{ build + (({number}) if cuda_compiler_version != "None" else 0) }}}}'
    )


def test_what_reads_otherwise_to_rattler_build_is_noted_with_its_line(tmp_path: Path) -> None:
    converted = convert(
        tmp_path,
        HEAD
        + """\
about:
  license: MIT
outputs:
  - name: libdemo
    build:
      track_features:
        - low  # [osx]  below the others
    about:
      summary: A library
""",
    )
    assert "down_prioritize_variant: ${{ 1 if osx else 0 }}  # below the others\n" in converted.text
    lines = (tmp_path / "recipe" / "meta.yaml").read_text(encoding="utf-8").splitlines()
    assert [(lines[note.line - 1].strip(), note.reason.partition(":")[0]) for note in converted.notes] == [
        ("about:", "an output with an 'about' of its own has what it lacks from here; conda-build leaves it out"),
        ("- low  # [osx]  below the others", "'track_features' becomes down_prioritize_variant"),
    ]


def test_the_build_number_is_a_variable_where_requirements_name_it(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
build:
  number: 3
requirements:
  run_constrained:
    - other * *_{{ PKG_BUILDNUM }}
""",
    )
    assert made["context"]["build_number"] == 3
    assert made["build"]["number"] == "${{ build_number }}"
    assert made["requirements"]["run_constraints"] == ["other * *_${{ build_number }}"]


def test_a_date_is_written_out_with_a_note_and_its_line(tmp_path: Path) -> None:
    dated = "{% set version = datetime.datetime.strptime(tag, '%d%b%Y').strftime('%Y.%m.%d') %}\n"
    converted = convert(tmp_path, "{% set tag = '22Jul2025' %}\n" + dated + HEAD.partition("\n")[2])
    assert '  version: "2025.07.22"\n' in converted.text
    assert [(note.line, note.reason.partition(":")[0]) for note in converted.notes] == [
        (2, "rattler-build computes no dates")
    ]
    assert compare_recipes(tmp_path, converted.text, read_configurations(tmp_path)) == ()


def test_names_of_conda_build_become_variables(tmp_path: Path) -> None:
    meta = """\
package:
  name: demo
  version: "1.2"
build:
  number: 3
  string: py{{ PY_VER }}_{{ PKG_NAME }}_{{ PKG_VERSION }}_{{ PKG_BUILDNUM }}
requirements:
  host:
    - python
  run:
    - python
"""
    made = content(tmp_path, meta)
    assert made["context"] == {"name": "demo", "version": "1.2"}
    assert made["build"]["string"].endswith("_${{ name }}_${{ version }}_${{ build_number }}")


def test_the_name_of_each_output_is_listed_with_its_line(tmp_path: Path) -> None:
    outputs = "outputs:\n  - name: a\n    test:\n      commands:\n        - {{ PKG_NAME }} --help\n  - name: b\n"
    (problem,) = convert(tmp_path, HEAD + outputs).problems
    assert (problem.line, problem.reason.partition(" is ")[0]) == (9, "'PKG_NAME'")


def test_a_loop_that_chooses_its_items_is_named_with_its_line(tmp_path: Path) -> None:
    loop = "{% for lib in ['a', 'b'] if lib != 'b' %}\n    - test -f {{ lib }}\n{% endfor %}\n"
    converted = convert(tmp_path, HEAD + "test:\n  commands:\n    - true\n" + loop)
    assert [(problem.line, "condition for its items" in problem.reason) for problem in converted.problems] == [
        (8, True)
    ]


def test_a_loop_over_outputs_that_conda_build_does_not_find_is_refused_with_its_line(tmp_path: Path) -> None:
    loop = "{% for name in ['a', 'b'] %}\n  - name: {{ name }}\n{% endfor %}\n"
    meta = HEAD + "outputs:\n" + loop
    converted = convert(tmp_path, meta)
    with pytest.raises(InputError, match="no block of its own") as refused:
        compare_recipes(tmp_path, converted.text, read_configurations(tmp_path))
    assert refused.value.mistakes[0].line == meta.splitlines().index("{% for name in ['a', 'b'] %}") + 1


def test_loops_are_unrolled_with_the_conditions_of_their_lists(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
test:
  commands:
    {% set libs = ["a"] + (cuda_compiler_version != "None") * ["a_cuda"] %}
    {% for lib in libs %}
    - test -f lib{{ lib }}.so  # [linux]
    {% if lib != "a" %}
    - special {{ lib }}
    {% endif %}
    {% endfor %}
""",
    )
    assert made["tests"][0]["script"] == [
        {"if": "linux", "then": "test -f liba.so"},
        {"if": 'cuda_compiler_version != "None" and linux', "then": "test -f liba_cuda.so"},
        {"if": 'cuda_compiler_version != "None"', "then": "special a_cuda"},
    ]


def test_macros_and_conditions_in_one_line_are_written_out(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
build:
  number: 0
  script:
    {% macro option(value) -%}
    - ARGS="$ARGS -D{{ value }}"    # [unix]
    - set ARGS=%ARGS% -D{{ value }}  # [win]
    {%- endmacro %}
    {{ option("A=ON") }}
    {{ option("CUDA=ON") }}  # [cuda_compiler_version != "None"]
  script_env:
    {% if cuda_compiler_version != "None" %}- GPU=1 {%- endif %}
""",
    )
    assert made["build"]["script"] == {
        "env": {"GPU": '${{ "1" if cuda_compiler_version != "None" }}'},
        "content": [
            {"if": "unix", "then": 'ARGS="$ARGS -DA=ON"', "else": "set ARGS=%ARGS% -DA=ON"},
            {"if": 'cuda_compiler_version != "None" and unix', "then": 'ARGS="$ARGS -DCUDA=ON"'},
            {"if": 'cuda_compiler_version != "None" and win', "then": "set ARGS=%ARGS% -DCUDA=ON"},
        ],
    }


def test_truth_values_stay_such_and_texts_show_the_words_of_conda_build(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
{% set bundled = False %}
requirements:
  host:
    {% if not bundled %}
    - zlib
    {% endif %}
test:
  commands:
    - echo {{ bundled }}
""",
    )
    assert made["context"]["bundled"] is False
    assert made["requirements"]["host"] == [{"if": "not bundled", "then": "zlib"}]
    assert made["tests"][0]["script"] == ['echo ${{ "True" if bundled else "False" }}']


@pytest.mark.parametrize("replaced", ["compiler('c') | replace(' ', '>=', 1)", "compiler('c').replace(' ', '>=')"])
def test_the_version_of_a_compiler_is_cut_off_where_rattler_build_writes_it(tmp_path: Path, replaced: str) -> None:
    (item,) = content(tmp_path, HEAD + f"requirements:\n  run:\n    - {{{{ {replaced} }}}}\n")["requirements"]["run"]
    assert '" ="' in item
