"""The contents of a package of Python, made from installations of every kind."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in.python import Installation, find_pythons, python_files, read_dynamic, with_run_path
from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.errors import WorkError
from tests.support.needs import needs

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = sys.implementation.cache_tag

pytestmark = needs("system", sys.platform == "linux", "Python is made real on Linux only")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    stdlib = tmp_path / "old/lib" / f"python{MINOR}"
    for name in ("json/__init__.py", "test/test_json.py", "site-packages/own.py", "lib-dynload/_ssl.so", "os.py"):
        path = stdlib / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (stdlib / "_sysconfigdata__linux.py").write_text(f"build_time_vars = {{'prefix': '{tmp_path / 'old'}'}}\n")
    executable = tmp_path / "old/bin/python"
    executable.parent.mkdir()
    executable.write_bytes(b"not an ELF file")
    return Installation(f"{MINOR}.9", tmp_path / "old", executable, stdlib, None, None, None, debian=False)


def files(installation: Installation) -> dict[str, PackageFile]:
    return {file.path: file for file in python_files(installation)}


def test_the_standard_library_goes_in_and_its_tests_stay_out(installation: Installation) -> None:
    assert set(files(installation)) == {
        f"bin/python{MINOR}",
        "bin/python3",
        "bin/python",
        f"lib/python{MINOR}/_sysconfigdata__linux.py",
        f"lib/python{MINOR}/json/__init__.py",
        f"lib/python{MINOR}/lib-dynload/_ssl.so",
        f"lib/python{MINOR}/os.py",
        f"lib/python{MINOR}/site-packages/README.txt",
    }


def test_the_prefix_is_replaced_on_installation(installation: Installation) -> None:
    data = files(installation)[f"lib/python{MINOR}/_sysconfigdata__linux.py"]
    assert data.prefix == str(installation.prefix)


def test_byte_code_goes_in_without_a_look_at_the_source(installation: Installation) -> None:
    py_compile.compile(str(installation.stdlib / "os.py"))
    code = files(installation)[f"lib/python{MINOR}/__pycache__/os.{TAG}.pyc"].read()

    assert code[4:16] == bytes([1]) + bytes(11)


def test_byte_code_that_is_out_of_date_stays_out(installation: Installation) -> None:
    py_compile.compile(str(installation.stdlib / "os.py"))
    os.utime(installation.stdlib / "os.py", (1, 1))

    assert f"lib/python{MINOR}/__pycache__/os.{TAG}.pyc" not in files(installation)


def test_debian_keeps_its_places_to_itself(installation: Installation, tmp_path: Path) -> None:
    (installation.stdlib / "sysconfig.py").write_text(
        'def _get_preferred_schemes():\n    return {"prefix": "posix_local"}\n'
    )
    (installation.stdlib / "_sysconfigdata__linux.py").write_text(
        "build_time_vars = {'prefix': '/usr', 'CC': '/usr/bin/cc'}"
    )
    debian = Installation(
        installation.version, Path("/usr"), installation.executable, installation.stdlib, None, None, None, debian=True
    )
    made = files(debian)
    schemes: dict[str, object] = {}
    exec(made[f"lib/python{MINOR}/sysconfig.py"].read(), schemes)  # noqa: S102 - what this test wrote, and our change of it

    assert schemes["_get_preferred_schemes"]()["prefix"] == "posix_prefix"  # type: ignore[operator]
    assert f"lib/python{MINOR}/sitecustomize.py" in made
    data = made[f"lib/python{MINOR}/_sysconfigdata__linux.py"]
    assert data.read().decode() == f"build_time_vars = {{'prefix': '{data.prefix}', 'CC': '/usr/bin/cc'}}"


def test_an_installation_that_is_gone_is_reported(installation: Installation) -> None:
    installation.executable.unlink()
    with pytest.raises(WorkError, match="cannot make a package of Python"):
        files(installation)


def test_a_program_that_is_not_a_python_is_skipped(tmp_path: Path) -> None:
    other = "3.8" if MINOR != "3.8" else "3.9"
    fake = tmp_path / f"python{other}"
    fake.write_text("#!/bin/sh\necho '{}'\n")
    fake.chmod(0o755)

    assert [found.minor for found in find_pythons([other, MINOR], path=str(tmp_path))] == [MINOR]


def test_a_run_path_is_changed_in_place(tmp_path: Path, c_compiler: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    command = [str(c_compiler), "a.c", "-o", "a", "-Wl,-rpath,/a/long/path/to/a/library/folder"]
    subprocess.run(command, cwd=tmp_path, check=True)
    content = (tmp_path / "a").read_bytes()

    dynamic = read_dynamic(content)
    assert dynamic is not None
    assert dynamic.run_path == "/a/long/path/to/a/library/folder"
    assert any(name.startswith("libc.") for name in dynamic.needed)
    moved = with_run_path(content, "$ORIGIN/../lib")
    assert moved is not None
    (tmp_path / "a").write_bytes(moved)
    assert subprocess.run([tmp_path / "a"], check=False).returncode == 0
    assert (read_dynamic(moved) or dynamic).run_path == "$ORIGIN/../lib"
    assert with_run_path(moved, "/one/that/is/much/too/long/for/it") is None


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + bytes(10), b"\x7fELF\x02\x01" + b"\xff" * 200]
)
def test_other_files_than_elf_have_no_run_path(content: bytes) -> None:
    assert read_dynamic(content) is None
    assert with_run_path(content, "/lib") is None
