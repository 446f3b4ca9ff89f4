"""An installed wheel builds from any folder, its own files stay unchanged, and it brings the man pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import command
from tests.support.archives import own_archives
from tests.support.feedstocks import GPU, TinyFeedstock
from tests.support.needs import needs


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the wheel of this checkout, as pip unpacks it."""
    folder = tmp_path_factory.mktemp("wheel") / "site-packages"
    (wheel,) = own_archives(tmp_path_factory).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file with its content, less the byte code that Python itself keeps."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_it_builds_from_any_folder_and_leaves_what_is_installed_alone(
    installed: Path, feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    before = contents(installed)
    variables = os.environ | {"PYTHONPATH": str(installed)}
    code = "import feedstock_tools; print(feedstock_tools.__file__)"
    where = command.run([sys.executable, "-c", code], tmp_path, variables).stdout
    assert where == f"{installed}/feedstock_tools/__init__.py\n"

    build = feedstock.command(f"{GPU}_py3.11", "--feedstock", str(feedstock.folder))
    run = command.run(build, tmp_path, variables)
    assert run.returncode == 0, run.stdout + run.stderr
    assert feedstock.packages()
    bootstrap = [sys.executable, "-m", "feedstock_tools.bootstrap", "build", "python"]
    assert command.run(bootstrap, tmp_path, variables).returncode == 2, "no environment is made of an installation"
    assert contents(installed) == before


@needs("system", shutil.which("man"), "man")
def test_man_finds_the_pages_of_a_program_on_the_path(installed: Path) -> None:
    (data,) = installed.glob("*.data/data")  # an installer lays this over the environment
    (data / "bin").mkdir()
    variables = {"PATH": f"{data}/bin:{os.environ['PATH']}"}
    for words in (["feedstock-tools"], ["feedstock-tools", "cuda"]):
        found = subprocess.run(["man", "-w", *words], env=variables, capture_output=True, text=True, check=True)
        assert found.stdout == f"{data}/share/man/man1/{'-'.join(words)}.1\n"
