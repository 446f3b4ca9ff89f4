"""Fetching zig: once, with its hash checked, under interruptions; from a wheel of our own, without a network."""

from __future__ import annotations

import ensurepip
import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in import compilers
from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION, fetch_zig, find_zig
from feedstock_tools.channel.pip import Download, Fetching, Watch, pip_command
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform
from tests.support.wheels import write_wheel


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one wheel."""
    index = tmp_path_factory.mktemp("index")
    parts = ("glibc/abilists", "include/generic-glibc/stdio.h", "mingw/crt.c", "include/any-windows-any/w.h")
    files = {"ziglang/zig": "#!/bin/sh\necho zig here\n", **{f"ziglang/lib/libc/{file}": "" for file in parts}}
    write_wheel(index, "ziglang", ZIG_VERSION, files)
    return index


@pytest.fixture
def machine(index: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine whose index is a folder with one wheel, whose hash is the expected one."""
    (wheel,) = index.iterdir()
    content = wheel.read_bytes()
    known = {Platform.here().subdir: (sha256(content).hexdigest(), len(content))}
    monkeypatch.setattr(compilers, "_WHEELS", known)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return own | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def copied(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of pip, which takes most of a second to start: the wheel is copied."""

    def copy(download: Download, folder: Path, _: object, watch: Watch) -> list[Path]:
        watch(Fetching(download.what, "fetching", 0.0))
        time.sleep(0.2)
        return [Path(shutil.copytree(index, folder), wheel.name) for wheel in index.iterdir()]

    monkeypatch.setattr("feedstock_tools.channel.pip.download_wheels", copy)


def offline(machine: dict[str, str]) -> dict[str, str]:
    """The same machine with an index that does not answer."""
    left = {name: value for name, value in machine.items() if name not in ("PIP_NO_INDEX", "PIP_FIND_LINKS")}
    return left | {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}


def test_it_is_fetched_once_and_needs_no_network_afterwards(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('a module of the folder that the command starts in')\n")
    monkeypatch.chdir(tmp_path)
    steps: list[Fetching] = []
    fetched = fetch_zig(tmp_path / "kept", machine, steps.append)

    said = subprocess.run(fetched.command("cc"), capture_output=True, text=True, check=True)
    assert said.stdout == "zig here\n"
    assert list(dict.fromkeys(step.stage for step in steps)) == ["fetching", "unpacking", "ready"]
    assert fetch_zig(tmp_path / "kept", offline(machine)) == fetched == find_zig(tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [".lock", ZIG_VERSION]


@pytest.mark.usefixtures("copied")
def test_what_it_has_for_systems_that_the_channel_does_not_know_stays_packed(
    tmp_path: Path, machine: dict[str, str]
) -> None:
    folder = fetch_zig(tmp_path / "kept", machine).folder
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {"zig", "lib/libc/glibc/abilists", "lib/libc/include/generic-glibc/stdio.h"}


def test_another_file_than_the_known_one_is_refused(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "_WHEELS", {Platform.here().subdir: ("0" * 64, 1)})
    with pytest.raises(WorkError, match=r"a different file than expected \(its SHA-256 differs\)"):
        fetch_zig(tmp_path / "kept", machine)
    assert find_zig(tmp_path / "kept") is None


def test_without_a_network_the_reason_is_reported(tmp_path: Path, machine: dict[str, str]) -> None:
    with pytest.raises(WorkError, match=f"pip cannot fetch zig {ZIG_VERSION}: the package index cannot be reached"):
        fetch_zig(tmp_path / "kept", offline(machine))
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".lock"]


@pytest.mark.usefixtures("copied")
def test_a_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zipfile.ZipFile, "extract", full)
    with pytest.raises(WorkError, match="cannot store zig: No space left on device"):
        fetch_zig(tmp_path / "kept", machine)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".lock"]


@pytest.mark.usefixtures("copied")
def test_what_a_killed_fetch_left_is_removed(tmp_path: Path, machine: dict[str, str]) -> None:
    program = "from feedstock_tools.files.temporary import owned_name; print(owned_name())"
    left = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "kept" / left / "wheels").mkdir(parents=True)
    fetch_zig(tmp_path / "kept", machine)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [".lock", ZIG_VERSION]


@pytest.mark.usefixtures("copied")
def test_two_at_once_fetch_it_once(tmp_path: Path, machine: dict[str, str]) -> None:
    steps: list[Fetching] = []
    threads = [threading.Thread(target=fetch_zig, args=(tmp_path / "kept", machine, steps.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [step.stage for step in steps].count("ready") == 1


def test_a_python_without_pip_uses_its_bundled_copy(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pip(tmp_path, monkeypatch)
    assert fetch_zig(tmp_path / "kept", machine).folder.is_dir()


def test_a_linux_distribution_has_the_bundled_copy_elsewhere(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(ensurepip.__file__).with_name("_bundled")
    folders = [ours, Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or ours)]
    wheel = next(wheel for folder in folders for wheel in folder.glob("pip-*.whl"))
    without_pip(tmp_path, monkeypatch, "ensurepip")
    monkeypatch.setattr(sysconfig, "get_config_var", {"WHEEL_PKG_DIR": str(tmp_path)}.get)
    with pytest.raises(WorkError, match="this Python has no pip"):
        fetch_zig(tmp_path / "kept", machine)
    copy = shutil.copy(wheel, tmp_path)
    assert pip_command()[-1] == f"{copy}/pip"  # as that of the test before


def without_pip(folder: Path, monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """Let this process have a Python without pip and other `missing` modules."""
    bare = folder / "bare"
    venv.EnvBuilder(symlinks=True).create(bare)
    monkeypatch.setattr(sys, "executable", str(bare / "bin/python"))
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("pip", *missing) else find_spec(name))
