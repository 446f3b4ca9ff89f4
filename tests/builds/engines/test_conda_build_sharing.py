"""Rows that begin with what a shared build has left, and rows whose outputs are finished in part, with conda-build.

`FEEDSTOCK_TOOLS_TEST_CONDA_BUILD` runs the first with a real one. Else a program in its place records how it is called,
leaves files in its folders, and makes the packages that a file names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.builds.engines.conda_build import CondaBuild
from feedstock_tools.builds.engines.contract import BuildRequest, Built, Event, Failed, Output
from feedstock_tools.builds.engines.embedded.fixed_place import is_possible
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import read_documents
from tests.support.command import environment
from tests.support.conda_build import NEEDS_CONDA_BUILD, path_with_conda_build
from tests.support.feedstocks import HERE
from tests.support.needs import needs

pytestmark = [
    needs("system", HERE.subdir == "linux-64", "the configuration is one for linux-64"),
    needs("system", is_possible(), "mounts of one's own"),
]
PROGRAM = """#!{python}
import json, os, shutil, sys, yaml
from pathlib import Path
words = sys.argv[1:]
settings = yaml.safe_load(Path(os.environ["CONDARC"]).read_text())
root = Path(settings["conda-build"]["root-dir"])
before = sorted(path.name for path in root.glob("*"))
with open({record!r}, "a") as record:
    record.write(json.dumps([words, str(root), before]) + "\\n")
root.mkdir(exist_ok=True)
(root / ("work" if "--build-only" in words else "packed")).touch()
output = Path(words[words.index("--output-folder") + 1])
if "--build-only" not in words:
    (output / "noarch").mkdir(exist_ok=True)
    for package in {packages!r}["--skip-existing" in words]:
        shutil.copy(package, output / "noarch")
"""
META = """\
package:
  name: ice-split
  version: 1.0
outputs:
  - name: libice
    files:
      - lib
  - name: ice
    script: install.sh
    build:
      string: {{ flavour }}_{{ PKG_BUILDNUM }}
    requirements:
      host:
        - {{ pin_subpackage("libice", exact=True) }}
    test:
      commands:
        - test -f $PREFIX/share/{{ flavour }}
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    recipe = tmp_path / "ice-feedstock" / "recipe"
    recipe.mkdir(parents=True)
    (recipe / "meta.yaml").write_text(META)
    script = (
        f"echo run >> {tmp_path}/runs\nmkdir $PREFIX/lib\necho $PREFIX > $PREFIX/lib/ice\necho compiled > compiled\n"
    )
    (recipe / "build.sh").write_text(script)
    install = "mkdir $PREFIX/share\ncp compiled $PREFIX/share/$flavour\ngrep -q $PREFIX $PREFIX/lib/ice\n"
    (recipe / "install.sh").write_text(install)
    support = recipe.parent / ".ci_support"
    support.mkdir()
    values = {"flavour": ["sweet", "sour"], "target_platform": ["linux-64"]}
    (support / "linux_64_.yaml").write_text(yaml.safe_dump(values))
    return recipe.parent


def _fake(folder: Path, all_packages: list[str], with_skip_existing: list[str]) -> Mapping[str, str]:
    """The environment with the program in place of conda-build, which makes these packages."""
    programs, record = folder / "programs", folder / "record.jsonl"
    programs.mkdir()

    def made(names: list[str]) -> list[str]:
        packages = (PackageMetadata(name, "1.0", "0", 0, "noarch", noarch="generic") for name in names)
        return [str(write_package(folder / "made", package)) for package in packages]

    packages = {False: made(all_packages), True: made(with_skip_existing)}
    text = PROGRAM.format(python=sys.executable, record=str(record), packages=packages)
    (programs / "conda-build").write_text(text)
    (programs / "conda-build").chmod(0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


def _build(
    feedstock: Path, machine: Mapping[str, str], name: str, wanted: tuple[str, ...], **more: Any
) -> tuple[BuildRequest, list[Event]]:
    """Build a row, whose name is its flavour, in a private folder."""
    artifacts = feedstock.parent / "artifacts"
    folder = artifacts / ".work" / name
    folder.mkdir(parents=True, exist_ok=True)
    values = {"flavour": name, "target_platform": "linux-64"}
    request = BuildRequest(
        *(name, feedstock / "recipe", values, "linux-64", "linux-64", (), folder, wanted),
        environment=machine,
        configuration="linux_64_",
        feedstock=feedstock,
        **more,
    )
    with CondaBuild(machine).build(request) as events:
        return request, list(events)


def _shared(feedstock: Path, machine: Mapping[str, str]) -> Path:
    """The folder of the shared build, which is run."""
    kept = feedstock.parent / "artifacts" / ".work" / "shared" / "key"
    kept.mkdir(parents=True)
    _, events = _build(feedstock, machine, "sweet", ("ice-split",), shared={"ice-split": kept}, only_shared=True)
    assert isinstance(events[-1], Built)
    assert events[-1].package == kept
    return kept


def _calls(folder: Path) -> list[tuple[list[str], str, list[str]]]:
    return [tuple(json.loads(line)) for line in (folder / "record.jsonl").read_text().splitlines()]


def shares_blocks(folder: Path) -> bool:
    """Whether a disk can copy files by sharing their blocks."""
    (folder / "block").write_text("a")
    words = ["cp", "--reflink=always", str(folder / "block"), str(folder / "another")]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_rows_begin_with_a_copy_of_what_the_shared_build_has_left_at_one_place(feedstock: Path, tmp_path: Path) -> None:
    machine = _fake(tmp_path, ["ice"], [])
    kept = _shared(feedstock, machine)
    for flavour in ("sweet", "sour"):
        _, events = _build(feedstock, machine, flavour, ("ice",), shared={"ice-split": kept})
        assert isinstance(events[-1], Built)
        said = [
            event.content
            for event in events
            if isinstance(event, Output) and b"This disk cannot share" in event.content
        ]
        assert len(said) == (not shares_blocks(tmp_path))
    calls = _calls(tmp_path)
    assert len({root for _, root, _ in calls}) == 1
    assert [before for _, _, before in calls] == [[], ["work"], ["work"]]
    assert [path.name for path in (kept / "conda-build").iterdir()] == ["work"]
    steps = [[word for word in words if word in {"--build-only", "--post", "--dirty"}] for words, _, _ in calls]
    assert steps == [["--dirty", "--build-only"], ["--dirty", "--post"], ["--dirty", "--post"]]


@pytest.mark.parametrize(
    ("by_skipping", "expected"), [(["ice"], ["--skip-existing"]), ([], ["--skip-existing", "in full"])]
)
def test_finished_outputs_are_built_again_only_if_a_channel_has_a_missing_one(
    feedstock: Path, tmp_path: Path, by_skipping: list[str], expected: list[str]
) -> None:
    machine = _fake(tmp_path, ["libice", "ice"], by_skipping)
    finished = feedstock.parent / "artifacts" / ".work" / "sour" / "output"
    write_package(finished, PackageMetadata("libice", "1.0", "0", 0, "noarch", noarch="generic"))
    _, events = _build(feedstock, machine, "sour", ("ice",))
    assert [event.output for event in events if isinstance(event, Built)] == ["ice"]
    assert not any(isinstance(event, Failed) for event in events)
    assert [
        "--skip-existing" if "--skip-existing" in words else "in full" for words, _, _ in _calls(tmp_path)
    ] == expected


@NEEDS_CONDA_BUILD
def test_conda_build_runs_the_shared_script_once(feedstock: Path, tmp_path: Path) -> None:
    machine = environment(PATH=path_with_conda_build(tmp_path / "programs"), CONDA_OFFLINE="1")
    kept = _shared(feedstock, machine)
    for flavour in ("sweet", "sour"):
        request, events = _build(feedstock, machine, flavour, ("libice", "ice"), shared={"ice-split": kept})
        built = {event.output: event.package for event in events if isinstance(event, Built)}
        documents = {name: read_documents(package, ("info/paths.json",)) for name, package in built.items()}
        paths = {name: json.loads(each["info/paths.json"] or b"")["paths"] for name, each in documents.items()}
        assert {name: [each["_path"] for each in files] for name, files in paths.items()} == {
            "libice": ["lib/ice"],
            "ice": [f"share/{flavour}"],
        }
        assert "prefix_placeholder" in paths["libice"][0]
        assert built["ice"].name == f"ice-1.0-{flavour}_0.conda"
        assert request.output in built["ice"].parents
    assert (tmp_path / "runs").read_text() == "run\n"
