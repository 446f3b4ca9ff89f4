"""What a rerender keeps of the staging outputs of a `recipe.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from feedstock_tools.recipe.v1.recipe import without_staging_builds
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.yaml_reading.nodes import parse_texts

RECIPE = """\
recipe: {name: demo, version: "1"}
outputs:
  - build:
      script:
        env:
          WHERE: ${{ triplet }}
    # for all of them
    staging: {name: stage}
    requirements:
      build:
        - if: unix
          then: make ${{ make_version }}.*
      ignore_run_exports:
        by_name: [ "${{ ignored }}" ]
    source:
      path: ${{ folder }}
  - package: {name: libdemo}
    inherit: stage
  - package: {name: demo}
    inherit: {from: stage, run_exports: false}
    source: {path: .}
"""
PINNING = "".join(f"{key}:\n- a\n" for key in ("triplet", "make_version", "ignored", "folder"))


def _keys(folder: Path, recipe: str, rules: str) -> set[str]:
    (folder / "recipe").mkdir()
    (folder / "recipe" / "recipe.yaml").write_text(recipe)
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\nprovider: {linux_64: azure}\n")
    (folder / "pinning.yaml").write_text(PINNING)
    found = rerender(folder, pinning=folder / "pinning.yaml", rules=Rules.parse(rules))
    return set(yaml.safe_load(found.files["linux_64_.yaml"])) & set(yaml.safe_load(PINNING))


@pytest.mark.parametrize(
    ("rules", "keys"),
    [("3.60.0", {"triplet", "make_version", "ignored", "folder"}), ("3.61.0", {"make_version", "folder"})],
)
def test_only_requirements_and_sources_of_a_staging_output_count(tmp_path: Path, rules: str, keys: set[str]) -> None:
    assert _keys(tmp_path, RECIPE, rules) == keys


def test_the_source_of_a_staging_output_does_not_count_where_all_have_their_own(tmp_path: Path) -> None:
    recipe = RECIPE.replace("    inherit: stage\n", "    inherit: stage\n    source: {path: .}\n")
    assert _keys(tmp_path, recipe, "3.61.0") == {"make_version"}


def test_what_stays_stays_on_its_line() -> None:
    text = without_staging_builds(RECIPE, Path("recipe.yaml"))
    assert text.count("\n") == RECIPE.count("\n")
    before, after = RECIPE.splitlines(), text.splitlines()
    assert [line for line in after if line] == [
        "  -" if line == "  - build:" else line
        for line in before
        if not any(word in line for word in ("script", "env", "WHERE", "for all", "ignore", "by_name"))
    ]
    assert all(kept in ("", "  -", line) for line, kept in zip(before, after, strict=True))
    content = parse_texts(text, Path("recipe.yaml"))
    assert list(content["outputs"][0]) == ["staging", "requirements", "source"]


@pytest.mark.parametrize(
    "recipe",
    [
        "package: {name: demo}\nabout:\n  summary: a staging area\n",
        "outputs:\n  - {staging: {name: stage}, build: {script: make}}\n",
        "outputs:\n  - staging: {name: stage}\n    package: {name: both}\n    build: {script: make}\n",
        "outputs: staging\n",
        "- staging\n",
    ],
)
def test_other_recipes_stay_as_they_are(recipe: str) -> None:
    assert without_staging_builds(recipe, Path("recipe.yaml")) == recipe


@pytest.mark.parametrize(
    "script", ["|\n        make\n        make install\n", "[make, install]\n", "make\n", "\n        - a\n"]
)
def test_values_of_all_forms_are_left_out_whole(script: str) -> None:
    recipe = f"outputs:\n  - staging: {{name: stage}}\n    build:\n      script: {script}  - package: {{name: demo}}\n"
    kept = parse_texts(without_staging_builds(recipe, Path("recipe.yaml")), Path("recipe.yaml"))
    assert kept == {"outputs": [{"staging": {"name": "stage"}}, {"package": {"name": "demo"}}]}
