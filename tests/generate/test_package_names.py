"""The packages of conda-forge for projects of PyPI: our own table, a mapping in a file, guesses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.spec import init
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.generate.package_names import PackageNames, read_names
from tests.support.projects import project_in

MAPPING = {
    "libdemo-ops": "demo-ops",
    "demo_ops": "demo-ops",
    "ops-cpu-only": "ops",
    "pyops": "ops",
    "pytorch-cpu": "torch",
    "demo": None,
    "; rm": "bad",
}


def mapping_in(folder: Path, content: object = MAPPING) -> Path:
    path = folder / "names.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    os.utime(path, (1_767_225_600, 1_767_225_600))  # 2026-01-01
    return path


@pytest.mark.parametrize(
    ("project", "package", "is_guess"),
    [
        pytest.param("Demo.Ops", "demo_ops", False, id="the one of its own name"),
        pytest.param("ops", "pyops", False, id="else the shortest"),
        pytest.param("torch", "pytorch", False, id="our own table first"),
        pytest.param("New_One", "new_one", True, id="one that it lacks"),
        pytest.param("demo", "demo", True, id="a package of no project"),
        pytest.param("bad", "bad", True, id="a name that no package can have"),
    ],
)
def test_a_project_and_its_package(project: str, package: str, is_guess: bool, tmp_path: Path) -> None:
    names = read_names(mapping_in(tmp_path))
    assert (names.package(project), names.is_guess(project), names.date) == (package, is_guess, "2026-01-01")


@pytest.mark.parametrize(
    ("package", "project"),
    [
        pytest.param("pytorch", "torch", id="our own table"),
        pytest.param("jaxlib", "jaxlib", id="not the plugin that it is the package of"),
        pytest.param("tensorflow", "tensorflow", id="not the build for the CPU alone"),
        pytest.param("cupy", None, id="a build for each CUDA"),
        pytest.param("python-rapidjson", None, id="no project has the name without python"),
        pytest.param("snappy", None, id="the library has the name of other software of PyPI"),
        pytest.param("glfw", None, id="the library has the name of its binding"),
    ],
)
def test_a_package_and_the_project_that_it_is_made_of(package: str, project: str | None) -> None:
    assert PackageNames().project(package) == project


def test_without_a_mapping_nothing_is_called_a_guess() -> None:
    assert not PackageNames().is_guess("new-one")


@pytest.mark.parametrize("content", ["[]", "[" * 100_000, "3", "no"], ids=range(4))
def test_what_is_no_mapping_is_an_error_with_its_path(content: str, tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"names\.json: is not a mapping of names"):
        read_names(path)


def test_a_spec_says_which_names_are_guesses_and_the_day_of_the_mapping(tmp_path: Path) -> None:
    toml = '[project]\nname = "a"\nversion = "1"\ndependencies = ["ops>=2", "new-one"]\n'
    (tmp_path / "a").mkdir()
    words = [str(project_in(tmp_path / "a", pyproject__toml=toml)), "-o", str(tmp_path / "f")]
    made = CliRunner().invoke(init, [*words, "--names", str(mapping_in(tmp_path))], standalone_mode=False)
    assert made.exception is None, made.exception
    lines = (tmp_path / "f/feedstock.yaml").read_text(encoding="utf-8").splitlines()
    assert "      # PyPI's names are translated by a mapping of conda-forge's of 2026-01-01." in lines
    assert "        - pyops >=2" in lines
    assert "        - new-one  # a guess: the mapping of PyPI's names does not have it" in lines


def test_a_mapping_that_cannot_be_fetched_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    words = [str(project_in(tmp_path / "a", setup__py="setup(name='a')")), "-o", str(tmp_path / "f")]
    made = CliRunner().invoke(init, [*words, "--names", "https://127.0.0.1:9/names.json"], standalone_mode=False)
    assert isinstance(made.exception, FeedstockError)
    assert "the mapping of names cannot be fetched" in str(made.exception)
    assert not (tmp_path / "f").exists()
