"""A feedstock that builds in a fraction of a second, a channel for it, and the command line as a user calls it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from feedstock_tools.channel.archive import write_package
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.platforms import Platform

ROOT = Path(__file__).resolve().parents[2]
HERE = Platform.here()


@dataclass(frozen=True)
class Feedstock:
    """A copy of the tiny feedstock, with `build` and `--list` for it."""

    folder: Path
    channel: Path | str

    def command(self, *arguments: str) -> list[str]:
        """`feedstock-tools build` with the tiny channel."""
        return [sys.executable, "-m", "feedstock_tools", "build", *arguments, "--channel", str(self.channel)]

    def build(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run it in the feedstock's folder."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def artifacts(self) -> Path:
        """Where it builds."""
        return self.folder / "build_artifacts"

    def packages(self) -> list[str]:
        """The files in its channel, sorted."""
        return sorted(path.name for path in self.artifacts.glob("*/*.conda") if path.parent.name != "pkgs")

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the feedstock."""
        path = self.folder / name
        text = path.read_text()
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a test goes to the cache of the user who runs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))


@pytest.fixture(scope="session")
def tiny_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with two Pythons that are names only, and a compiler that is nothing at all."""
    folder = tmp_path_factory.mktemp("tiny-channel")
    subdir = HERE.subdir
    for minor in ("3.11", "3.12"):
        abi = PackageMetadata("python_abi", minor, f"1_cp{minor.replace('.', '')}", 1, "noarch", noarch="generic")
        python = PackageMetadata("python", f"{minor}.0", "h1_0_cpython", 0, subdir, depends=(f"python_abi {minor}.*",))
        write_package(folder, abi)
        write_package(folder, python, [PackageFile(f"bin/python{minor}", b"#!/bin/sh\n", executable=True)])
    write_package(folder, PackageMetadata("tiny-compiler", "1.0", "0", 0, subdir))
    index_channel(folder)
    return folder


def _copy(folder: Path) -> Path:
    """A fresh copy of the tiny feedstock; its configurations are for the platform that the tests run on."""
    shutil.copytree(Path(__file__).parent / "tiny-feedstock", folder)
    if HERE.subdir != "linux-64":
        for path in (folder / ".ci_support").glob("linux_64_*.yaml"):
            text = path.read_text().replace("linux-64", HERE.subdir)
            path.with_name(path.name.replace("linux_64", HERE.name)).write_text(text)
            path.unlink()
    return folder


@pytest.fixture
def feedstock(tmp_path: Path, tiny_channel: Path) -> Feedstock:
    """The tiny feedstock with nothing built."""
    return Feedstock(_copy(tmp_path / "tiny-feedstock"), tiny_channel)


@pytest.fixture(scope="session")
def _built_once(tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path) -> Path:
    made = Feedstock(_copy(tmp_path_factory.mktemp("built") / "tiny-feedstock"), tiny_channel)
    run = made.build(f"{HERE.name}_cuda11.2_py3.11")
    assert run.returncode == 0, run.stdout + run.stderr
    (made.folder / "output.txt").write_text(run.stdout)
    return made.folder


@pytest.fixture
def gpu_feedstock(tmp_path: Path, tiny_channel: Path, _built_once: Path) -> Feedstock:
    """The tiny feedstock with `linux_64_cuda11.2_py3.11` built; `output.txt` in it is what that printed."""
    shutil.copytree(_built_once, tmp_path / "tiny-feedstock", symlinks=True)
    return Feedstock(tmp_path / "tiny-feedstock", tiny_channel)
