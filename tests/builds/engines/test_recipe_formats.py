"""Feedstocks with a `meta.yaml`: built through the recipe.yaml of the same spec, or listed and refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import HERE, copy_of_example

META = """
{% set version = "1.2" %}
package:
  name: oldtiny
  version: {{ version }}
build:
  number: 4
requirements:
  host:
    - python
  run:
    - python
about:
  license: BSD-3-Clause
"""
ASKED = ("--engine", "rattler-build")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`feedstock-tools build` in a folder; a list alone starts nothing."""
    if "--list" in arguments:
        return command.here("build", *arguments, folder=folder)
    return command.run(command.tool("build", *arguments), folder)


@pytest.fixture
def gpuprobe(tmp_path: Path) -> Path:
    """A copy of the example."""
    folder = copy_of_example("gpuprobe", tmp_path)
    spec = folder / "feedstock.yaml"
    fewer = {"python: [3.11, 3.12, 3.13, 3.14]": "python: [3.12]", "versions: all": "versions: [11.2, 12.9]"}
    text = spec.read_text()
    for old, new in fewer.items():
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text)
    return folder


def packages(folder: Path) -> list[str]:
    """What the CPU configuration of linux-64 would build."""
    listed = run(folder, "--list", "linux_64_cpu", "--json")
    assert listed.returncode == 0, listed.stderr
    return [output["file"] for entry in json.loads(listed.stdout) for output in entry["outputs"]]


def test_a_stale_recipe_and_stale_configurations_are_made_again_first(gpuprobe: Path) -> None:
    listed = run(gpuprobe, "--list", "--json")
    assert "Regenerated from feedstock.yaml" in listed.stderr
    assert "Rerendered" in listed.stderr
    assert {python for entry in json.loads(listed.stdout) for python in entry["pythons"]} == {"3.12"}
    assert run(gpuprobe, "--list", "--json").stderr == ""


def test_a_recipe_that_was_edited_by_hand_is_built_as_it_is(gpuprobe: Path) -> None:
    packages(gpuprobe)
    recipe = gpuprobe / "recipe" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace('version: "1.0.0"', 'version: "1.0.1"'))
    listed = run(gpuprobe, "--list", "linux_64_cpu", "--json")
    assert "Not regenerated, since edited by hand: recipe/recipe.yaml" in listed.stderr
    assert {output["version"] for output in json.loads(listed.stdout)[0]["outputs"]} == {"1.0.1"}


def test_a_meta_yaml_with_a_spec_is_built_through_the_recipe_of_the_same_spec(gpuprobe: Path) -> None:
    direct = packages(gpuprobe)
    spec = gpuprobe / "feedstock.yaml"
    spec.write_text(spec.read_text().replace("format: v1", "format: v0"))
    assert packages(gpuprobe) == direct
    assert (gpuprobe / "recipe" / "meta.yaml").is_file()
    assert not (gpuprobe / "recipe" / "recipe.yaml").exists()


def test_the_recipe_for_a_meta_yaml_follows_a_spec_that_is_changed_back(gpuprobe: Path) -> None:
    spec = gpuprobe / "feedstock.yaml"
    original = spec.read_text().replace("format: v1", "format: v0")
    spec.write_text(original)
    first = packages(gpuprobe)
    spec.write_text(original.replace("version: 1.0.0", "version: 1.0.1"))
    assert all("-1.0.1-" in package for package in packages(gpuprobe))
    spec.write_text(original)
    assert packages(gpuprobe) == first


@pytest.fixture
def without_spec(tmp_path: Path) -> Path:
    """A feedstock as it comes from conda-forge: `meta.yaml`, `.ci_support`, no spec."""
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "meta.yaml").write_text(META)
    (tmp_path / ".ci_support").mkdir()
    text = f"python:\n- 3.11.* *_cpython\n- 3.12.* *_cpython\ntarget_platform:\n- {HERE.subdir}\n"
    (tmp_path / ".ci_support" / f"{HERE.name}_.yaml").write_text(text)
    return tmp_path


def test_a_meta_yaml_without_a_spec_is_listed(without_spec: Path) -> None:
    (entry,) = json.loads(run(without_spec, "--list", "--json").stdout)
    assert [(output["name"], output["version"]) for output in entry["outputs"]] == [("oldtiny", "1.2")] * 2
    assert entry["pythons"] == ["3.11", "3.12"]
    assert entry["built"] is False


def test_a_meta_yaml_without_a_spec_is_converted_and_built_if_nothing_is_lost(without_spec: Path) -> None:
    assert run(without_spec, f"{HERE.name}_py3.12").returncode == 0
    recipe = without_spec / "recipe" / "meta.yaml"
    recipe.write_text(recipe.read_text() + "\nabout:\n  license_url: https://example.org\n")
    refused = run(without_spec, f"{HERE.name}_py3.12")
    assert refused.returncode == 2
    assert "it would lose meta.yaml:17: 'about: license_url' has no equivalent in a recipe.yaml" in refused.stderr


def test_a_meta_yaml_without_a_spec_is_converted_and_built_and_lines_without_a_form_are_named(
    without_spec: Path,
) -> None:
    recipe = without_spec / "recipe" / "meta.yaml"
    recipe.write_text(before := recipe.read_text() + "\nabout:\n  license_url: https://example.org\n")
    built = run(without_spec, f"{HERE.name}_py3.12", *ASKED)
    assert built.returncode == 0, built.stderr
    assert "Converted the meta.yaml to a recipe.yaml for the embedded engine" in built.stdout
    assert "conda-build makes packages with the same names but for hashes." in built.stdout
    assert "Not converted: 1 line of the meta.yaml:" in built.stdout
    assert "'about: license_url' has no equivalent in a recipe.yaml" in built.stdout
    assert built.stdout.count("-- built oldtiny-1.2-") == 1
    assert (without_spec / "recipe" / "meta.yaml").read_text() == before
    assert not (without_spec / "recipe" / "recipe.yaml").exists()
    again = run(without_spec, f"{HERE.name}_py3.12", *ASKED)
    assert again.returncode == 0
    assert "-- built" not in again.stdout


def test_a_meta_yaml_that_cannot_be_converted_is_refused_with_the_reason(without_spec: Path) -> None:
    recipe = without_spec / "recipe" / "meta.yaml"
    recipe.write_text(recipe.read_text().replace("package:", "package:\n\tname: x", 1))
    refused = run(without_spec, f"{HERE.name}_")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_packages_with_other_names_are_built_only_by_an_engine_that_was_asked_for(without_spec: Path) -> None:
    recipe = without_spec / "recipe" / "meta.yaml"
    string = '{% set kind = "x_h{{ PKG_HASH }}" %}\n'
    recipe.write_text(string + recipe.read_text().replace("number: 4", "number: 4\n  string: {{ kind }}_4"))
    refused = run(without_spec, f"{HERE.name}_")
    assert refused.returncode == 2
    assert (
        f"{HERE.name}_cpu cannot be built here: its converted recipe makes other packages: conda-build would make"
        in (refused.stderr)
    )
    assert "--engine rattler-build" in refused.stderr
    built = run(without_spec, f"{HERE.name}_py3.12", "--engine", "rattler-build")
    assert built.returncode == 0, built.stderr
    assert "conda-build makes packages with other names." in built.stdout


def test_of_many_lines_without_a_form_the_first_are_named_and_the_others_counted(without_spec: Path) -> None:
    recipe = without_spec / "recipe" / "meta.yaml"
    lines = "".join(f"  {word}: x\n" for word in ("one", "two", "three", "four", "five", "six", "seven"))
    recipe.write_text(recipe.read_text().replace("  number: 4\n", f"  number: 4\n{lines}"))
    built = run(without_spec, f"{HERE.name}_py3.12", *ASKED)
    assert "Not converted: 7 lines of the meta.yaml:" in built.stdout
    assert "more; `feedstock-tools edit to-v1` shows them all" in built.stdout


def test_conda_build_is_taken_to_cross_build_on_this_machine_too(without_spec: Path) -> None:
    recipe = without_spec / "recipe" / "meta.yaml"
    skip = "number: 4\n  skip: true  # [build_platform != target_platform and py == 311]"
    recipe.write_text(recipe.read_text().replace("number: 4", skip))
    support = without_spec / ".ci_support"
    text = (support / f"{HERE.name}_.yaml").read_text()
    other = "linux-aarch64" if HERE.subdir == "linux-64" else "linux-64"
    (support / "other_.yaml").write_text(text.replace(HERE.subdir, other))
    planned = command.here("plan", "other_", folder=without_spec)
    assert "conda-build makes packages with the same names but for hashes." in planned.stderr
