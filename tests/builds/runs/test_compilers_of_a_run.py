"""A run on the stand-in channel where nothing compiles for one of two platforms: left out, or refused if named."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from feedstock_tools import stages
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Limits
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.builds.runs.run import run as run_agenda
from feedstock_tools.channel import pip
from feedstock_tools.channel.pip import Fetching
from feedstock_tools.errors import InputError
from feedstock_tools.report.observers import UNFOLDED, Lines, fetching_in_lines
from tests.support.command import environment, patched, run
from tests.support.compilers import lend_channels
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
    """A feedstock whose only platform is the other Linux."""
    folder = tmp_path / "feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/recipe.yaml").write_text(RECIPE)
    (folder / ".ci_support").mkdir()
    common = "c_compiler: [gcc]\nc_compiler_version: ['14']\n"
    (folder / f".ci_support/{ARM}.yaml").write_text(f"{common}target_platform: [{OTHER}]\n")
    (folder / f".ci_support/{OWN}.yaml").write_text(f"target_platform: [{HERE.subdir}]\n")
    return folder


def without_compilers(folder: Path) -> dict[str, str]:
    """The environment of a machine with a broken cross compiler on PATH and without a package index."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    lend_channels(folder / "no-zig-here")
    for machine in ("aarch64", "x86_64"):
        (programs / f"{machine}-linux-gnu-gcc").write_text("#!/bin/sh\nexit 1\n")
        (programs / f"{machine}-linux-gnu-gcc").chmod(0o755)
    return environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        XDG_CACHE_HOME=str(folder / "no-zig-here"),
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_EXTRA_INDEX_URL="",
        PIP_FIND_LINKS="",
        PIP_NO_INDEX="",
        PIP_CONFIG_FILE=os.devnull,
    )


#: What pip says there, without pip, which takes most of a second to start.
SAYS_SO = ("/bin/sh", "-c", "echo Network is unreachable; exit 1")
QUICK_PIP = f"from feedstock_tools.channel import pip; pip.pip_command = lambda *_: {SAYS_SO}"


def build(feedstock: Path, *words: str, pip: str = QUICK_PIP) -> CompletedProcess[str]:
    """Build on such a machine."""
    command = patched(pip, "build", *words, "--channel", "stand-in")
    return run(command, feedstock, without_compilers(feedstock.parent))


REASON = "-linux-gnu-gcc links no program"


def test_all_leaves_out_what_nothing_here_compiles_with_the_reason(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", pip="")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    left_out, begun = (
        ran.stdout.index(f"Left out: {ARM}cpu cannot be built here: "),
        ran.stdout.index("building"),
    )
    assert left_out < begun, "it says so before anything starts"
    assert f"{REASON}, and pip cannot fetch zig" in ran.stdout
    assert "the package index cannot be reached" in ran.stdout
    assert list(two_platforms.glob(f"build_artifacts/*/{HERE.subdir}/two-platforms-*.conda"))
    ran = build(two_platforms, "--all", "--json")
    assert json.loads(ran.stdout)["left_out"][ARM].partition(",")[0].endswith(REASON)


def test_a_name_that_nothing_here_compiles_is_an_error_before_anything_starts(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", ARM)
    assert ran.returncode == 2
    assert f"error: {ARM}cpu cannot be built here: " in ran.stderr
    assert REASON in ran.stderr
    assert "building" not in ran.stdout
    assert not list(two_platforms.rglob("*.conda"))


def test_all_that_nothing_here_compiles_is_an_error(two_platforms: Path) -> None:
    ran = build(two_platforms, "--all", "--filter", f"{OTHER.replace('-', '_')}*")
    assert (ran.returncode, REASON in ran.stderr) == (2, True)


def test_debug_of_what_nothing_here_compiles_is_an_error(two_platforms: Path) -> None:
    ran = build(two_platforms, "--debug", ARM)
    assert (ran.returncode, f"error: {ARM}cpu cannot be built here: " in ran.stderr) == (2, True), ran.stderr
    assert REASON in ran.stderr


def test_a_run_from_python_refuses_it_too(two_platforms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "pip_command", lambda *_: SAYS_SO)
    machine = without_compilers(tmp_path)
    workspace = open_workspace(two_platforms, None, ("stand-in",), machine)
    found = agenda(workspace, workspace.chosen([ARM]), Capacity.of_machine(None, None), 1)
    with pytest.raises(InputError, match=REASON):
        run_agenda(workspace, found, Limits(), Lines(io.StringIO(), 1, UNFOLDED))
    assert not workspace.artifacts.ledger.exists()


def test_an_unwritable_folder_is_reported_before_anything_is_fetched(two_platforms: Path) -> None:
    (two_platforms / "artifacts").touch()
    ran = build(two_platforms, "--all", "--output-dir", "artifacts/below")
    assert ran.returncode == 1
    message = f"error: {two_platforms}/artifacts/below: the folder of artifacts cannot be written\n  Give one elsewhere"
    assert message in ran.stderr
    assert "Fetching" not in ran.stdout


def test_a_download_is_reported_at_its_start_and_its_end_and_by_signs_of_life_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    signs: list[str] = []
    monkeypatch.setattr(stages, "_show", signs.append)
    watch = fetching_in_lines(lines.append)
    for tenth in range(50):
        watch(Fetching("zig", "fetching", tenth / 10, tenth * 2_000_000, 100_000_000, "there is no compiler on PATH"))
    for tenth in range(60, 70):
        watch(Fetching("zig", "unpacking", tenth / 10, tenth * 1_000_000, 100_000_000))
    watch(Fetching("zig", "ready", 7.1, size=100_000_000))
    assert lines == [
        "Fetching zig (100 MB): there is no compiler on PATH",
        "Unpacking zig (100 MB)",
        "zig: ready after 7 s, and kept for later builds",
    ]
    assert {"Fetching zig: 40 MB of 100 MB after 2 s", "Unpacking zig: 69 MB of 100 MB after 7 s"} <= {*signs}
