"""The command line and environment of conda-build, recorded by a stand-in for it on PATH.

The stand-in builds nothing: these tests show how conda-build is called, not what it would make.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.builds.engines.conda_build import CondaBuild
from feedstock_tools.builds.engines.contract import BuildRequest, Output
from feedstock_tools.builds.engines.process import program
from feedstock_tools.builds.engines.process.guard import OutOfTimeError
from feedstock_tools.builds.engines.process.program import Command, run_command
from tests.support import command
from tests.support.feedstocks import HERE
from tests.support.needs import needs
from tests.support.paths import ROOT

pytestmark = needs("system", HERE.subdir == "linux-64", "the feedstock here is for linux-64")
PROGRAM = """#!{python}
import json, os, shutil, sys
from pathlib import Path
if sys.argv[1:] == ["--version"]:
    sys.exit(print("conda-build 26.7.1"))
words = sys.argv[1:]
texts = {{name: Path(name).read_text() for name in (words[words.index("-m") + 1], os.environ["CONDARC"])}}
Path({record!r}).write_text(json.dumps([words, dict(os.environ), texts]))
output = Path(words[words.index("--output-folder") + 1])
shutil.copy({package!r}, output / "noarch")
print("TEST END: scripted")
"""


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path
) -> tuple[list[str], dict[str, str], dict[str, Any], str]:
    """One build with `--engine conda-build`: arguments, environment, the files named in them, and what was printed."""
    from .test_feedstock_script_engine import package_of, planned_build

    tmp_path = tmp_path_factory.mktemp("recorded")
    without = shutil.ignore_patterns(".scripts")
    folder = Path(shutil.copytree(Path(__file__).parent / "scripted-feedstock", tmp_path / "scripted", ignore=without))
    programs = tmp_path / "bin"
    programs.mkdir()
    record = tmp_path / "record.json"
    package = package_of(tmp_path, planned_build(folder))
    text = PROGRAM.format(python=sys.executable, record=str(record), package=str(package))
    (programs / "conda-build").write_text(text)
    (programs / "conda-build").chmod(0o755)
    variables = {
        "PYTHONPATH": str(ROOT),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CONDA_PREFIX": "/another",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "sha": "0123abc",
    }
    words = ["linux_64_", "--channel", str(tiny_channel), "--cores", "1"]
    ran = command.run(command.tool("build", *words), folder, variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    words, environment, texts = json.loads(record.read_text())
    return words, environment, {Path(name).name: yaml.safe_load(text) for name, text in texts.items()}, ran.stdout


def test_the_arguments_are_those_of_conda_smithy_s_script(
    recorded: tuple[list[str], dict[str, str], dict[str, Any], str], tiny_channel: Path
) -> None:
    words, _, _, said = recorded
    assert "Building for linux-64 with conda-build (26.7.1): the recipe is a meta.yaml" in said
    assert words[0].endswith("/scripted/recipe")
    assert words[1] == "-m"
    assert words[3] == "--suppress-variables"
    at = words.index("--override-channels")
    assert words[at + 1 : at + 3] == ["-c", tiny_channel.as_uri()]
    assert words[words.index("--extra-meta") + 1 :] == ["flow_run_id=", "remote_url=", "sha=0123abc"]


def test_the_variants_are_those_of_the_row(recorded: tuple[list[str], dict[str, str], dict[str, Any], str]) -> None:
    assert recorded[2]["linux_64_.yaml"]["flavour"] == ["plain"]


def test_settings_of_the_build_come_in_a_file_that_conda_reads_last(
    recorded: tuple[list[str], dict[str, str], dict[str, Any], str], tiny_channel: Path
) -> None:
    _, environment, texts, _ = recorded
    assert "CONDA_PREFIX" not in environment
    assert (environment["CONDA_SUBDIR"], environment["CPU_COUNT"]) == ("linux-64", "1")
    assert texts["condarc"]["channels"] == [tiny_channel.as_uri()]
    assert texts["condarc"]["channel_priority"] == "strict"


def test_a_program_that_waits_for_a_fifo_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_IDLE", 0.5)
    script = "timeout 1 sh -c 'while :; do :; done'; echo worked; mkfifo f; cat f"
    order = Command(("sh", "-c", script), tmp_path, {"PATH": os.environ["PATH"]}, tmp_path / "output")
    request = BuildRequest("x", tmp_path, {}, HERE.subdir, HERE.subdir, (), tmp_path, ("x",))
    printed = b""
    waits = pytest.raises(OutOfTimeError, match=r"for 0\.5 s none of its processes has computed")
    with run_command(order, request) as events, waits:
        for event in events:
            printed += event.content if isinstance(event, Output) else b""
    assert printed == b"worked\n"


def test_it_is_refused_with_the_reason_where_it_cannot_build(tmp_path: Path) -> None:
    assert "no conda-build on PATH" in (CondaBuild({"PATH": str(tmp_path)}).why_not("linux-64", "linux-64") or "")
    (tmp_path / "conda-build").write_text("#!/bin/sh\n")
    (tmp_path / "conda-build").chmod(0o755)
    engine = CondaBuild({"PATH": str(tmp_path)})
    assert engine.why_not("linux-aarch64", "linux-64") is None
    assert "Apple's SDK" in (engine.why_not("osx-64", "linux-64") or "")
    assert "win-64" in (engine.why_not("win-64", "linux-64") or "")
