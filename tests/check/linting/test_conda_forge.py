"""conda-forge's rules as ours: each finds its mistake at its place, in both formats, and `--fix` mends what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from textwrap import indent

import pytest

from feedstock_tools.check.linting.conda_forge import SMITHY_RULES
from feedstock_tools.check.linting.lint import RULES, lint_feedstock, rewritten
from feedstock_tools.recipe.written.document import read_files

V0 = """\
{% set version = "1.2" %}
package:
  name: demo
  version: "{{ version }}"
source:
  url: https://example.org/demo-{{ version }}.tar.gz
  sha256: 0000000000000000000000000000000000000000000000000000000000000000
build:
  number: 0
  noarch: python
  script: python -m pip install . -vv
requirements:
  host:
    - python {{ python_min }}
    - pip
    - setuptools
  run:
    - python >={{ python_min }}
test:
  imports:
    - demo
  requires:
    - python {{ python_min }}
about:
  home: https://example.org/demo
  license: MIT
  license_file: LICENSE
  summary: A demo
extra:
  recipe-maintainers:
    - somebody
"""
V1 = """\
context:
  version: "1.2"
package:
  name: demo
  version: ${{ version }}
source:
  url: https://example.org/demo-${{ version }}.tar.gz
  sha256: 0000000000000000000000000000000000000000000000000000000000000000
build:
  number: 0
  noarch: python
  script: python -m pip install . -vv
requirements:
  host:
    - python ${{ python_min }}.*
    - pip
    - setuptools
  run:
    - python >=${{ python_min }}
tests:
  - python:
      imports:
        - demo
      python_version:
        - ${{ python_min }}.*
        - "*"
about:
  homepage: https://example.org/demo
  license: MIT
  license_file: LICENSE
  summary: A demo
extra:
  recipe-maintainers:
    - somebody
"""
RUST = "  build:\n    - {q}{{{{ compiler('rust') }}}}\n  host:\n"
#: Rule; old and new text of a recipe; where the finding stands; what `--fix` makes of that line, if it does.
BOTH = [
    ("noarch-value", "noarch: python", "noarch: pyton", "pyton", None),
    ("repeated-key", "  number: 0\n", "  number: 0\n  number: 1\n", "number: 1", None),
    ("unknown-section", "about:\n", "abuot:\n  a: b\nabout:\n", "abuot", None),
    ("section-order", "extra:\n  recipe-maintainers:\n    - somebody\n", "", "extra", None),
    ("about-item", "  summary: A demo\n", "", "about:", None),
    ("maintainers", "  recipe-maintainers:\n    - somebody\n", "  recipe-maintainers: somebody\n", "somebody", None),
    ("feedstock-name", "extra:\n", "extra:\n  feedstock-name: d-feedstock\n", "d-feedstock", "  feedstock-name: d"),
    ("build-number", "  number: 0\n", "", "build:", None),
    ("last-line", "    - somebody\n", "    - somebody\n\n\n", "\n\n\n", "    - somebody"),
    ("license-file", "  license_file: LICENSE\n", "", "license: MIT", None),
    ("package-name", "name: demo", "name: Demo", "Demo", None),
    ("source-hash", "  sha256: " + "0" * 64 + "\n", "", "url:", None),
    ("pin-spaces", "    - pip\n", "    - pip>=24\n", "pip>=24", "    - pip >=24"),
    ("template-spaces", "{{ version }}.tar", "{{version}}.tar", "{q}{{{{version", "{{ version }}.tar"),
    ("wheel-source", ".tar.gz", "-cp312-win.whl", "https://example.org/demo", None),
    ("abi3-text", "  number: 0\n", "  number: 0  # is_abi3 == 'true'\n", "is_abi3", "is_abi3\n"),
    ("float", "  number: 0\n", "  number: 0\n  string: 1.10\n", "1.10", '"1.10"'),
    ("build-backend", "    - setuptools\n", "", "pip\n", None),
    ("setup-py", "-m pip install . -vv", "setup.py install", "python setup.py", None),
    (
        "pypi-address",
        "https://example.org/demo-",
        "https://pypi.io/packages/demo-",
        "https://pypi.io",
        "https://pypi.org/",
    ),
    ("replaced-package", "    - setuptools\n", "    - setuptools\n    - matplotlib\n", "matplotlib", None),
    ("duplicate-requirement", "    - setuptools\n", "    - setuptools\n    - setuptools\n", "setuptools\n  run", None),
    ("sysroot", "  host:\n", "  build:\n    - sysroot_linux-64\n  host:\n", "sysroot_", None),
    ("stdlib", "  host:\n", RUST, "{q}{{{{ compiler", "stdlib("),
    ("bundled-licenses", "  host:\n", RUST, "{q}{{{{ compiler", None),
    ("macos-bound", "  run:\n", "  run:\n    - __osx >=11\n", "__osx", None),
    ("legacy-requirement", "  host:\n", "  build:\n    - numpy x.x\n  host:\n", "numpy x.x", None),
    ("requirements-order", "  run:\n", "  build:\n    - make\n  run:\n", "host:", None),
    ("python-bound", "    - python >=", "    - nothing >=", "requirements:", None),
]
OLD = [
    ("repeated-key", "build:\n", "package:\n  name: other\n  version: 2\nbuild:\n", "package:\n  name: other", None),
    ("repeated-key", "  number: 0\n", "  number: 0  # [win]\n  number: 1  # [win]\n", "number: 1", None),
    ("package-version", '"1.2"', '"1..2"', '"{{ version', None),
    ("python-min", "    - python {{ python_min }}", "    - python", "python\n", "python {{ python_min }}"),
    ("section-kind", "source:\n  url:", "app: no\nsource:\n  url:", "app", None),
    ("unknown-key", "  number: 0\n", "  number: 0\n  nubmer: 0\n", "nubmer", None),
    ("license-file", "  license: MIT\n  license_file: LICENSE\n", "  license_family: MIT\n", "license_family", None),
    ("license-file", "  license_file: LICENSE\n", "  license_file:\n", "license: MIT", None),
    ("license-family", "  license: MIT\n", "  license: MIT\n  license_family: Mine\n", "Mine", None),
    ("tests", "test:\n  imports:\n    - demo\n", "test:\n", "{% set", None),
    ("pin-function", "    - setuptools\n", "    - {{ pin_subpackage('zlib') }}\n", "{{ pin_sub", None),
    ("space-separated", "    - setuptools\n", "    - setuptools >= 60\n", "setuptools >=", None),
    ("selector-form", "    - setuptools\n", "    - setuptools #[ win ]\n", " #[", "setuptools  # [win]"),
    ("python-selector", "    - setuptools\n", "    - setuptools  # [py38]\n", "py38", None),
    ("noarch-selector", "  run:\n", "  run:\n    - colorama  # [win]\n", "- colorama", None),
    ("set-spaces", '{% set version = "1.2" %}', '{%set version="1.2"%}', "{%set", '{% set version = "1.2" %}'),
    ("language-pins", "  noarch: python\n", "", "python >=", None),
    ("redundant-python-min", "package:\n", '{% set python_min = "3.9" %}\npackage:\n', "{% set python_min", None),
]
NEW = [
    ("package-version", '"1.2"', '"1..2"', "${{ version", None),
    ("python-min", "    - python ${{ python_min }}.*", "    - python", "python\n", "python ${{ python_min }}.*"),
    ("comment-selector", "    - setuptools\n", "    - setuptools  # [win]\n", "# [win]", None),
    ("noarch-selector", "    - setuptools\n", "    - if: win\n      then: setuptools\n", "if: win", None),
    ("test-latest", '        - "*"\n', "", "python:\n", None),
    ("tests", V1[V1.index("tests:") : V1.index("about:")], "", "context", None),
    ("sp-dir", "  script: python", "  script:\n    - export SP_DIR=x\n    - python", "- export", None),
    (
        "cross-python",
        "  run:\n",
        "  ignore_run_exports:\n    from_package:\n      - cross-python_x\n  run:\n",
        "cross-",
        None,
    ),
    ("package-version", "  version: ${{ version }}\n", "", "package:", None),
    ("redundant-python-min", "context:\n", 'context:\n  python_min: "3.9"\n', '"3.9"', None),
]
#: Name of a file and its text; the rule that it breaks, and the place.
FILES = [
    ("conda-forge.yml", "test: all\nprovider: {}\ntest: native\n", "repeated-key", (3, 1)),
    ("recipe/conda_build_config.yaml", "a: [1]\nb: [1]\na: [2]\n", "repeated-key", (3, 1)),
    ("recipe/variants.yaml", "a: [1]\na: [2]\n", "repeated-key", (2, 1)),
    (".ci_support/migrations/a.yaml", "__migrator:\n  kind: version\n  kind: version\n", "repeated-key", (3, 3)),
    ("conda-forge.yml", "os_version:\n  linux_64: cos7\n", "os-version", (2, 3)),
    ("conda-forge.yml", "min_py_ver: '36'\n", "deprecated-setting", (1, 1)),
    ("conda-forge.yml", "bot:\n  inspection: false\n", "setting", (2, 15)),
    ("conda-forge.yml", "azure:\n  max_paralel: 2\n", "setting", (2, 3)),
    ("conda-forge.yml", "github: {}\nprovider:\ncircle: null\nmatrix:\n- [a, b]\n", "setting", (4, 1)),
    ("conda-forge.yml", "bot:\n  abi_migration_branches: [1.12.2, 1.12]\n", "setting", (2, 36)),
    (
        "conda-forge.yml",
        "azure:\n  settings_win:\n    variables:\n      SET_PAGEFILE: 1\n",
        "deprecated-variable",
        (4, 7),
    ),
    ("conda-forge.yml", "workflow_settings:\n  tools_install_dir: /opt\n", "workflow-settings", (2, 22)),
    (
        "conda-forge.yml",
        "workflow_settings:\n  pagefile_size:\n    - {value: 1}\n    - {os: win, value: 2}\n",
        "workflow-settings",
        (4, 7),
    ),
    ("recipe/conda_build_config.yaml", "c_stdlib_version:\n  - '10.13'  # [osx]\n", "macos-variants", (2, 5)),
    ("recipe/conda_build_config.yaml", "MACOSX_SDK_VERSION:\n  - '10.15'  # [osx]\n", "macos-variants", (2, 5)),
    (
        "recipe/variants.yaml",
        "c_stdlib_version:\n  - if: linux or (osx and x86_64)\n    then: '10.9'\n",
        "macos-variants",
        (3, 11),
    ),
    ("recipe/conda_build_config.yaml", "", "empty-variants", (1, 1)),
    ("recipe/variants.yaml", "a: [1]\n", "two-variants", (1, 1)),
    (".github/workflows/mine.yml", "on: push\n", "own-workflow", (1, 1)),
]


def feedstock(folder: Path, recipe: str) -> Path:
    is_v1 = recipe.startswith("context") or "\ncontext:" in recipe or "${{" in recipe
    (folder / "recipe").mkdir()
    (folder / "recipe" / ("recipe.yaml" if is_v1 else "meta.yaml")).write_text(recipe)
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n" if is_v1 else "")
    (folder / ".ci_support").mkdir()
    job = "target_platform:\n- linux-64\nc_stdlib:\n- sysroot\nrust_compiler:\n- rust\npython_min:\n- '3.10'\n"
    if not is_v1:  # rattler-build refuses some of these recipes
        (folder / ".ci_support/linux_64_.yaml").write_text(job)
    return folder


def found_by(folder: Path, rule: str) -> list[tuple[int, int]]:
    """The places at which a rule finds something."""
    pinning = folder / "pinning.yaml"
    pinning.write_text("python_min:\n  - '3.10'\n")
    return [(each.line, each.column) for each in lint_feedstock(folder, pinning=pinning).findings if each.rule == rule]


CASES = [
    *((V0, *(part.format(q="") if part and "{q}" in part else part for part in case)) for case in (*BOTH, *OLD)),
    *((V1, *(part.format(q="$") if part and "{q}" in part else part for part in case)) for case in (*BOTH, *NEW)),
]


@pytest.mark.parametrize(("recipe", "rule", "old", "new", "at", "fixed"), CASES)
def test_each_rule_finds_its_mistake_and_mends_it(
    tmp_path: Path, recipe: str, rule: str, old: str, new: str, at: str, fixed: str | None
) -> None:
    assert found_by(feedstock(tmp_path, recipe), rule) == []
    changed = recipe.replace(old, new, 1)
    assert changed != recipe
    if rule == "section-order":
        changed = f"{old}{changed}"
    path = next((tmp_path / "recipe").glob("*.yaml"))
    path.write_text(changed)
    before = changed[: changed.index(at, changed.index("requirements:") if rule == "python-min" else 0)]
    assert found_by(tmp_path, rule)[0] == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    if fixed is not None:
        files = read_files(tmp_path)
        path.write_text(files.recipe.changed(rewritten(files)).text)
        assert fixed in path.read_text()
        assert found_by(tmp_path, rule) == []


@pytest.mark.parametrize(("name", "text", "rule", "place"), FILES)
def test_rules_for_other_files_find_their_mistakes(
    tmp_path: Path, name: str, text: str, rule: str, place: tuple[int, int]
) -> None:
    folder = feedstock(tmp_path, V0)
    if rule == "two-variants":
        (folder / "recipe/conda_build_config.yaml").write_text("a: [1]\n")
    assert found_by(folder, rule) == []
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    assert place in found_by(folder, rule)


@pytest.mark.parametrize(
    "text",
    ["a: [1]  # [linux]\na: [2]  # [osx]\n", "skip: true  # [win]\nskip: true  # [py < 38]\n"],
    ids=["variants", "skips"],
)
def test_a_key_with_other_selectors_may_be_written_again(tmp_path: Path, text: str) -> None:
    folder = feedstock(tmp_path, V0)
    (folder / "recipe/conda_build_config.yaml").write_text(text)
    assert found_by(folder, "repeated-key") == []


def test_a_key_in_two_branches_of_a_template_is_written_once(tmp_path: Path) -> None:
    branches = "{% if build_platform %}\n  number: 1\n{% else %}\n  number: 0\n{% endif %}\n"
    assert found_by(feedstock(tmp_path, V0.replace("  number: 0\n", branches)), "repeated-key") == []


def test_a_feedstock_without_jobs_and_a_pinned_requirement_are_found(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, V0.replace("    - setuptools\n", "    - setuptools\n    - zlib 1.2\n"))
    assert (found_by(folder, "overridden-pin"), found_by(folder, "no-jobs")) == ([], [])
    with (folder / ".ci_support/linux_64_.yaml").open("a") as job:
        job.write("zlib:\n- '1'\n")
    assert found_by(folder, "overridden-pin") == [(17, 7)]
    (folder / ".ci_support/linux_64_.yaml").unlink()
    assert found_by(folder, "no-jobs") == [(1, 1)]


def test_the_one_python_of_what_outputs_share_is_no_override(tmp_path: Path) -> None:
    host = "requirements:\n  host:\n    - python 3.12.*\n"
    output = f"  - name: demo-a\n{indent(host, ' ' * 4)}"
    folder = feedstock(tmp_path, f"package:\n  name: demo\n  version: 1\n{host}    - zlib 1.2\noutputs:\n{output}")
    with (folder / ".ci_support/linux_64_.yaml").open("a") as job:
        job.write("zlib:\n- '1'\npython:\n- 3.13.* *_cp313\n")
    assert found_by(folder, "overridden-pin") == [(7, 7), (12, 11)]
    recipe = folder / "recipe/meta.yaml"
    recipe.write_text(recipe.read_text().replace("    - python 3.12.*\n    - zlib", "    - python >=3.8\n    - zlib"))
    assert found_by(folder, "overridden-pin") == [(6, 7), (7, 7), (12, 11)]


def test_outputs_without_tests_and_of_the_stable_abi_are_remarked_on(tmp_path: Path) -> None:
    outputs = """\
outputs:
  - package:
      name: one
    build:
      python:
        version_independent: true
    requirements:
      host:
        - python-abi3
    tests:
      - script:
          - one
  - package:
      name: two
about:
"""
    start, end = V1.index("requirements:"), V1.index("about:\n")
    folder = feedstock(tmp_path, V1[:start] + outputs + V1[end + len("about:\n") :])
    (folder / "recipe/bld.bat").write_text("")
    found = {each.rule for each in lint_feedstock(folder).findings if each.weight == "remark"}
    assert {"output-tests", "abi3audit", "bld-bat"} <= found


def test_a_license_file_of_an_output_does_not_stand_for_that_of_the_recipe(tmp_path: Path) -> None:
    outputs = "outputs:\n  - name: demo\n    about:\n      license_file: LICENSE\nabout:\n"
    folder = feedstock(tmp_path, V0.replace("  license_file: LICENSE\n", "").replace("about:\n", outputs))
    assert len(found_by(folder, "license-file")) == 1


@pytest.mark.parametrize(("license_", "weight"), [("MIT", "mistake"), ("CC0-1.0", "remark")])
def test_a_missing_license_file_is_a_mistake_where_the_license_demands_its_text(
    tmp_path: Path, license_: str, weight: str
) -> None:
    text = V0.replace("  license_file: LICENSE\n", "").replace("license: MIT", f"license: {license_}")
    found = lint_feedstock(feedstock(tmp_path, text)).findings
    assert [each.weight for each in found if each.rule == "license-file"] == [weight]


def test_scripts_are_checked_with_shellcheck_where_that_is_enabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = feedstock(tmp_path, V0)
    (folder / "recipe/build.sh").write_text("set -e\nrm $A/*\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    assert not any(check.name == "shellcheck" and check.verdict == "unknown" for check in lint_feedstock(folder).checks)
    (folder / "conda-forge.yml").write_text("shellcheck:\n  enabled: true\n")
    unknown = {check.name: check.reason for check in lint_feedstock(folder).checks if check.verdict == "unknown"}
    assert unknown["shellcheck"] == "shellcheck is not on PATH"
    said = {
        "file": str(folder.resolve() / "recipe/build.sh"),
        "line": 2,
        "column": 4,
        "code": 2115,
        "message": "Use it",
    }
    for answer, found in (
        (json.dumps({"comments": [said]}), ("recipe/build.sh", 2, 4)),
        ("no", ("recipe/meta.yaml", 1, 1)),
    ):
        (programs / "shellcheck").write_text(f"#!/bin/sh\n/bin/echo '{answer}'\n")
        (programs / "shellcheck").chmod(0o755)
        remarks = [each for each in lint_feedstock(folder).findings if each.rule == "shellcheck"]
        assert [(each.path, each.line, each.column, each.weight) for each in remarks] == [(*found, "remark")]


def test_conda_forge_yml_turns_rules_off(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, V0.replace("    - setuptools\n", ""))
    assert found_by(folder, "build-backend")
    (folder / "conda-forge.yml").write_text("linter:\n  skip:\n    - hint_pip_no_build_backend\n")
    assert found_by(folder, "build-backend") == []


def test_a_recipe_that_the_linter_cannot_read_leaves_its_rules_unknown(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, V0.replace("summary: A demo", "summary: {{ version.encode('a') }}  # [win]"))
    unknown = {check.name: check.reason for check in lint_feedstock(folder).checks if check.verdict == "unknown"}
    assert "cannot read meta.yaml" in unknown["stdlib"]


def test_the_page_has_every_rule_with_its_name_in_conda_smithy() -> None:
    page = Path("docs/lint.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    assert [name for name, rule in RULES.items() if rule.smithy not in rows[name]] == []
    assert set(SMITHY_RULES) <= RULES.keys()


@pytest.mark.parametrize(
    ("remote", "address", "places"),
    [
        ("origin", "https://github.com/conda-forge/other-feedstock.git", [(3, 9)]),
        ("upstream", "git@github.com:conda-forge/other-feedstock", [(3, 9)]),
        ("origin", "ssh://git@github.com/conda-forge/demo-feedstock", []),
        ("origin", "https://github.com/somebody/other-feedstock.git", []),
        ("origin", "https://example.org/conda-forge/other-feedstock.git", []),
    ],
)
def test_a_feedstock_of_another_name_than_its_recipe_says_so(
    tmp_path: Path, remote: str, address: str, places: list[tuple[int, int]]
) -> None:
    folder = feedstock(tmp_path, V0)
    for words in (("init", "-q"), ("remote", "add", remote, address)):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    assert found_by(folder, "other-name") == places
    recipe = folder / "recipe/meta.yaml"
    recipe.write_text(recipe.read_text().replace("extra:\n", "extra:\n  feedstock-name: other\n"))
    assert found_by(folder, "other-name") == ([] if places or "other" in address else [(30, 19)])
