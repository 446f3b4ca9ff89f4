"""A cross build for linux-aarch64 on linux-64, by gcc-aarch64-linux-gnu or zig; its tests need qemu-user-static."""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha1
from pathlib import Path

import pytest
from rattler.package_streaming import extract

from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.channel.packages.reading import read_documents, read_package
from tests.support.command import run, tool
from tests.support.feedstocks import HERE, copy_of_example
from tests.support.gpuprobe import cross_build, crossed_gpuprobe
from tests.support.needs import needs
from tests.support.paths import EXAMPLES

EMULATOR = find_emulator("linux-aarch64", os.environ)
RUNNING = f"py{sys.version_info[0]}.{sys.version_info[1]}"
pytestmark = needs("system", HERE.subdir == "linux-64", "it crosses from linux-64")


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The channel with gpuprobe for linux-aarch64 with CUDA 11.2, and what the build printed."""
    artifacts = crossed_gpuprobe(tmp_path_factory)
    return artifacts / "built-on-stand-in" / "linux-aarch64", (artifacts / "output.txt").read_text()


def test_the_packages_lie_in_the_subdir_of_the_target(crossed: tuple[Path, str]) -> None:
    made = {read_package(path).name: read_package(path) for path in crossed[0].glob("*.conda")}
    assert set(made) == {"libgpuprobe", "gpuprobe-base", "gpuprobe", "gpuprobe-gpu"}
    assert {each.subdir for each in made.values()} == {"linux-aarch64"}
    exact = f"libgpuprobe ==1.0.0 {made['libgpuprobe'].build}"
    assert exact in made["gpuprobe-base"].depends
    assert made["libgpuprobe"].run_exports.to_json()["weak"] == ["libgpuprobe >=1.0.0,<2.0a0"]


def test_what_is_compiled_is_for_arm(crossed: tuple[Path, str], tmp_path: Path) -> None:
    (package,) = crossed[0].glob("libgpuprobe-*.conda")
    extract(package, tmp_path)
    for name in ("bin/gpuprobe", "lib/libgpuprobe.so.1"):
        header = (tmp_path / name).read_bytes()[:20]
        assert (header[:4], header[18:]) == (b"\x7fELF", b"\xb7\x00"), f"{name}: EM_AARCH64 is 183"


def test_host_environments_are_solved_for_the_target(crossed: tuple[Path, str]) -> None:
    (package,) = crossed[0].glob("gpuprobe-base-*.conda")
    name = "info/recipe/rendered_recipe.yaml"
    rendered = (read_documents(package, [name])[name] or b"").decode()
    host = rendered[rendered.index("host:") :]
    assert "subdir: linux-aarch64" in host


def test_the_hash_of_a_name_is_that_of_what_its_package_says_it_was_made_of(crossed: tuple[Path, str]) -> None:
    """It contains no key that only steers the engine."""
    name = "info/hash_input.json"
    for package in crossed[0].glob("*.conda"):
        contents = read_documents(package, [name])[name] or b""
        assert "host_platform" not in json.loads(contents)
        assert f"h{sha1(contents, usedforsecurity=False).hexdigest()[:7]}_" in package.name


def test_its_packages_have_the_planned_names(crossed: tuple[Path, str]) -> None:
    words = ["outputs", f"linux_aarch64_cuda11.2_{RUNNING}", "--feedstock", str(EXAMPLES / "gpuprobe")]
    told = run(tool(*words)).stdout
    assert {f"linux-aarch64/{package.name}" for package in crossed[0].glob("*.conda")} <= set(told.split())


emulated = needs("system", isinstance(EMULATOR, Emulator), str(EMULATOR))


@emulated
def test_its_own_tests_are_run_under_qemu(crossed: tuple[Path, str]) -> None:
    said = crossed[1]
    ran = said[said.index("Running tests under") : said.index("-- built libgpuprobe")]
    assert "+ gpuprobe --version\ngpuprobe 1.0.0" in ran


@emulated
def test_a_package_can_be_tested_again_under_qemu(crossed: tuple[Path, str]) -> None:
    (library,) = crossed[0].glob("libgpuprobe-*.conda")
    ran = run(tool("test", str(library)))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"passed  {library.name}" in ran.stdout


@emulated
def test_it_is_recorded_under_what_its_tests_were_run(crossed: tuple[Path, str]) -> None:
    with Ledger(crossed[0].parents[1] / "ledger.sqlite") as ledger:
        marks = {record.output: record.marks for record in ledger.builds()}
    assert marks["libgpuprobe"]["tests"] in ("run under qemu-aarch64", "run under qemu-aarch64-static")
    assert marks["gpuprobe"]["tests"] == "left out"


@emulated
def test_tests_of_a_python_that_is_a_name_only_are_left_out(crossed: tuple[Path, str]) -> None:
    version = RUNNING.removeprefix("py")
    assert f"Tests left out for 3 packages of Python {version}: on the stand-in channel" in crossed[1]


@emulated
def test_a_test_that_fails_under_qemu_fails_the_build(tmp_path: Path) -> None:
    feedstock = copy_of_example("gpuprobe", tmp_path)
    recipe = feedstock / "recipe" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("- gpuprobe --json", "- gpuprobe --no-such-option"))
    ran = cross_build(feedstock)
    assert ran.returncode == 1
    assert "FAILED: libgpuprobe" in ran.stdout
    assert "its tests failed under" in ran.stdout


def test_without_qemu_the_reason_for_left_out_tests_is_reported(tmp_path: Path) -> None:
    assert "there is no qemu-aarch64 on PATH" in str(find_emulator("linux-aarch64", {"PATH": str(tmp_path)}))
    (tmp_path / "qemu-ppc64le").write_text("#!/bin/sh\n")
    (tmp_path / "qemu-ppc64le").chmod(0o755)
    machine = {"PATH": str(tmp_path), "QEMU_LD_PREFIX": str(tmp_path / "missing")}
    if not Path("/usr/powerpc64le-linux-gnu").exists():
        assert "there is no C library for linux-ppc64le" in str(find_emulator("linux-ppc64le", machine))


@pytest.mark.parametrize("target", ["osx-arm64", "win-64"])
def test_other_systems_are_not_emulated(target: str) -> None:
    assert f"programs for {target} cannot run on" in str(find_emulator(target, os.environ))
