"""`feedstock-tools edit to-v1`: a feedstock converted, shown first, then written; and input that cannot be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import command

META = """\
{% set version = "1.2" %}

package:
  name: demo
  version: {{ version }}

build:
  number: 3

requirements:
  build:
    - {{ compiler('c') }}
    - make  # [unix]
  run:
    - zlib  # a reason

about:
  license: MIT
"""
SUPPORT = """\
c_compiler:
- gcc
c_compiler_version:
- '14'
target_platform:
- linux-64
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe" / "meta.yaml").write_text(META)
    (folder / "recipe" / "build.sh").write_text("make install\n")
    (folder / "conda-forge.yml").write_text("bot:\n  automerge: true\ntest: native_and_emulated\n")
    (folder / ".ci_support").mkdir()
    (folder / ".ci_support" / "linux_64_.yaml").write_text(SUPPORT)
    return folder


def edit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.here("edit", "to-v1", *words, folder=folder)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_conversion_is_shown_and_nothing_is_written(feedstock: Path) -> None:
    before = files(feedstock)
    shown = edit(feedstock)
    assert shown.returncode == 0
    assert "+++ b/recipe/recipe.yaml" in shown.stdout
    assert "would change conda-forge.yml, recipe/meta.yaml, recipe/recipe.yaml; --write does" in shown.stderr
    assert "note: compared 1 configuration: the packages are the same but for the hashes" in shown.stderr
    assert "note: recipe.yaml has 22 lines, 1.2 times those of meta.yaml\n" in shown.stderr
    assert files(feedstock) == before


def test_write_replaces_the_recipe_and_names_the_build_tool(feedstock: Path) -> None:
    assert edit(feedstock, "--write").returncode == 0
    assert not (feedstock / "recipe" / "meta.yaml").exists()
    assert (feedstock / "conda-forge.yml").read_text() == (
        "bot:\n  automerge: true\nconda_build_tool: rattler-build\ntest: native_and_emulated\n"
    )
    recipe = (feedstock / "recipe" / "recipe.yaml").read_text()
    assert recipe == (
        'schema_version: 1\n\ncontext:\n  version: "1.2"\n\npackage:\n  name: demo\n  version: ${{ version }}\n\n'
        "build:\n  number: 3\n\nrequirements:\n  build:\n"
        '    - ${{ compiler("c") }}\n    - if: unix\n      then: make\n  run:\n    - zlib  # a reason\n\n'
        "about:\n  license: MIT\n"
    )


@pytest.mark.parametrize("named", [False, True])
def test_a_script_for_windows_that_nothing_names_gets_the_name_that_rattler_build_knows(
    feedstock: Path, named: bool
) -> None:
    recipe = feedstock / "recipe"
    (recipe / "bld.bat").write_bytes(b"cmake .\r\n")
    (recipe / "build.sh").write_text("# as bld.bat does\n" if named else "cmake .\n")
    assert edit(feedstock, "--write").returncode == 0
    assert ('file: ${{ "build.sh" if unix else "bld.bat" }}' in (recipe / "recipe.yaml").read_text()) == named
    kept, gone = ("bld.bat", "build.bat") if named else ("build.bat", "bld.bat")
    assert (recipe / kept).read_bytes() == b"cmake .\r\n"
    assert not (recipe / gone).exists()


def test_the_converted_feedstock_is_rerendered_to_the_same_packages(feedstock: Path) -> None:
    assert edit(feedstock, "--write").returncode == 0
    listed = command.here("outputs", folder=feedstock)
    assert listed.returncode == 0
    assert "linux-64/demo-1.2-h" in listed.stdout
    assert edit(feedstock).returncode == 2


def test_an_edit_after_it_changes_the_new_recipe(feedstock: Path) -> None:
    assert edit(feedstock, "build-number", "+1", "--write").returncode == 0
    assert "  number: 4\n" in (feedstock / "recipe" / "recipe.yaml").read_text()


def test_what_is_not_converted_is_named_when_it_is_written_too(feedstock: Path) -> None:
    (feedstock / "recipe" / "meta.yaml").write_text(META + "  license_url: https://example.org\n")
    written = edit(feedstock, "--write")
    assert written.returncode == 0
    assert (
        "note: meta.yaml:19: not converted: 'about: license_url' has no equivalent in a recipe.yaml" in written.stderr
    )


REFUSED = {
    "rattler-build": (
        META.replace("    - zlib ", "    - zlib[extra] >=1 "),
        "linux_64_: recipe.yaml:19: rattler-build refuses the recipe: invalid value for 'item': invalid package name",
    ),
    "conda-smithy": (
        META.replace('"1.2"', 'environ.get("DEMO", "1.2")'),
        "recipe.yaml:8: conda-smithy's linter refuses the version 'env_\"DEMO\"', as it loads it",
    ),
    "the packages": (
        META.replace("# a reason", "# [py != 'x']"),
        "compared 1 configuration: 1 would build other packages\n  linux_64_: demo: - run: zlib",
    ),
}


@pytest.mark.parametrize(("meta", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_recipe_that_a_reader_refuses_is_written_only_anyway(feedstock: Path, meta: str, reason: str) -> None:
    (feedstock / "recipe" / "meta.yaml").write_text(meta)
    before = files(feedstock)
    refused = edit(feedstock, "--write")
    assert refused.returncode == 1
    assert reason in refused.stderr
    assert "Nothing was written. --anyway writes it, and keeps the meta.yaml beside it." in refused.stderr
    assert files(feedstock) == before
    written = edit(feedstock, "--write", "--anyway")
    assert written.returncode == 1
    assert (feedstock / "recipe" / "meta.yaml").read_text() == meta
    assert (feedstock / "recipe" / "recipe.yaml").is_file()


BAD = {
    "no YAML": META.replace("build:", "build:\n\tnumber: 2\n"),
    "a list": "- a\n",
    "an endless list": "{% for i in range(10 ** 9) %}\n# {{ i }}\n{% endfor %}\n" + META,
    "an invalid selector": META.replace("# [unix]", "# [import os]"),
    "doubling": META + "{% set a = python %}\n" + "{% set a = a ~ a %}\n" * 40 + "extra:\n  x: {{ a }}\n",
    "loops within loops": "".join(f"{{% for a{i} in [1, 2, 3] %}}\n" for i in range(30)) + META,
    "huge": "package:\n" + "  name: x\n" * 60_000,
}


@pytest.mark.parametrize("meta", BAD.values(), ids=BAD.keys())
def test_bad_input_ends_without_a_traceback(feedstock: Path, meta: str) -> None:
    (feedstock / "recipe" / "meta.yaml").write_text(meta)
    before = files(feedstock)
    ended = edit(feedstock)
    assert ended.returncode in {0, 2}
    assert "Traceback" not in ended.stderr
    assert files(feedstock) == before


def test_a_recipe_yaml_is_refused(feedstock: Path) -> None:
    (feedstock / "recipe" / "meta.yaml").unlink()
    (feedstock / "recipe" / "recipe.yaml").write_text('package: {name: a, version: "1"}\n')
    refused = edit(feedstock)
    assert refused.returncode == 2
    assert "the recipe is a recipe.yaml already" in refused.stderr


def test_a_comparison_without_configurations_is_unknown(feedstock: Path) -> None:
    """Which comes first, and is not committed, nor written with --strict."""
    (feedstock / ".ci_support" / "linux_64_.yaml").unlink()
    subprocess.run(["git", "init", "-q"], cwd=feedstock, check=True)
    before = files(feedstock)
    reason = "no package was compared: there are no configurations in .ci_support"
    shown = edit(feedstock)
    assert (shown.returncode, shown.stderr.splitlines()[0]) == (0, f"note: {reason}")
    for words, status in ((["--strict"], 1), (["--write", "--strict"], 1), (["--commit"], 2)):
        refused = edit(feedstock, *words)
        assert refused.returncode == status
        assert reason in refused.stderr
        assert files(feedstock) == before
    assert edit(feedstock, "--write").returncode == 0
