"""A spec with one output generates a recipe that is this package, without a section `outputs`, in both formats."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render
from tests.generate.test_as_written import _meaning, _outputs

ABOUT = """
about: {homepage: https://example.org, license: MIT, license_file: LICENSE, summary: One package}
maintainers: [someone]
"""
#: Everything that an output may have.
WHOLE = f"""
name: demo
version: 1.2.0
platforms: {{linux-64: , osx-64: }}
python: [3.12]
cuda: {{versions: [12.9], platforms: [linux-64]}}
variants: {{level: ["1", "3"], c_stdlib: [sysroot]}}
build: {{number: 4}}
skip: [{{when: osx and python < 3.13, why: Nobody asks for it.}}]
outputs:
  - name: demo
    kind: python
    why: The only one.
    script: {{template: setuptools, environment: {{FORCE_CUDA: [{{value: "1", when: cuda}}]}}}}
    skip: [cpu and level == "3"]
    use_keys: [level]
    requirements:
      build: [compiler: c, compiler: cuda, stdlib: c]
      host: [python, pip]
      run: [python, numpy]
    ignore_run_exports: {{packages: [libgcc]}}
    run_exports: {{strong: [{{pin: demo, max: x.x}}], noarch: [demo-data]}}
    entry_points: [demo = demo:main]
    test: {{imports: [demo], pip_check: true, commands: [demo --help]}}
    about: {{summary: Its own, license: BSD-3-Clause}}
prefer: {{by: both}}
{ABOUT}"""
ONE = f"""
name: demo
version: 1.2.0
platforms: {{linux-64: , win-64: }}
outputs:
  - name: libdemo
    kind: library
    script: {{template: cmake}}
    test: {{commands: [libdemo]}}
{ABOUT}"""
PURE = f"""
name: demo
version: 1.2.0
platforms: {{linux-64: }}
python: [3.12]
outputs:
  - name: demo
    kind: python
    noarch: python
    script: {{template: pip}}
    requirements: {{host: ["python {{python_min}}.*", pip], run: ["python >={{python_min}}"]}}
    test: {{imports: [demo], pip_check: true}}
{ABOUT}"""


def _recipe(text: str, recipe_format: str) -> str:
    texts = render(spec_from_text(text), recipe_format)
    return next(text for path, text in texts.items() if path.name in ("meta.yaml", "recipe.yaml"))


def _keys(text: str) -> list[str]:
    return re.findall(r"^(\w+):", text, re.MULTILINE)


def _v1(text: str) -> dict[str, Any]:
    loaded = yaml.safe_load(_recipe(text, "v1"))
    assert isinstance(loaded, dict)
    return loaded


def test_the_sections_of_the_package_are_at_the_top() -> None:
    v0, v1 = _recipe(WHOLE, "v0"), _recipe(WHOLE, "v1")

    assert _keys(v0) == ["package", "build", "requirements", "test", "about", "extra"]
    assert _keys(v1) == ["schema_version", "context", "package", "build", "requirements", "tests", "about", "extra"]
    for text in (v0, v1):
        assert "# The only one.\npackage:\n  name: demo\n" in text
        assert "feedstock-name" not in text
        assert "  license: BSD-3-Clause\n  license_file: LICENSE\n  summary: Its own\n" in text
    loaded = yaml.safe_load(v1)
    assert len(re.findall(r"^  skip:", v1, re.MULTILINE)) == 1
    assert set(loaded["build"]) == {"number", "skip", "string", "variant", "script", "python"}
    assert set(loaded["requirements"]) == {"build", "host", "run", "run_exports", "ignore_run_exports"}


@pytest.mark.parametrize("subdir", ["linux-64", "osx-64"])
def test_the_package_is_the_same_in_both_formats(subdir: str, tmp_path: Path) -> None:
    v0, v1 = (sorted(map(_of_hash, _outputs(WHOLE, way, subdir, tmp_path / way))) for way in ("v0", "v1"))

    assert v0 == v1
    assert len(v0) == (3 if subdir == "linux-64" else 0)


def _of_hash(output: Any) -> str:
    return repr((_meaning(output), re.sub(r"h[0-9a-f]{7}(?=_)", "", output.build_string)))


def test_a_feedstock_of_another_name_keeps_it() -> None:
    for way in ("v0", "v1"):
        assert "package:\n  name: libdemo\n" in _recipe(ONE, way)
        assert "  feedstock-name: demo\n" in _recipe(ONE, way)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("outputs:", "build: {script: make.sh}\noutputs:"),
        ("outputs:", "build: {requirements: {build: [make]}}\noutputs:"),
        ("outputs:", "build: {ignore_run_exports: {packages: [zlib]}}\noutputs:"),
        ("outputs:", "recipe_name: other\noutputs:"),
        ("    kind:", "    version: 1.3.0\n    kind:"),
        ("    kind:", "    number: 3\n    kind:"),
        ("    kind:", "    files: [lib/x]\n    kind:"),
        ("    kind:", "    exclude_files: [lib/x]\n    kind:"),
        ("    kind:", '    verbatim: [{section: top, v0: "target: x", v1: ""}]\n    kind:'),
        ("  - name:", "  - {name: demo-data, kind: metapackage}\n  - name:"),
    ],
)
def test_what_needs_outputs_keeps_them(old: str, new: str) -> None:
    text = ONE.replace(old, new, 1)
    assert all("outputs" in _keys(_recipe(text, way)) for way in ("v0", "v1"))


@pytest.mark.parametrize(("way", "windows"), [("v0", "bld.bat"), ("v1", "build.bat")])
def test_generated_scripts_are_those_that_the_builder_looks_for(way: str, windows: str) -> None:
    texts = render(spec_from_text(f"format: {way}\n{ONE}"))

    assert {path.name for path in texts if path.suffix in (".sh", ".bat")} == {"build.sh", windows}
    if way == "v0":
        assert "script" not in texts[PurePosixPath("recipe/meta.yaml")]


def test_conda_build_runs_a_script_of_another_name_by_a_command() -> None:
    text = _recipe(ONE.replace("{template: cmake}", "{unix: make.sh, win: make.bat}"), "v0")

    assert re.search(r'^  script: bash -e "\$\{RECIPE_DIR\}/make.sh" +# \[unix\]$', text, re.MULTILINE)
    assert re.search(r'^  script: call "%RECIPE_DIR%\\make.bat" +# \[win\]$', text, re.MULTILINE)


def test_a_noarch_package_skips_nothing_and_is_tested_with_the_oldest_and_the_newest_python() -> None:
    assert "skip" not in _recipe(PURE, "v0")
    recipe = _v1(PURE)
    assert "skip" not in recipe["build"]
    assert recipe["tests"][0]["python"]["python_version"] == ["${{ python_min }}.*", "*"]


def test_the_platform_of_a_noarch_package_is_a_setting_where_it_is_not_linux_64() -> None:
    settings = render(spec_from_text(PURE.replace("linux-64", "osx-64")))[PurePosixPath("conda-forge.yml")]
    assert "noarch_platforms:\n  - osx_64\n" in settings
