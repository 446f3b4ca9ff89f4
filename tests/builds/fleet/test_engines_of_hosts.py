"""Hosts with other engines than the embedded one: they say so, and rows begin only where their engine is.

A stand-in for docker acts as the container (see tests/builds/engines/test_feedstock_script_engine.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import Ledger
from tests.builds.engines.test_container_engine import IMAGE as REAL_IMAGE
from tests.builds.engines.test_container_engine import NEEDS_IMAGE
from tests.builds.engines.test_feedstock_script_engine import SCRIPTED, planned_build, recorded, stand_in
from tests.support import command
from tests.support.conda_build import NEEDS_CONDA_BUILD, path_with_conda_build
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
from tests.support.needs import needs

pytestmark = needs("system", HERE.subdir == "linux-64", "the scripts tested are those for linux-64")
IMAGE = "example.org/builder:1"
#: A recipe that needs no package of any channel.
META = """\
package:
  name: tinymeta
  version: 1.0.0
build:
  number: 2
  noarch: generic
  script: mkdir -p "$PREFIX/share" && echo answer > "$PREFIX/share/answer.txt"
test:
  commands:
    - grep answer "$PREFIX/share/answer.txt"
about:
  license: BSD-3-Clause
"""


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A feedstock with scripts."""
    return Path(shutil.copytree(SCRIPTED, tmp_path / "scripted-feedstock"))


@contextmanager
def _fleet(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, settings: Mapping[str, Any]) -> Iterator[Fleet]:
    """A fleet of one host with a search path of its own."""
    with ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setenv("PATH", path)
            fleet = stack.enter_context(fleet_in(folder, 1, **settings))
        yield fleet


def _build(fleet: Fleet, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A build from a machine without a container runtime."""
    variables = command.environment(PATH="/nowhere")
    arguments = (*words, "--feedstock", str(folder), "--engine", "container", f"--fleet={fleet.local.fleet.path}")
    return command.run(command.tool("build", *arguments), variables=variables)


def test_a_host_with_a_container_runtime_builds_what_needs_one(
    scripted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = stand_in(tmp_path / "bin", build=planned_build(scripted))
    with _fleet(
        tmp_path, monkeypatch, f"{docker}:{os.environ['PATH']}", {"engines": ["container"], "images": [IMAGE]}
    ) as fleet:
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
    with _fleet(tmp_path, monkeypatch, f"{docker}:{os.environ['PATH']}", settings) as fleet:
        ran = _build(fleet, scripted, "linux_64_")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"linux_64_cpu cannot be built on this fleet: {reason}" in ran.stderr
    assert not (docker / "record.jsonl").exists()


@NEEDS_IMAGE
@pytest.mark.slow
def test_a_host_builds_in_a_real_container(
    feedstock: TinyFeedstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (feedstock.folder / ".ci_support").glob("*.yaml"):
        path.write_text(f"{path.read_text()}docker_image:\n- {REAL_IMAGE}\n")
    words = (f"{GPU}_py3.11", "--engine", "container")
    with _fleet(tmp_path, monkeypatch, os.environ["PATH"], {"engines": ["container"], "images": "any"}) as fleet:
        here = command.environment(PATH="/nowhere")
        ran = command.run(feedstock.command(*words, f"--fleet={fleet.local.fleet.path}"), feedstock.folder, here)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(feedstock.packages()) == 4
    assert {(record.result, record.machine) for record in feedstock.records()} == {("done", "h1")}
    assert {record.engine.split()[0] for record in feedstock.records()} == {"container"}


@NEEDS_CONDA_BUILD
@pytest.mark.slow
def test_a_host_with_conda_build_builds_what_one_machine_builds(
    tmp_path: Path, tiny_channel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tinymeta-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe" / "meta.yaml").write_text(META)
    (folder / ".ci_support").mkdir()
    (folder / ".ci_support" / "linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    path = path_with_conda_build(tmp_path / "programs")
    words = ("--all", "--engine", "conda-build", "--channel", str(tiny_channel))

    def build(*more: str) -> subprocess.CompletedProcess[str]:
        return command.run(command.tool("build", *words, *more), folder, command.environment(PATH=path))

    with _fleet(tmp_path, monkeypatch, path, {"engines": ["conda-build"]}) as fleet:
        ran = build(f"--fleet={fleet.local.fleet.path}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with Ledger(folder / "build_artifacts" / "ledger.sqlite") as ledger:
        (record,) = ledger.builds()
        assert ledger.holds(record)
    assert (record.result, record.machine, record.output) == ("done", "h1", "tinymeta")
    assert record.engine.startswith("conda-build ")
    assert "TEST END:" in (folder / "build_artifacts" / record.log).read_text()
    at_home = build()
    assert "Nothing to do" in at_home.stdout, at_home.stdout + at_home.stderr
