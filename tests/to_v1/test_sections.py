"""What the sections of a `meta.yaml` become, part by part, in a recipe that renders to the same packages."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from feedstock_tools.recipe.written.document import read_document
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import compare_recipes, convert_recipe
from tests.support.to_v1 import HEAD, content, convert, feedstock

REQUIREMENTS = """\
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
#: The first two lists of the same in a recipe.yaml.
REQUIREMENTS_V1 = """\
build:
  # the compilers
  - ${{ compiler("c") }}
  - ${{ stdlib("c") }}
  - if: cuda_compiler_version != "None"
    then:
      - ${{ compiler("cuda") }}
      - cuda-cudart-dev
  - if: cuda_compiler_version != "None" and linux
    then: libcublas-dev  # needed for blas
  - if: cuda_compiler_version == "None"
    then: openblas
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


def test_requirements_keep_order_comments_and_conditions(tmp_path: Path) -> None:
    converted = convert(tmp_path, HEAD + REQUIREMENTS)
    assert compare_recipes(tmp_path, converted.text, read_configurations(tmp_path)) == ()
    assert REQUIREMENTS_V1 in dedent(converted.text.partition("requirements:\n")[2])
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


def test_a_default_string_that_rattler_build_would_write_in_another_way_is_written_out(tmp_path: Path) -> None:
    only_host = HEAD + "requirements:\n  host:\n    - python\n  run:\n    - zlib\n"
    assert content(tmp_path, only_host)["build"]["string"] == "h${{ hash }}_${{ build_number }}"
    both = HEAD + "requirements:\n  host:\n    - python\n  run:\n    - python\n"
    assert "build" not in content(tmp_path, both)


def test_a_generic_package_is_named_for_the_python_that_it_requires(tmp_path: Path) -> None:
    meta = HEAD.replace("package:", "{% set py_version = '3.14.0' %}\npackage:", 1)
    requires = "    - python {{ py_version }}.*\n"
    made = content(tmp_path, meta + f"build:\n  noarch: generic\nrequirements:\n  host:\n{requires}  run:\n{requires}")
    assert made["build"]["string"] == ("py${{ py_version | version_to_buildstring }}h${{ hash }}_${{ build_number }}")


def test_an_output_whose_string_names_python_only_elsewhere_ignores_the_key_there(tmp_path: Path) -> None:
    meta = HEAD + (
        "build:\n"
        "  string: all_{{ PKG_HASH }}_0               # [cuda_compiler_version != 'None']\n"
        "  string: py{{ CONDA_PY }}_{{ PKG_HASH }}_0  # [cuda_compiler_version == 'None']\n"
    )
    ignored = [{"if": 'cuda_compiler_version != "None"', "then": "python"}]
    made = yaml.safe_load(convert(tmp_path, meta).text)
    assert made["build"]["variant"]["ignore_keys"] == ignored
    required = yaml.safe_load(convert(tmp_path, meta + "requirements:\n  host:\n    - python\n").text)
    assert "variant" not in required["build"]


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
        {"python": {"imports": ["demo"]}},
        {
            "script": [{"if": "unix", "then": "demo --help"}],
            "files": {"recipe": ["data.txt"], "source": ["tests/"]},
        },
        {"downstream": "bigger"},
    ]


def test_imports_that_need_other_packages_become_commands(tmp_path: Path) -> None:
    meta = HEAD + "test:\n  imports:\n    - demo\n  requires:\n    - cuda-driver-dev\n"
    (test,) = content(tmp_path, meta)["tests"]
    assert test["script"] == ['python -c "import demo"']
    assert test["requirements"] == {"run": ["cuda-driver-dev", "python"]}
    (test,) = content(tmp_path, meta.replace("cuda-driver-dev", "python >=3.11"))["tests"]
    assert test["requirements"] == {"run": ["python >=3.11"]}


@pytest.mark.parametrize(
    ("requires", "commands", "python", "run"),
    [
        (["python 3.11"], [], {"pip_check": False, "python_version": "3.11.*"}, None),
        (["pip", "python 3.12"], ["pip check"], {"python_version": "3.12.*"}, None),
        (["pip", "pytest-cov", "make"], ["pip check", "make test"], {}, ["pytest-cov", "make"]),
        (["pip", "{{ compiler('c') }}"], ["pip check", "pip list"], {}, ["pip", '${{ compiler("c") }}']),
        (["pip"], ["pip check  # [unix]"], {"pip_check": False}, ["pip"]),
    ],
)
def test_imports_that_need_no_tool_of_the_commands_are_a_test_of_python(
    tmp_path: Path, requires: list[str], commands: list[str], python: dict[str, object], run: list[str] | None
) -> None:
    lists = {"requires": requires, "commands": commands}
    text = "".join(
        f"  {key}:\n" + "".join(f"    - {item}\n" for item in items) for key, items in lists.items() if items
    )
    tests = content(tmp_path, f"{HEAD}test:\n  imports:\n    - demo\n{text}")["tests"]
    assert tests[0] == {"python": {"imports": ["demo"], **python}}
    assert [test.get("requirements", {}).get("run") for test in tests[1:]] == ([run] if run else [])


def test_numpy_x_x_is_the_version_of_the_variant(tmp_path: Path) -> None:
    text = "requirements:\n  host:\n    - numpy x.x\n"
    made = feedstock(tmp_path, HEAD + text, ())
    for path in (made / ".ci_support").glob("*.yaml"):
        path.write_text(f"{path.read_text()}numpy:\n- '2.1'\n")
    meta = read_document(made / "recipe/meta.yaml", within=made)
    converted = convert_recipe(meta, read_configurations(made)).text
    assert yaml.safe_load(converted)["requirements"]["host"] == ["numpy ${{ numpy }}.*"]
    assert compare_recipes(made, converted, read_configurations(made)) == ()


def test_a_test_file_beside_the_recipe_is_run_with_python_and_what_tests_require(tmp_path: Path) -> None:
    (test,) = content(tmp_path, HEAD, ("run_test.py",))["tests"]
    assert test == {
        "script": ["python run_test.py"],
        "requirements": {"run": ["python"]},
        "files": {"recipe": ["run_test.py"]},
    }
    meta = HEAD + "test:\n  requires:\n    - pytest\n  commands:\n    - demo\n"
    (test,) = content(tmp_path, meta, ("run_test.py", "run_test.bat"))["tests"]
    assert test == {
        "script": ["demo", "python run_test.py", {"if": "win", "then": "call run_test.bat"}],
        "requirements": {"run": ["pytest", "python"]},
        "files": {"recipe": ["run_test.py", "run_test.bat"]},
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


def test_a_source_with_a_hash_for_each_platform_is_a_list(tmp_path: Path) -> None:
    made = content(
        tmp_path,
        HEAD
        + f"""\
source:
  - url: https://example.org/demo-{{{{ target_platform }}}}.zip  # [linux or osx]
    sha256: {"a" * 64}  # [linux64]
    sha256: {"b" * 64}  # [aarch64]
    sha256: {"c" * 64}  # [osx]
""",
    )
    url = "https://example.org/demo-${{ target_platform }}.zip"
    assert made["source"] == [
        {"if": "linux64", "then": {"url": url, "sha256": "a" * 64}},
        {"if": "aarch64", "then": {"url": url, "sha256": "b" * 64}},
        {"if": "osx", "then": {"url": url, "sha256": "c" * 64}},
    ]


def test_a_switch_with_several_conditions_keeps_all_of_them(tmp_path: Path) -> None:
    lines = "  binary_relocation: false  # [osx]\n  binary_relocation: true  # [linux]\n"
    made = content(tmp_path, HEAD + "build:\n" + lines)
    chosen = "${{ true if linux else false if osx else true }}"
    assert made["build"]["dynamic_linking"]["binary_relocation"] == chosen
