"""A run on the stand-in channel where nothing compiles for one of two platforms: left out, or refused where named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from feedstock_tools.builds.stand_in.wheels import Fetching
from feedstock_tools.report.run.fetching import fetching_in_lines
from tests.support.command import environment, run, tool
from tests.support.feedstocks import HERE
from tests.support.needs import needs

OTHER = "linux-aarch64" if HERE.arch == "64" else "linux-64"
ARM = OTHER.replace("-", "_") + "_"
OWN = f"{HERE.name}_"
RECIPE = f"""
schema_version: 1
package: {{name: two-platforms, version: "1.0"}}
build: {{number: 0, script: [mkdir -p "$PREFIX/share", touch "$PREFIX/share/two-platforms"]}}
requirements:
  build:
    - if: target_platform == "{OTHER}"
      then: ["${{{{ compiler('c') }}}}"]
about: {{license: MIT, summary: A package that compiles for one of its platforms}}
"""

pytestmark = needs("system", HERE.os == "linux", "the stand-in channel has compilers for Linux only")


@pytest.fixture
def two_platforms(tmp_path: Path) -> Path:
    """A feedstock that compiles for the other Linux alone."""
    folder = tmp_path / "feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/recipe.yaml").write_text(RECIPE)
    (folder / ".ci_support").mkdir()
    common = "c_compiler: [gcc]\nc_compiler_version: ['14']\n"
    (folder / f".ci_support/{ARM}.yaml").write_text(f"{common}target_platform: [{OTHER}]\n")
    (folder / f".ci_support/{OWN}.yaml").write_text(f"target_platform: [{HERE.subdir}]\n")
    return folder


def build(feedstock: Path, *words: str) -> CompletedProcess[str]:
    """Build where the cross compiler on PATH does not work, and nothing answers pip."""
    programs = feedstock.parent / "bin"
    programs.mkdir()
    for machine in ("aarch64", "x86_64"):
        (programs / f"{machine}-linux-gnu-gcc").write_text("#!/bin/sh\nexit 1\n")
        (programs / f"{machine}-linux-gnu-gcc").chmod(0o755)
    variables = environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        XDG_CACHE_HOME=str(feedstock.parent / "no-zig-here"),
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_EXTRA_INDEX_URL="",
        PIP_CONFIG_FILE=os.devnull,
    )
    return run(tool("build", *words, "--channel", "stand-in"), feedstock, variables)


REASON = f"there is no C compiler for {OTHER} on PATH"


def test_all_leaves_out_what_nothing_here_compiles(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    left_out, begun = ran.stdout.index(f"Left out: {ARM} cannot be built here: {REASON}"), ran.stdout.index("building")
    assert left_out < begun, "it says so before anything starts"
    assert "the package index cannot be reached" in ran.stdout
    assert list(two_platforms.glob(f"build_artifacts/*/{HERE.subdir}/two-platforms-*.conda"))


def test_what_is_left_out_is_in_the_json_with_its_reason(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", "--json")
    assert json.loads(ran.stdout)["left_out"][ARM].startswith(REASON)


def test_a_name_that_nothing_here_compiles_is_an_error_before_anything_starts(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", ARM)
    assert ran.returncode == 2
    assert f"error: {ARM} cannot be built here: {REASON}" in ran.stderr
    assert "building" not in ran.stdout
    assert not list(two_platforms.rglob("*.conda"))


def test_all_that_nothing_here_compiles_is_an_error(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", "--filter", f"{OTHER.replace('-', '_')}*")
    assert (ran.returncode, REASON in ran.stderr) == (2, True)


def test_a_download_is_told_at_its_start_every_two_seconds_and_at_its_end() -> None:
    lines: list[str] = []
    watch = fetching_in_lines(lines.append)
    for tenth in range(50):
        watch(Fetching("zig", "fetching", tenth / 10, done=tenth * 2_000_000, size=100_000_000))
    watch(Fetching("zig", "unpacking", 6.0, size=100_000_000))
    watch(Fetching("zig", "ready", 6.1, size=100_000_000))
    assert lines == [
        "Fetching zig (100 MB), which compiles where PATH has no compiler",
        "Fetching zig: 40 MB of 100 MB after 2 s",
        "Fetching zig: 80 MB of 100 MB after 4 s",
        "Unpacking zig after 6 s",
        "zig is ready after 6 s; later builds use it as it is.",
    ]
