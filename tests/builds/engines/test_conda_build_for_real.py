"""gpuprobe built by a real conda-build, on the stand-in channel: its `meta.yaml` form, made from the spec.

It takes minutes, so it runs only if you give one: FEEDSTOCK_TOOLS_TEST_CONDA_BUILD=/path/to/bin/conda-build.
docs/engines.md describes how to make one from source with packages from PyPI.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.channel.packages.reading import read_documents
from tests.support.command import environment, run, tool
from tests.support.conda_build import NEEDS_CONDA_BUILD, path_with_conda_build
from tests.support.feedstocks import HERE, copy_of_example
from tests.support.needs import needs

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = f"linux_64_cuda11.2_py{VERSION}"
pytestmark = [
    needs("system", HERE.subdir == "linux-64", "the configurations are those for linux-64"),
    NEEDS_CONDA_BUILD,
]


def _run(path: str, feedstock: Path, command: str, *words: str) -> str:
    """What a command of feedstock-tools prints under a search path."""
    ran = run(tool(command, *words), feedstock, environment(PATH=path))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


def _packages(channel: Path) -> dict[str, dict[str, Any]]:
    """Name → the index of a package, its run exports and the paths of its files."""
    found = {}
    wanted = ("info/index.json", "info/run_exports.json", "info/paths.json")
    for package in channel.glob("linux-64/*.conda"):
        index, exports, paths = (json.loads(text or b"{}") for text in read_documents(package, wanted).values())
        files = sorted(each["_path"] for each in paths["paths"])
        found[index["name"]] = {**index, "run_exports": exports, "files": files, "file": package.name}
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The search path with the real conda-build."""
    return path_with_conda_build(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def feedstock(tmp_path_factory: pytest.TempPathFactory, path: str) -> Path:
    """gpuprobe with a `meta.yaml` and no `recipe.yaml`, built with both engines into `by-<engine>`."""
    folder = copy_of_example("gpuprobe", tmp_path_factory.mktemp("meta"))
    (folder / "recipe" / "recipe.yaml").unlink()
    spec = folder / "feedstock.yaml"
    spec.write_text(spec.read_text().replace("format: v1", "format: v0"))
    _run(path, folder, "generate")
    _run(path, folder, "rerender")
    for engine in ("conda-build", "rattler-build"):
        output = folder / f"by-{engine}"
        words = ("--engine", engine, "--channel", "stand-in", "--retries", "0", "--output-dir", str(output))
        (folder.parent / f"{engine}.txt").write_text(_run(path, folder, "build", NAME, *words))
    return folder


def test_its_packages_have_the_planned_names(feedstock: Path, path: str) -> None:
    """But for the hash of the one that a run export of its `stdlib` has added a virtual package to."""
    told = {line.strip() for line in _run(path, feedstock, "outputs", NAME).splitlines() if line.startswith(" ")}
    made = _packages(feedstock / "by-conda-build" / "built-on-stand-in")
    other = {each["name"] for each in made.values() if f"linux-64/{each['file']}" not in told}
    assert set(made) == {"libgpuprobe", "gpuprobe-base", "gpuprobe", "gpuprobe-gpu"}
    assert other <= {"libgpuprobe"}


def test_they_equal_those_of_the_embedded_engine(feedstock: Path) -> None:
    """But for hashes, and for how pins are written."""
    by_conda_build, embedded = (
        _packages(feedstock / f"by-{engine}" / "built-on-stand-in") for engine in ("conda-build", "rattler-build")
    )
    assert set(by_conda_build) == set(embedded)
    for name, made in by_conda_build.items():
        for key in ("name", "version", "build_number", "subdir", "constrains", "run_exports", "files", "license"):
            assert made.get(key) == embedded[name].get(key), (name, key)
        assert {spec.split()[0] for spec in made["depends"]} == {spec.split()[0] for spec in embedded[name]["depends"]}
    # The embedded engine lists the additions of run exports in no particular order.
    assert by_conda_build["libgpuprobe"]["depends"] == sorted(embedded["libgpuprobe"]["depends"])


def test_its_own_tests_were_run(feedstock: Path) -> None:
    said = (feedstock.parent / "conda-build.txt").read_text()
    assert said.count("TEST END:") == 4


def test_it_is_not_built_again(feedstock: Path, path: str) -> None:
    output = str(feedstock / "by-conda-build")
    words = ("--engine", "conda-build", "--channel", "stand-in", "--output-dir", output)
    assert "Nothing to do" in _run(path, feedstock, "build", NAME, *words)
