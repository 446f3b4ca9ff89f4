"""`fleet_bazel: recipe` and `fleet_numpy: recipe`: a host gets the versions that a feedstock's recipe pins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.provision.hosts import write_scripts
from feedstock_tools.builds.fleet.provision.inventory import Inventory
from feedstock_tools.builds.fleet.provision.pins import with_pins
from feedstock_tools.builds.fleet.provision.settings import plan_of
from feedstock_tools.builds.fleet.provision.wheelhouse import Archive, Target
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError
from tests.support.needs import needs

META = """\
package:
  name: pinned
  version: 1.0
build:
  number: 0
requirements:
  build:
    - bazel 6.*
    - bazel <8
  host:
    - python
    - numpy
"""
RECIPE = """\
schema_version: 1
package:
  name: pinned
  version: "1.0"
build:
  number: 0
requirements:
  build:
    - bazel
    - bazel 6.*
  host:
    - python
    - numpy
"""
VALUES = """\
target_platform:
- {subdir}
python:
- 3.11.* *_cpython
- 3.12.* *_cpython
numpy:
- '{numpy}'
- '2.1'
zip_keys:
- - python
  - numpy
"""


def _feedstock(folder: Path, recipe: str = META) -> Path:
    name = "recipe.yaml" if recipe.startswith("schema_version") else "meta.yaml"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe" / name).write_text(recipe)
    (folder / ".ci_support").mkdir()
    if name == "recipe.yaml":
        (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    for subdir, numpy in (("linux-64", "1.26"), ("linux-aarch64", "2.0")):
        text = VALUES.format(subdir=subdir, numpy=numpy)
        (folder / ".ci_support" / f"{subdir.replace('-', '_')}_.yaml").write_text(text)
    return folder


def _pinned(folder: Path, **settings: str) -> tuple[str, str]:
    """Bazel and NumPy of a host with the settings of an inventory beside the feedstock."""
    given = {f"fleet_{name}": value for name, value in settings.items()}
    plan = plan_of("h1", {"fleet_hub": "a:1", "fleet_bazel_file": "bazel", "fleet_feedstock": "pinned", **given})
    pinned = with_pins(plan, folder / "inventory.yml")
    return pinned.bazel, pinned.numpy


@pytest.mark.parametrize("recipe", [META, RECIPE], ids=["meta.yaml", "recipe.yaml"])
def test_a_host_gets_what_the_recipe_pins_for_its_machine_and_python(tmp_path: Path, recipe: str) -> None:
    _feedstock(tmp_path / "pinned", recipe)
    both = {"bazel": "recipe", "numpy": "recipe"}
    assert _pinned(tmp_path, **both) == ("6.*", "1.26.*")
    assert _pinned(tmp_path, **both, machine="aarch64") == ("6.*", "2.0.*")
    assert _pinned(tmp_path, **both, machine="aarch64", python="3.12") == ("6.*", "2.1.*")


def test_a_version_of_the_inventory_wins_and_what_it_leaves_out_stays_off(tmp_path: Path) -> None:
    _feedstock(tmp_path / "pinned")
    assert _pinned(tmp_path, bazel="5.4.0", numpy="recipe") == ("5.4.0", "1.26.*")
    assert _pinned(tmp_path, numpy="1.21.6") == ("", "1.21.6")


def test_an_inventory_in_the_feedstock_names_none(tmp_path: Path) -> None:
    plan = plan_of("h1", {"fleet_hub": "a:1", "fleet_numpy": "recipe"})
    assert with_pins(plan, _feedstock(tmp_path) / "inventory.yml").numpy == "1.26.*"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (META.replace("bazel 6.*", "bazel >=6"), "for linux-64 and Python 3.11 the recipe pins no version of bazel"),
        (META.replace("bazel <8", "bazel 7.4.1"), "the recipe pins several versions of bazel: 6.*, 7.4.1.*"),
    ],
)
def test_a_recipe_that_leaves_the_version_open_is_refused(tmp_path: Path, recipe: str, message: str) -> None:
    _feedstock(tmp_path / "pinned", recipe)
    with pytest.raises(InputError, match=re.escape(message)) as raised:
        _pinned(tmp_path, bazel="recipe")
    assert raised.value.mistakes[0].hint == "Set the version in the inventory: fleet_bazel."


def test_a_folder_that_is_no_feedstock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"host h1: there is no such folder.*\n  Set fleet_feedstock in the inventory"):
        _pinned(tmp_path, numpy="recipe")


def test_up_sends_the_numpy_of_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _feedstock(tmp_path / "pinned")
    (tmp_path / "wheels.tar").write_bytes(b"wheels")
    targets: list[Target] = []

    def wheelhouse(target: Target, *_: object) -> Archive:
        targets.append(target)
        return Archive(tmp_path / "wheels.tar", "abc")

    monkeypatch.setattr("feedstock_tools.builds.fleet.provision.hosts.wheelhouse", wheelhouse)
    plan = plan_of("h1", {"fleet_hub": "a:1", "fleet_numpy": "recipe", "fleet_feedstock": "pinned"})
    inventory = Inventory(tmp_path / "inventory.yml", "mine", (plan,))
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    write_scripts(inventory, tmp_path / "scripts", environment, lambda _: None)
    assert targets == [Target("3.11", "x86_64", "1.26.*")]


@needs("system", sys.platform != "win32", "bash")
@pytest.mark.parametrize(("wanted", "passes"), [("6.5.0", True), ("6.*", True), ("6.1.0", False), ("7.*", False)])
def test_the_bazel_of_a_host_is_held_against_its_pin(tmp_path: Path, wanted: str, passes: bool) -> None:
    tools = (data_folder("templates") / "fleet-provision.sh").read_text()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bazel").write_text("#!/bin/sh\necho bazel 6.5.0\n")
    (tmp_path / "bin" / "bazel").chmod(0o755)
    program = f"programs='{tmp_path}' bazel='{wanted}'\n{tools}\nhas_bazel"
    ended = subprocess.run(["bash", "-euc", program], capture_output=True, text=True, check=False)
    assert (ended.returncode == 0) is passes, ended.stdout
    assert ended.stdout.strip() == ("bazel 6.5.0" if passes else f"bazel 6.5.0, not {wanted}")
