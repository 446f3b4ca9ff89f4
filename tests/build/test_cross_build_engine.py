"""A cross build for linux-aarch64 on linux-64: needs gcc-aarch64-linux-gnu, and for the run qemu-user-static."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.channel.archive import read_documents, read_package

from .conftest import HERE, ROOT

GCC = "aarch64-linux-gnu-gcc"
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
pytestmark = [
    pytest.mark.skipif(HERE.subdir != "linux-64", reason="the build machine is to be linux-64"),
    pytest.mark.skipif(shutil.which(GCC) is None, reason=f"there is no {GCC} on PATH"),
]


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The channel with gpuprobe for linux-aarch64 with CUDA 11.2, and what the build printed."""
    folder = tmp_path_factory.mktemp("cross")
    words = ["linux_aarch64_cuda11.2_py3.11", "--channel", "stand-in", "--retries", "0", "--output-dir", str(folder)]
    ran = subprocess.run(
        [sys.executable, "-m", "feedstock_tools", "build", *words],
        cwd=shutil.copytree(
            ROOT / "examples" / "gpuprobe", folder / "gpuprobe", ignore=shutil.ignore_patterns("build_artifacts")
        ),
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    return folder / "built-on-stand-in" / "linux-aarch64", ran.stdout


def test_the_packages_lie_in_the_subdir_of_the_target(crossed: tuple[Path, str]) -> None:
    made = {read_package(path).name: read_package(path) for path in crossed[0].glob("*.conda")}
    assert set(made) == {"libgpuprobe", "gpuprobe-base", "gpuprobe", "gpuprobe-gpu"}
    assert {each.subdir for each in made.values()} == {"linux-aarch64"}
    exact = f"libgpuprobe ==1.0.0 {made['libgpuprobe'].build}"
    assert exact in made["gpuprobe-base"].depends
    assert made["libgpuprobe"].run_exports.to_json()["weak"] == ["libgpuprobe >=1.0.0,<2.0a0"]


def test_host_environments_are_solved_for_the_target(crossed: tuple[Path, str]) -> None:
    (package,) = crossed[0].glob("gpuprobe-base-*.conda")
    name = "info/recipe/rendered_recipe.yaml"
    rendered = (read_documents(package, [name])[name] or b"").decode()
    host = rendered[rendered.index("host:") :]
    assert "subdir: linux-aarch64" in host


def test_it_is_said_that_tests_were_left_out(crossed: tuple[Path, str]) -> None:
    assert "Tests left out" in crossed[1]


@pytest.mark.skipif(EMULATOR is None, reason="there is no qemu-aarch64 on PATH")
def test_the_programs_run_under_qemu(crossed: tuple[Path, str], tmp_path: Path) -> None:
    (package,) = crossed[0].glob("libgpuprobe-*.conda")
    from rattler.package_streaming import extract

    extract(package, tmp_path / "prefix")
    for words in (["--version"], ["--json"]):
        ran = subprocess.run(
            [str(EMULATOR), str(tmp_path / "prefix" / "bin" / "gpuprobe"), *words],
            env={"QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert "1.0.0" in ran.stdout
