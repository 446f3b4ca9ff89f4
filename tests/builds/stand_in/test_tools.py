"""Tools of the stand-in channel: which a build needs, fetching their wheels, and the packages made of them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools import stages
from feedstock_tools.builds.stand_in import channel
from feedstock_tools.builds.stand_in.channel import Sources, ensure_stand_in_channel
from feedstock_tools.builds.stand_in.tools import (
    byte_code,
    entry_points,
    fetch_tools,
    found_tools,
    make_files,
    wheel_files,
    wheels_for,
    why_no_tools,
)
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.channel.pip import Fetching
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.packages import Wheel, read_packages, read_tools
from feedstock_tools.platforms import Platform
from tests.support.needs import needs
from tests.support.wheels import write_wheel

HERE = Platform.here()
ARM = Platform.parse("linux-aarch64")
on_linux = needs("system", HERE.os == "linux", "the stand-in channel has tools for Linux only")


def _zip(path: Path, members: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def _wheel(index: Path, name: str, members: Mapping[str, str | bytes]) -> Wheel:
    """A wheel in a folder, with the metadata that pip asks for."""
    path = write_wheel(index, name, "1.0", members)
    content = path.read_bytes()
    return Wheel(name, "1.0", name, "noarch", None, path.name, len(content), sha256(content).hexdigest())


def _machine(index: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return own | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}


def test_the_tools_among_requirements_come_with_what_they_run_with() -> None:
    assert list(read_tools().among({"zlib", "scikit-build-core"})) == ["packaging", "pathspec", "scikit-build-core"]
    assert read_tools().among({"python", "gcc_linux-64"}) == {}


def test_each_tool_has_a_digest_of_its_own() -> None:
    known = read_tools()
    before = known.among({"cmake", "ninja"})
    changed = [replace(wheel, sha256="0" * 64) if wheel.package == "cmake" else wheel for wheel in known.wheels]

    after = replace(known, wheels=tuple(changed)).among({"cmake", "ninja"})

    assert after["cmake"] != before["cmake"]
    assert after["ninja"] == before["ninja"]


def test_needs_are_the_tools_among_the_dependencies() -> None:
    known = read_tools()
    everything = (*read_packages(), *known.packages)
    for name, needed in known.needs.items():
        packages = [package for package in everything if package.name == name]
        depends = {spec.split(" ")[0] for package in packages for spec in package.depends}
        assert packages
        assert set(needed) == depends & known.names, name


def test_every_wheel_has_its_package() -> None:
    known = read_tools()
    packages = {(package.name, package.version, package.subdir) for package in (*read_packages(), *known.packages)}
    assert [wheel.file for wheel in known.wheels if (wheel.package, wheel.version, wheel.subdir) not in packages] == []


def test_a_build_needs_the_wheels_of_its_machine_its_platform_and_its_python() -> None:
    files = {wheel.file for wheel in wheels_for("numpy", ARM, "3.12")}
    assert {name.split("-")[2] for name in files} == {"cp312"}
    assert any("aarch64" in name for name in files)


def test_what_the_channel_lacks_is_named(tmp_path: Path) -> None:
    linux = Platform.parse("linux-64")
    assert why_no_tools(["make"], linux, None, str(tmp_path)) == (
        "there is no make on PATH (Debian: make), which the stand-in channel's make calls"
    )
    assert why_no_tools(["numpy"], linux, "3.9", None) == (
        "the stand-in channel has numpy for Python 3.10, 3.11, 3.12, 3.13 and 3.14, not for 3.9"
    )
    assert why_no_tools(["packaging", "numpy"], linux, "3.12", None) is None


def test_wheels_are_fetched_once(tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path / "index", name, {f"{name}.py": ""}) for name in ("one", "two")]
    steps: list[Fetching] = []
    fetch_tools(wheels, tmp_path / "kept", _machine(tmp_path / "index"), steps.append)

    assert found_tools(tmp_path / "kept") == {wheel.file for wheel in wheels}
    assert steps[-1].stage == "ready"
    fetch_tools(wheels, tmp_path / "kept", _machine(tmp_path / "nowhere"))


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path) -> None:
    wheel = replace(_wheel(tmp_path / "index", "one", {"one.py": ""}), sha256="0" * 64)
    with pytest.raises(WorkError, match="SHA-256 differs"):
        fetch_tools([wheel], tmp_path / "kept", _machine(tmp_path / "index"))
    assert not found_tools(tmp_path / "kept")


def test_a_python_package_goes_where_each_python_finds_it(tmp_path: Path) -> None:
    members = {
        "demo/__init__.py": "",
        "demo-1.0.data/scripts/run": "#!python\nprint()\n",
        "demo-1.0.data/data/share/demo.txt": "",
        "demo-1.0.dist-info/entry_points.txt": "[console_scripts]\nDemo=demo.cli:main\n[other]\nx = y\n",
    }
    wheel = _wheel(tmp_path, "demo", members)
    path = tmp_path / wheel.file

    places = {file.path for file in wheel_files(wheel, path)}

    assert {"site-packages/demo/__init__.py", "python-scripts/run", "share/demo.txt"} <= places
    assert entry_points(path) == ("Demo = demo.cli:main",)


def test_a_package_for_one_python_has_its_programs(tmp_path: Path) -> None:
    members = {"demo.py": "", "demo-1.0.dist-info/entry_points.txt": "[console_scripts]\nrun = demo:Main.go\n"}
    wheel = replace(_wheel(tmp_path, "demo", members), python="3.12")

    files = {file.path: file for file in wheel_files(wheel, tmp_path / wheel.file)}

    script = files["bin/run"]
    assert "lib/python3.12/site-packages/demo.py" in files
    assert script.executable
    assert script.prefix is not None
    assert script.content.decode().startswith(f"#!{script.prefix}/bin/python\n")
    assert "from demo import Main\n" in script.content.decode()
    assert "sys.exit(Main.go())" in script.content.decode()


def test_of_a_program_only_what_belongs_to_it_is_taken(tmp_path: Path) -> None:
    members = {"demo/__init__.py": "", "demo/data/bin/demo": "x", "demo/data/share/demo/a": "y", "demo/other": "z"}
    wheel = replace(_wheel(tmp_path, "demo", members), take=(("demo/data", "."), ("demo/other", "bin/renamed")))

    files = {file.path: file.executable for file in wheel_files(wheel, tmp_path / wheel.file)}

    assert files == {"bin/demo": True, "share/demo/a": False, "bin/renamed": True}


def test_python_takes_the_byte_code_of_a_package_without_a_look_at_the_source(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "demo", {"demo.py": "NUMBER = 1\n"})
    (compiled,) = byte_code(wheel, tmp_path / wheel.file)
    place = tmp_path / "prefix" / compiled.path
    place.parent.mkdir(parents=True)
    place.write_bytes(compiled.content)
    source = tmp_path / "prefix" / "site-packages" / "demo.py"
    source.write_text("NUMBER = 2\n")

    spec = importlib.util.spec_from_file_location("demo", source)
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)

    assert (demo.NUMBER, demo.__file__) == (1, str(source))


@on_linux
def test_a_large_library_is_on_the_disk_once_and_packages_link_to_it(tmp_path: Path) -> None:
    library = bytes(range(256)) * 8192
    members = {"demo/__init__.py": b"", "demo/lib/libdemo.so.1": library, "demo/bin/program": library}
    wheel = _wheel(tmp_path / "index", "demo", members)
    kept = tmp_path / "kept"
    steps: list[Fetching] = []

    fetch_tools([wheel], kept, _machine(tmp_path / "index"), steps.append)

    files = {file.path: file for file in wheel_files(wheel, kept / wheel.file)}
    link = files["site-packages/demo/lib/libdemo.so.1"].link
    assert link is not None
    assert [str(path) for path in (kept / "libraries").iterdir()] == [link]
    assert Path(link).read_bytes() == library
    assert Path(link).stat().st_mode & 0o200  # a script may change its copy
    assert files["site-packages/demo/bin/program"].content == library
    assert (kept / wheel.file).stat().st_size < 2 * len(library)
    assert [(step.done, step.size) for step in steps if step.stage == "unpacking"] == [(0, len(library))]


@on_linux
@pytest.mark.parametrize("harm", ["more", "other", "shorter", "none"])
def test_a_library_that_a_build_altered_is_fetched_again(harm: str, tmp_path: Path) -> None:
    library = bytes(range(256)) * 8192
    wheel = _wheel(tmp_path / "index", "demo", {"demo/libdemo.so": library})
    kept, machine = tmp_path / "kept", _machine(tmp_path / "index")
    fetch_tools([wheel], kept, machine)
    assert found_tools(kept) == {wheel.file}
    (path,) = (kept / "libraries").iterdir()
    if harm == "none":
        path.unlink()
    else:
        path.write_bytes({"more": library + b"x", "other": library[::-1], "shorter": library[:-1]}[harm])
    assert found_tools(kept) == frozenset()
    fetch_tools([wheel], kept, machine)
    assert found_tools(kept) == {wheel.file}
    assert path.read_bytes() == library


@on_linux
def test_wheels_without_room_on_the_disk_are_refused_before_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = replace(_wheel(tmp_path / "index", "demo", {"demo.py": ""}), size=3 << 30)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=2 << 30))
    steps: list[Fetching] = []
    message = rf"the disk has no room for demo 1.0 \(3.00 GiB\): 2.00 GiB are free in {tmp_path / 'kept'}\n"
    with pytest.raises(WorkError, match=message):
        fetch_tools([wheel], tmp_path / "kept", _machine(tmp_path / "index"), steps.append)
    assert steps == []


@on_linux
def test_libraries_without_room_on_the_disk_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = replace(_wheel(tmp_path / "index", "demo", {"demo/libdemo.so": bytes(3 << 20)}), size=1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=2 << 20))
    with pytest.raises(WorkError, match=r"no room for the libraries of demo 1.0 \(3.0 MiB\)"):
        fetch_tools([wheel], tmp_path / "kept", _machine(tmp_path / "index"))
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.name != ".lock"]


def test_make_calls_the_make_of_the_machine(tmp_path: Path) -> None:
    (script, _) = make_files("/usr/bin/env echo called")
    program = tmp_path / "make"
    program.write_bytes(script.content)
    program.chmod(0o755)
    assert subprocess.run([program, "all"], capture_output=True, text=True, check=True).stdout == "called all\n"


def test_a_file_that_is_no_wheel_is_work_that_failed(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "demo", {})
    (tmp_path / wheel.file).write_text("<html>")
    with pytest.raises(WorkError, match="cannot read the wheel"):
        list(wheel_files(wheel, tmp_path / wheel.file))


@on_linux
def test_a_tool_has_contents_once_its_wheel_is_fetched(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(stages, "_show", said.append)
    pip = next(wheel for wheel in read_tools().wheels if wheel.package == "pip")
    folder = tmp_path / "tools"
    without = ensure_stand_in_channel(root, HERE, [], Sources(path="", tools=folder))
    _zip(
        folder / pip.file, {"pip/__init__.py": "", "p.dist-info/entry_points.txt": "[console_scripts]\npip=pip:main\n"}
    )
    with_pip = ensure_stand_in_channel(tmp_path / "channels", HERE, [], Sources(path="", tools=folder))

    (package, *_) = sorted((with_pip.folder / "noarch").glob("pip-*.conda"))
    code = f"site-packages/pip/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    documents = read_documents(package, ["info/link.json", "info/about.json", "site-packages/pip/__init__.py", code])

    assert f"making the package {package.name}" in said
    assert without.folder.parent.name != with_pip.folder.parent.name
    assert "pip" in without.empty
    assert "pip" not in with_pip.empty
    assert b'"pip = pip:main"' in (documents["info/link.json"] or b"")
    assert b"of this machine" in (documents["info/about.json"] or b"")
    assert documents["site-packages/pip/__init__.py"] == b""
    assert documents[code]


def test_the_hash_of_a_kept_package_is_computed_again_once_it_has_changed(tmp_path: Path) -> None:
    package = tmp_path / "demo-1.0-0.conda"
    for content in (b"one", b"another"):
        package.write_bytes(content)
        assert {channel._known_sha256(package) for _ in range(2)} == {sha256(content).hexdigest()}


@on_linux
def test_packages_without_files_are_named_where_a_build_would_miss_them(root: Path) -> None:
    empty = ensure_stand_in_channel(root, HERE, [], Sources(path="")).empty
    assert {"cmake", "cudnn", "libcublas-dev"} <= empty if HERE.subdir == "linux-64" else {"cmake"} <= empty
    assert not {name for name in empty if name.startswith(("_", "sysroot", "gcc", "libgcc", "cuda-version"))}
