"""The wheels that hosts install."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.provision import wheelhouse as module
from feedstock_tools.builds.fleet.provision.wheelhouse import Target, archive_of, wheelhouse
from feedstock_tools.errors import WorkError


def test_an_archive_depends_on_names_and_contents_only(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("b.whl", "a.whl") if name == "one" else ("a.whl", "b.whl"):
            (folder / file).write_text(file)
        (folder / "a.whl").chmod(0o600 if name == "one" else 0o644)
        made.append(archive_of(folder, tmp_path / f"{name}.tar"))
    assert made[0].path.read_bytes() == made[1].path.read_bytes()
    assert made[0].digest == made[1].digest


def test_the_wheel_of_an_installation_has_what_was_recorded(tmp_path: Path) -> None:
    wheel = module._repacked(distribution("click"), tmp_path)
    target = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as opened:
        assert opened.testzip() is None
        opened.extractall(target)
    run = [
        sys.executable,
        "-S",
        "-P",
        "-c",
        "import sys; sys.path[:] = [sys.argv[1], *sys.path]; import click; print(click.__file__)",
    ]
    shown = subprocess.run([*run, str(target)], capture_output=True, text=True, check=True)
    assert str(target) in shown.stdout
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".pyc", "INSTALLER"))]


def test_wheels_are_fetched_once_and_their_lack_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {"XDG_CACHE_HOME": str(tmp_path)}
    asked: list[tuple[str, ...]] = []
    said: list[str] = []

    def pip(environment: Mapping[str, str], *arguments: str) -> None:
        assert Path(environment["TMPDIR"]).is_relative_to(tmp_path)
        asked.append(arguments)

    def own(folder: Path, *_: object) -> Path:
        (folder / "own.whl").write_text("own")
        return folder / "own.whl"

    monkeypatch.setattr(module, "_pip", pip)
    monkeypatch.setattr(module, "own_wheel", own)
    target = Target("3.12", "aarch64", "1.26.4")
    first = wheelhouse(target, machine, said.append)
    assert wheelhouse(target, machine, said.append) == first
    assert said == ["Fetching wheels for Python 3.12 on aarch64"]
    (arguments,) = asked
    assert {"--python-version=3.12", "--platform=manylinux_2_28_aarch64", "pip", "numpy==1.26.4"} <= set(arguments)

    def offline(*arguments: str) -> None:
        raise WorkError("the wheels cannot be fetched: no index")

    monkeypatch.setattr(module, "_pip", offline)
    assert wheelhouse(target, machine, said.append) == first
    with pytest.raises(WorkError, match="no index"):
        wheelhouse(Target("3.13", "aarch64"), machine, said.append)
    assert [path.name for path in first.path.parent.parent.iterdir() if path.is_dir()] == [first.path.parent.name]
