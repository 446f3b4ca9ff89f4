"""Whole recipes: what a `meta.yaml` becomes, part by part, and that it renders to the same packages."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from feedstock_tools.edit.document import read_document
from feedstock_tools.edit.to_v1.comparison import compare_recipes
from feedstock_tools.edit.to_v1.converting import convert_recipe
from feedstock_tools.edit.to_v1.recipe import Converted
from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configurations.configuration import read_configurations

CONFIGURATIONS = {
    "linux_64_cuda12.9": {"cuda_compiler_version": ["12.9"], "cuda_compiler": ["cuda-nvcc"]},
    "linux_64_cudaNone": {"cuda_compiler_version": ["None"], "cuda_compiler": ["None"]},
}
COMMON = {
    "c_compiler": ["gcc"],
    "c_compiler_version": ["14"],
    "c_stdlib": ["sysroot"],
    "c_stdlib_version": ["2.17"],
    "channel_targets": ["conda-forge main"],
    "python": ["3.11.* *_cpython", "3.12.* *_cpython"],
    "target_platform": ["linux-64"],
}
HEAD = """\
{% set version = "1.2.3" %}
package:
  name: demo
  version: {{ version }}
"""


def feedstock(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> Path:
    (folder / "recipe").mkdir(exist_ok=True)
    (folder / "recipe" / "meta.yaml").write_text(dedent(meta))
    for name in files:
        (folder / "recipe" / name).write_text("")
    (folder / ".ci_support").mkdir(exist_ok=True)
    for name, values in CONFIGURATIONS.items():
        (folder / ".ci_support" / f"{name}.yaml").write_text(yaml.safe_dump({**COMMON, **values}))
    return folder


def convert(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> Converted:
    made = feedstock(folder, meta, files)
    document = read_document(made / "recipe" / "meta.yaml", within=made)
    return convert_recipe(document, read_configurations(made))


def content(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> dict[str, Any]:
    converted = convert(folder, meta, files)
    assert converted.problems == ()
    assert compare_recipes(folder, converted.text, read_configurations(folder)) == ()
    loaded: dict[str, Any] = yaml.safe_load(converted.text)
    return loaded


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


def test_requirements_keep_order_comments_and_conditions(tmp_path: Path) -> None:
    meta = (
        HEAD
        + """\
requirements:
  build:
    # the compilers
    - {{ compiler("c") }}
    - {{ stdlib("c") }}
    - {{ compiler("cuda") }}  # [cuda_compiler_version != "None"]
    {% if cuda_compiler_version != "None" %}
    - cuda-cudart-dev
    - libcublas-dev           # [linux] needed for blas
    {% else %}
    - openblas
    {% endif %}
    - make                    # [unix]
    - ninja                   # [win]
  host:
    - zlib 1.2
    - python
    - libfoo =*=*_cuda
    - bar =1.2.*
    - baz 1.4.0 py_0
  run:
    - python
    - {{ pin_compatible("zlib", max_pin="x.x") }}
    - __cuda                  # [cuda_compiler_version != "None"]
  run_constrained:
    - other >=3
"""
    )
    converted = convert(tmp_path, meta)
    assert compare_recipes(tmp_path, converted.text, read_configurations(tmp_path)) == ()
    assert dedent(
        """\
              build:
                # the compilers
                - ${{ compiler("c") }}
                - ${{ stdlib("c") }}
                - if: cuda_compiler_version != "None"
                  then:
                    - ${{ compiler("cuda") }}
                    - cuda-cudart-dev
                    - if: linux
                      then: libcublas-dev  # needed for blas
                  else: openblas
                - if: unix
                  then: make
                  else: ninja
              host:
                - zlib 1.2.*
                - python
                - libfoo * *_cuda
                - bar 1.2.*
                - baz ==1.4.0 py_0
            """
    ) in dedent(converted.text.partition("requirements:\n")[2])
    made = yaml.safe_load(converted.text)["requirements"]
    assert made["run"][1] == '${{ pin_compatible("zlib", upper_bound="x.x") }}'
    assert made["run_constraints"] == ["other >=3"]


def test_the_section_build_is_distributed(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
build:
  number: 0
  skip: true  # [py<311]
  skip: true  # [win and cuda_compiler_version != "None"]
  noarch_python: false
  entry_points:
    - demo = demo.main:run
  run_exports:
    strong:
      - {{ pin_subpackage("demo", max_pin="x.x") }}
    weak:
      - demo-abi 1.*
  ignore_run_exports:
    - zlib
  ignore_run_exports_from:
    - {{ compiler("c") }}
  missing_dso_whitelist:
    - '*/libcuda.so.*'  # [linux]
  track_features:
    - demo-cpu  # [cuda_compiler_version == "None"]
  detect_binary_files_with_prefix: false
  binary_relocation: false
requirements:
  host:
    - python
  run:
    - python
""",
    )
    assert made["build"]["skip"] == ['match(python, "<3.11")', 'win and cuda_compiler_version != "None"']
    assert made["build"]["python"] == {"entry_points": ["demo = demo.main:run"]}
    assert made["build"]["dynamic_linking"] == {
        "missing_dso_allowlist": [{"if": "linux", "then": "*/libcuda.so.*"}],
        "binary_relocation": False,
    }
    assert made["build"]["prefix_detection"] == {"ignore_binary_files": True}
    down = '${{ 1 if cuda_compiler_version == "None" else 0 }}'
    assert made["build"]["variant"] == {"down_prioritize_variant": down}
    assert made["requirements"]["run_exports"] == {
        "weak": ["demo-abi 1.*"],
        "strong": ['${{ pin_subpackage("demo", upper_bound="x.x") }}'],
    }
    assert made["requirements"]["ignore_run_exports"] == {
        "by_name": ["zlib"],
        "from_package": ['${{ compiler("c") }}'],
    }


def test_scripts_are_named_only_where_rattler_build_would_look_for_others(tmp_path: Path) -> None:
    assert "build" not in content(tmp_path, HEAD, ("build.sh",))
    both = content(tmp_path, HEAD, ("build.sh", "bld.bat"))
    assert both["build"]["script"] == {"file": '${{ "build.sh" if unix else "bld.bat" }}'}


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


def test_a_default_string_that_rattler_build_would_write_in_another_way_is_written_out(tmp_path: Path) -> None:
    only_host = HEAD + "requirements:\n  host:\n    - python\n  run:\n    - zlib\n"
    assert content(tmp_path, only_host)["build"]["string"] == "h${{ hash }}_${{ build_number }}"
    both = HEAD + "requirements:\n  host:\n    - python\n  run:\n    - python\n"
    assert "build" not in content(tmp_path, both)


def test_tests_become_a_list(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + """\
test:
  imports:
    - demo
  commands:
    - pip check
    - demo --help  # [unix]
  requires:
    - pip
  files:
    - data.txt
  source_files:
    - tests/
  downstreams:
    - bigger
""",
    )
    assert made["tests"] == [
        {"python": {"imports": ["demo"], "pip_check": False}},
        {
            "script": ["pip check", {"if": "unix", "then": "demo --help"}],
            "requirements": {"run": ["pip"]},
            "files": {"recipe": ["data.txt"], "source": ["tests/"]},
        },
        {"downstream": "bigger"},
    ]


def test_imports_that_need_other_packages_become_commands(tmp_path: Path) -> None:
    meta = HEAD + "test:\n  imports:\n    - demo\n  requires:\n    - cuda-driver-dev\n"
    (test,) = content(tmp_path, meta)["tests"]
    assert test["script"] == ['python -c "import demo"']
    assert test["requirements"] == {"run": ["cuda-driver-dev"]}


def test_a_test_file_beside_the_recipe_is_run(tmp_path: Path) -> None:
    (test,) = content(tmp_path, HEAD, ("run_test.py",))["tests"]
    assert test == {"script": ["python run_test.py"], "files": {"recipe": ["run_test.py"]}}


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
        {
            "if": 'cuda_compiler_version != "None"',
            "then": [{"if": "linux", "then": "test -f liba_cuda.so"}, "special a_cuda"],
        },
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
            {
                "if": 'cuda_compiler_version != "None"',
                "then": [{"if": "unix", "then": 'ARGS="$ARGS -DCUDA=ON"', "else": "set ARGS=%ARGS% -DCUDA=ON"}],
            },
        ],
    }


def test_sources_keep_their_alternatives(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + f"""\
source:
  - url: https://example.org/unix.tar.gz  # [unix]
  - url: https://example.org/win.zip      # [win]
    sha256: {"a" * 64}  # [unix]
    sha256: {"b" * 64}  # [win]
    fn: demo.tar.gz
    folder: demo
    patches:
      - one.patch
      - two.patch  # [win]
  - git_url: https://example.org/data.git
    git_rev: v{{{{ version }}}}
""",
    )
    first, second = made["source"]
    assert (
        first["url"] == 'https://example.org/${{ "unix.tar.gz" if unix else "win.zip" }}' or "if unix" in first["url"]
    )
    assert f'"{"a" * 64}" if unix else "{"b" * 64}"' in first["sha256"]
    assert first["file_name"] == "demo.tar.gz"
    assert first["target_directory"] == "demo"
    assert first["patches"] == ["one.patch", {"if": "win", "then": "two.patch"}]
    assert second == {"git": "https://example.org/data.git", "tag": "v${{ version }}"}


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
    assert python["build"]["script"] == {"file": '${{ "install.sh" if unix else "install.bat" }}'}
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
        (12, "'{% import %}' has no form in a recipe.yaml"),
        (15, "the section 'app' has no form in a recipe.yaml"),
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
