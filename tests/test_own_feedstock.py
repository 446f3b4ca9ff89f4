"""The feedstock of this program: it says what pyproject.toml says, and its package works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest

import feedstock_tools
from feedstock_tools.builds.stand_in import open_channel
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.channel.properties import STAND_IN, properties_by_marks
from feedstock_tools.channel.solving import install, solve, virtual_packages
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.archives import own_archives
from tests.support.compilers import lend_channels, lend_own_requirements, lend_stand_in
from tests.support.needs import needs
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("unmeasured")

EXAMPLE = ROOT / "examples" / "feedstock-tools"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD_SYSTEM = PYPROJECT["project"], PYPROJECT["build-system"]


def specs(section: str) -> list[str]:
    """Requirements of its only output, without Python."""
    (output,) = read_spec(EXAMPLE).outputs
    entries = getattr(output.requirements, section)
    return [text for entry in entries if not (text := str(entry.package)).startswith("python ")]


def test_its_requirements_are_those_of_the_project() -> None:
    assert specs("run") == PROJECT["dependencies"]
    assert specs("host")[0] == "pip"
    assert specs("host")[1:] == BUILD_SYSTEM["requires"]


def test_it_has_the_version_the_oldest_python_and_the_command_of_the_project() -> None:
    spec = read_spec(EXAMPLE)
    (output,) = spec.outputs
    assert spec.version == feedstock_tools.__version__
    assert PROJECT["requires-python"] == ">=" + "".join(
        re.findall(r'python_min: \["(.+)"\]', (EXAMPLE / "feedstock.yaml").read_text())
    )
    assert list(output.entry_points) == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert spec.about.license == PROJECT["license"]
    assert (ROOT / str(spec.about.license_file[0])).is_file()


@pytest.mark.parametrize(("recipe_format", "version"), [("v0", "{{ version }}"), ("v1", "${{ version }}")])
def test_the_archive_that_it_packs_follows_the_version(recipe_format: Literal["v0", "v1"], version: str) -> None:
    texts = render(read_spec(EXAMPLE), recipe_format)
    recipe = next(text for path, text in texts.items() if path.name in ("meta.yaml", "recipe.yaml"))
    assert f"path: ../../../dist/{version}/feedstock_tools-{version}.tar.gz\n" in recipe


#: Packages of Pythons that this machine lacks stay empty: each would hold the whole of the same wheel once more.
ONE_PYTHON = """
from dataclasses import replace
from feedstock_tools.builds.stand_in import channel
tools = channel.read_tools()
wheels = tuple(wheel for wheel in tools.wheels if wheel.python in (None, "3.11"))
channel.read_tools = lambda: replace(tools, wheels=wheels)
"""


def built_package(top: Path, cache: Path, made: Path) -> Path:
    """The conda package of this checkout, built from its archive by the program on the stand-in channel."""
    feedstock = top / "examples" / "feedstock-tools"
    shutil.copytree(EXAMPLE, feedstock, ignore=shutil.ignore_patterns("build_artifacts"))
    shutil.copytree(made, top / "dist" / feedstock_tools.__version__)
    lend_own_requirements(cache)
    lend_channels(cache)
    build = command.patched(ONE_PYTHON, "build", "--feedstock", str(feedstock), "--channel", "stand-in")
    ran = command.run(build, top, command.environment(XDG_CACHE_HOME=str(cache)))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (package,) = (feedstock / "build_artifacts").rglob("feedstock-tools-*.conda")
    return package


@pytest.mark.slow
@needs("system", sys.platform == "linux", "the stand-in channel has tools for Linux only")
@needs("system", sys.version_info[:2] == (3, 11), "Python 3.11, which builds and runs the noarch package")
def test_the_conda_package_is_built_and_the_installed_program_builds_a_feedstock(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    prefix, own_cache, here = tmp_path / "prefix", tmp_path / "own", Platform.here()
    package = built_package(tmp_path, own_cache, own_archives(tmp_path_factory))
    assert properties_by_marks(read_package(package).extra) == STAND_IN
    stand_in = open_channel({**os.environ, "XDG_CACHE_HOME": str(own_cache)}, here, ["3.11"], own_cache)
    channels = [package.parents[1].as_uri(), stand_in.url]
    unpacked = Artifacts(package.parents[2]).package_cache(STAND_IN) / "pkgs"
    wanted = ["feedstock-tools", "python 3.11.*"]
    install(solve(wanted, channels, here, virtual=virtual_packages(here)), prefix, here, cache=unpacked)
    program = str(prefix / "bin" / "feedstock-tools")
    machine = {"HOME": str(tmp_path), "PATH": f"{prefix}/bin:{os.defpath}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    lend_stand_in(tmp_path / "cache")

    def ran(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], cwd=tmp_path, env=machine, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert feedstock_tools.__version__ in ran("--version")
    shutil.copytree(ROOT / "examples" / "gpukernel", tmp_path / "gpukernel")
    ran("rerender", "gpukernel", "--check")
    built = ran("build", "--feedstock", "gpukernel", "--channel", "stand-in", "linux_64_cpu")
    assert "built gpukernel-1.0.0-cpu_" in built
