"""Hosts with other engines than the embedded one: they say so, and rows begin only where their engine is.

A stand-in for docker acts as the container (see tests/builds/engines/test_feedstock_script_engine.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.fleet.local import local_fleet
from tests.builds.engines.test_feedstock_script_engine import SCRIPTED, planned_build, recorded, stand_in
from tests.support import command
from tests.support.feedstocks import HERE
from tests.support.fleets import LEASE, Fleet
from tests.support.needs import needs

pytestmark = needs("system", HERE.subdir == "linux-64", "the scripts tested are those for linux-64")
IMAGE = "example.org/builder:1"


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A feedstock with scripts."""
    return Path(shutil.copytree(SCRIPTED, tmp_path / "scripted-feedstock"))


@contextmanager
def _fleet(folder: Path, monkeypatch: pytest.MonkeyPatch, docker: Path, settings: Mapping[str, Any]) -> Iterator[Fleet]:
    """A fleet of one host, which alone has the stand-in for docker."""
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{docker}:{os.environ['PATH']}")
        started = local_fleet(folder / "fleet", folder / "hosts", 1, {"lease": LEASE, **settings})
        local = started.__enter__()
    try:
        fleet = Fleet(local)
        fleet.wait_for(1)
        yield fleet
    finally:
        started.__exit__(None, None, None)


def _build(fleet: Fleet, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A build from a machine without a container runtime."""
    variables = command.environment(PATH="/nowhere")
    arguments = (*words, "--feedstock", str(folder), "--engine", "container", f"--fleet={fleet.local.fleet.path}")
    return command.run(command.tool("build", *arguments), variables=variables)


def test_a_host_with_a_container_runtime_builds_what_needs_one(
    scripted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = stand_in(tmp_path / "bin", build=planned_build(scripted))
    with _fleet(tmp_path, monkeypatch, docker, {"engines": ["container"], "images": [IMAGE]}) as fleet:
        ran = _build(fleet, scripted, "--all")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (scripted / "build_artifacts/noarch").joinpath(f"scripted-1.2-{planned_build(scripted)}.conda").is_file()
    ((words, _),) = recorded(docker)
    assert IMAGE in words


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "no host that builds for linux-64 has the engine container"),
        ({"engines": ["container"]}, f"no host that builds for linux-64 can run the image {IMAGE}"),
    ],
)
def test_a_row_without_a_fitting_host_is_refused(
    scripted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, Any], reason: str
) -> None:
    docker = stand_in(tmp_path / "bin")
    with _fleet(tmp_path, monkeypatch, docker, settings) as fleet:
        ran = _build(fleet, scripted, "linux_64_")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"linux_64_ cannot be built on this fleet: {reason}" in ran.stderr
    assert not (docker / "record.jsonl").exists()
