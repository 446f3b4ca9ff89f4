"""conda-build out of a channel, for a machine that has none on its search path."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.builds.engines import conda_environment
from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.engines.conda_build import CondaBuild
from feedstock_tools.builds.engines.conda_environment import CondaEnvironment
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from tests.support.feedstocks import HERE
from tests.support.needs import needs

pytestmark = needs("system", HERE.os != "win", "the program is a shell script")


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    folder = tmp_path / "channel"
    add_conda_build(folder, "26.7.1")
    return folder


def add_conda_build(channel: Path, version: str) -> None:
    program = PackageFile("bin/conda-build", f"#!/bin/sh\necho conda-build {version}\n".encode(), executable=True)
    write_package(channel, PackageMetadata("conda", version, "0", 0, HERE.subdir))
    write_package(channel, PackageMetadata("conda-build", version, "0", 0, HERE.subdir, depends=("conda",)), [program])
    index_channel(channel)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one process remembers, each test forgets."""
    for remembered in (conda_environment._solution, conda_environment._why_not):
        remembered.cache_clear()


def test_its_version_is_known_before_its_packages_are_fetched(channel: Path, tmp_path: Path) -> None:
    own = CondaEnvironment(tmp_path / "cache", str(channel))
    engine = CondaBuild({"PATH": str(tmp_path)}, own)
    assert engine.why_not("linux-64", "linux-64") is None
    assert engine.version == "26.7.1"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["solution.json"]
    ended = subprocess.run([own.program()], capture_output=True, text=True, check=True)
    assert ended.stdout == "conda-build 26.7.1\n"


def test_it_is_kept_for_a_month_and_longer_where_the_channel_is_gone(channel: Path, tmp_path: Path) -> None:
    own = CondaEnvironment(tmp_path / "cache", str(channel))
    first = own.program()
    add_conda_build(channel, "27.1.0")
    conda_environment._solution.cache_clear()
    assert (own.version, own.program()) == ("26.7.1", first)
    solution = tmp_path / "cache" / "solution.json"
    content = json.loads(solution.read_text())
    solution.write_text(json.dumps({**content, "solved": content["solved"] - 31 * 24 * 3600, "day": "2026-01-01"}))
    channel.rename(tmp_path / "gone")
    conda_environment._solution.cache_clear()
    assert own.version == "26.7.1"
    (tmp_path / "gone").rename(channel)
    conda_environment._solution.cache_clear()
    assert own.version == "27.1.0"


def test_a_half_made_environment_is_made_again(channel: Path, tmp_path: Path) -> None:
    own = CondaEnvironment(tmp_path / "cache", str(channel))
    program = own.program()
    (program.parent.parent / "complete").unlink()
    program.unlink()
    assert "26.7.1" in own.program().read_text()


def test_a_machine_without_conda_build_and_without_its_channel_says_both(tmp_path: Path) -> None:
    own = CondaEnvironment(tmp_path / "cache", (tmp_path / "missing").as_uri())
    reason = CondaBuild({"PATH": str(tmp_path)}, own).why_not("linux-64", "linux-64") or ""
    assert "there is no conda-build on PATH, and none can be fetched: " in reason
    assert "missing" in reason


def test_it_builds_a_meta_yaml_before_a_conversion_does(
    channel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "feedstock" / "recipe"
    recipe.mkdir(parents=True)
    (recipe / "meta.yaml").write_text("package: {name: any, version: 1}\n")
    own = CondaEnvironment(tmp_path / "cache", str(channel))
    monkeypatch.setattr(Engines, "_conda_environment", own)
    engines = Engines(recipe.parent, recipe / "recipe.yaml", {"PATH": str(tmp_path)})
    assert not engines.need_a_conversion
    choice = engines.choose(HERE.subdir)
    assert isinstance(choice.engine, CondaBuild)
    assert "comes from conda-forge" in choice.reason
