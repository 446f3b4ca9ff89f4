"""Rerenders by the rules of older versions, on small feedstocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from tests.support.smithy_release import write_release

PLAIN = "package: {name: demo, version: '1'}\nrequirements:\n  run:\n    - zlib\n"
FORGE = "provider: {linux: azure, osx: travis, win: appveyor}\n"
CHANNELS = {"channel_sources", "channel_targets", "docker_image", "build_number_decrement"}


def _files(
    folder: Path, rules: str, recipe: str, pinning: str, forge: str = FORGE, name: str = "meta.yaml"
) -> Mapping[str, Any]:
    """The configurations of a feedstock with this recipe, by name."""
    (folder / "recipe").mkdir(exist_ok=True)
    (folder / "recipe" / name).write_text(recipe)
    (folder / "conda-forge.yml").write_text(forge)
    (folder / "pinning.yaml").write_text(pinning)
    found = rerender(folder, pinning=folder / "pinning.yaml", rules=Rules.parse(rules))
    return {key.removesuffix(".yaml"): yaml.safe_load(text) for key, text in found.files.items()}


def test_the_first_versions_of_2018_keep_no_channels(tmp_path: Path) -> None:
    found = _files(tmp_path, "3.1.11", PLAIN, "channel_sources:\n- a\ndocker_image:\n- anvil\nzlib:\n- '1'\n")
    assert not CHANNELS & found["linux_"].keys()


@pytest.mark.parametrize("version", ["3.1.12", "3.3.4"])
def test_jobs_without_compilers_took_the_newer_of_two_images(tmp_path: Path, version: str) -> None:
    pinning = "channel_sources:\n- a\n- b\ndocker_image:\n- anvil\n- anvil-comp7\nzlib:\n- '1'\n"
    found = _files(tmp_path, version, PLAIN, pinning)
    defaults = {"channel_targets": ["conda-forge main"], "build_number_decrement": ["0"]}
    assert {key: found["linux_"][key] for key in CHANNELS} == {
        **defaults,
        "channel_sources": ["a"],
        "docker_image": ["anvil-comp7"],
    }
    assert found["osx_"]["docker_image"] == ["anvil-comp7"]
    assert found["win_"]["docker_image"] == ["anvil", "anvil-comp7"]


def test_jobs_with_compilers_kept_both_images(tmp_path: Path) -> None:
    recipe = "package: {name: demo, version: '1'}\nrequirements:\n  build:\n    - {{ compiler('c') }}\n"
    found = _files(tmp_path, "3.3.4", recipe, "c_compiler:\n- gcc\ndocker_image:\n- anvil\n- anvil-comp7\n")
    assert found["linux_"]["docker_image"] == ["anvil", "anvil-comp7"]
    assert "channel_targets" not in found["linux_"]


ZIPPED = """
cuda:
- none
- '11.2'
- '11.8'
tool:
- no
- nvcc
- nvcc
zip_keys:
-
  - cuda
  - tool
"""
SKIPPED = """
package: {name: demo, version: '1'}
build:
  skip: true  # [cuda != "none"]
  string: {{ tool }}
outputs:
  - name: libdemo
    requirements:
      run:
        - cuda
"""


@pytest.mark.parametrize(("version", "tool"), [("3.35.0", "nvcc"), ("3.35.1", "no")])
def test_a_zipped_key_that_only_splits_jobs_came_from_a_column_of_all_rows(
    tmp_path: Path, version: str, tool: str
) -> None:
    """Where one row is left, it was any value of the column, mostly the commonest."""
    found = _files(tmp_path, version, SKIPPED, ZIPPED)
    assert found[f"linux_64_tool{tool}"]["tool"] == [tool]


TWO_FIRST = """
package: {name: demo, version: '1'}
outputs:
  - name: libdemo
    requirements:
      host:
        - kind
        - extra  # [kind == "a"]
"""


def test_jobs_were_split_by_what_most_variants_of_the_first_output_use(tmp_path: Path) -> None:
    """Variants within one top level count, each once."""
    kinds = "kind:\n- a\n- b\n- c\n- d\nextra:\n- '1'\n- '2'\n"
    assert not [name for name in _files(tmp_path, "3.47.1", TWO_FIRST, kinds) if "extra" in name]
    mostly = TWO_FIRST.replace('kind == "a"', 'kind != "a"')
    assert [name for name in _files(tmp_path, "3.47.1", mostly, kinds) if "extra" in name]


def test_the_outputs_of_rattler_build_have_a_known_order(tmp_path: Path) -> None:
    recipe = """
context: {version: '1'}
recipe: {name: demo, version: '1'}
outputs:
  - package: {name: libdemo}
    requirements: {host: ['${{ kind }}', '${{ extra }}']}
  - package: {name: other}
    requirements: {host: ['${{ kind }}', libdemo]}
"""
    forge = f"{FORGE}conda_build_tool: rattler-build\n"
    pinning = "kind:\n- a\n- b\nextra:\n- '1'\n- '2'\n"
    found = _files(tmp_path, "3.47.1", recipe, pinning, forge, "recipe.yaml")
    assert "linux_64_extra1kinda" in found


def _release(folder: Path) -> Path:
    """A release with the workflows that old versions had."""
    release = write_release(folder / "release")
    for name in ("automerge", "webservices"):
        (release / "conda_smithy" / "templates" / f"{name}.yml.tmpl").write_text("a service\n")
    return release


NOTE = '\n\ndef main():\n    text = ("Written by a program, see conda_build_config.yaml, "\n            "%s.")\n' % (
    "x " * 40
)


@pytest.mark.parametrize(("version", "lines"), [("3.16.2", 1), ("3.17.0", 2), ("3.30.2", 2), ("3.30.3", 0)])
def test_the_note_in_ci_support_was_a_text_in_the_code(tmp_path: Path, version: str, lines: int) -> None:
    release = _release(tmp_path)
    code = release / "conda_smithy" / "configure_feedstock.py"
    code.write_text(code.read_text() + NOTE)
    feedstock = tmp_path / "demo-feedstock"
    feedstock.mkdir()
    _files(feedstock, version, PLAIN, "zlib:\n- '1'\n", "{}\n")
    rerender(feedstock, rules=Rules.parse(version), smithy=find_release(release)).changes().apply()
    note = (feedstock / ".ci_support" / "README").read_text()
    assert note.startswith("Written by a program" if lines else "written by a program")
    assert (not lines) or len(note.splitlines()) == lines


def test_a_skipped_recipe_is_described_by_its_name_alone(tmp_path: Path) -> None:
    release = _release(tmp_path)
    recipe = "package: {name: demo, version: '1'}\nbuild: {skip: true}\noutputs:\n  - name: libdemo\n  - name: pydemo\n"
    named = {}
    for version in ("3.39.1", "3.40.1"):
        feedstock = tmp_path / version / "demo-feedstock"
        feedstock.mkdir(parents=True)
        _files(feedstock, version, recipe, "zlib:\n- '1'\n", "{}\n")
        rerender(feedstock, rules=Rules.parse(version), smithy=find_release(release)).changes().apply()
        named[version] = (feedstock / "README.md").read_text().split("outputs ")[1].splitlines()[0]
    assert named == {"3.39.1": "libdemo, pydemo", "3.40.1": "demo"}


def test_the_readme_describes_what_is_built_where_the_plain_recipe_cannot_be_rendered(tmp_path: Path) -> None:
    """A selector on BUILD_PLATFORM keeps its last value, which here leaves a list without its key."""
    release = _release(tmp_path)
    feedstock = tmp_path / "demo-feedstock"
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / "recipe" / "meta.yaml").write_text(PLAIN)
    (feedstock / "conda-forge.yml").write_text("{}\n")
    selected = '[os.environ.get("BUILD_PLATFORM", "").startswith("linux")]'
    (feedstock / "recipe" / "conda_build_config.yaml").write_text(f"zlib:  # {selected}\n  - '1'  # [linux64]\n")
    rerender(feedstock, rules=Rules.parse("3.10.1"), smithy=find_release(release)).changes().apply()
    assert "outputs demo\n" in (feedstock / "README.md").read_text()


def test_a_name_may_be_a_variable_of_the_recipe(tmp_path: Path) -> None:
    recipe = "package: {name: '{{ kind }}', version: '1'}\n"
    found = _files(tmp_path, "3.45.0", recipe, "kind:\n- one\n- two\n", "{}\n")
    assert "linux_64_kindone" in found


def test_a_script_that_a_release_does_not_clear_stays(tmp_path: Path) -> None:
    release = _release(tmp_path)
    code = release / "conda_smithy" / "configure_feedstock.py"
    code.write_text(code.read_text() + '\n\ndef clear_scripts(forge_dir):\n    names = ["build_steps.sh"]\n')
    feedstock = tmp_path / "demo-feedstock"
    feedstock.mkdir()
    _files(feedstock, "3.27.1", PLAIN, "zlib:\n- '1'\n", "{}\n")
    for name in ("build_steps.sh", "run_win_build.bat"):
        (feedstock / ".drone").mkdir(exist_ok=True)
        (feedstock / ".drone" / name).write_text("old\n")
    rerender(feedstock, rules=Rules.parse("3.27.1"), smithy=find_release(release)).changes().apply()
    assert [path.name for path in (feedstock / ".drone").iterdir()] == ["run_win_build.bat"]
