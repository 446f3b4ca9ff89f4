"""The example gpuprobe, built on the stand-in channel once in a run of the tests: for this machine, and for another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment, run, tool
from tests.support.compilers import lend_stand_in
from tests.support.feedstocks import copy_of_example
from tests.support.once import made_once

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: A Python that is metadata alone on the stand-in channel, which is enough for a solver.
NEWER = "3.14" if PYTHON != "3.14" else "3.13"
#: The versions of CUDA that it is built for.
CUDA = ("11.2", "12.9")


def built_gpuprobe(factory: pytest.TempPathFactory) -> Path:
    """The folder of artifacts of a build of several configurations, the newest CUDA version first."""
    return made_once(factory, "gpuprobe-built", _build) / "gpuprobe" / "build_artifacts"


def _build(folder: Path) -> None:
    feedstock = copy_of_example("gpuprobe", folder)
    names = [f"linux_64_cuda{version}_py{PYTHON}" for version in reversed(CUDA)]
    names += [f"linux_64_{accelerator}_py{python}" for python in (NEWER, PYTHON) for accelerator in ("cuda12.9", "cpu")]
    lend_stand_in(folder / "cache")
    words = tool("build", *names, "--channel", "stand-in")
    ran = run(words, feedstock, environment(XDG_CACHE_HOME=str(folder / "cache")))
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr


def crossed_gpuprobe(factory: pytest.TempPathFactory) -> Path:
    """The folder of artifacts of a build for linux-aarch64 with CUDA 11.2; `output.txt` in it has its output."""
    return made_once(factory, "gpuprobe-crossed", _cross) / "artifacts"


def _cross(folder: Path) -> None:
    ran = cross_build(copy_of_example("gpuprobe", folder))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    (folder / "artifacts" / "output.txt").write_text(ran.stdout)


def cross_build(feedstock: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Build for linux-aarch64 with CUDA 11.2, into `artifacts` beside the feedstock."""
    words = [f"linux_aarch64_cuda11.2_py{PYTHON}", "--channel", "stand-in", "--retries", "0"]
    lend_stand_in(feedstock.parent / "cache")
    variables = environment(XDG_CACHE_HOME=str(feedstock.parent / "cache"), **more)
    return run(tool("build", *words, "--output-dir", str(feedstock.parent / "artifacts")), feedstock, variables)
