"""The compiler that the stand-in channel's compiler packages call: for this machine and for another Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in.compilers import (
    ZIG_VERSION,
    Zig,
    compiler_files,
    find_compiler,
    find_cross_compiler,
)
from feedstock_tools.builds.stand_in.identity import programs_called, stand_in_identity
from feedstock_tools.facts.packages import packages_file
from feedstock_tools.platforms import Platform
from tests.support.needs import needs

HERE = Platform.here()
OTHER = Platform.parse("linux-aarch64" if HERE.arch == "64" else "linux-64")
MACHINE = {"64": "x86_64", "aarch64": "aarch64"}[OTHER.arch]
ZIG = Zig(Path("/kept/zig"), Path("/kept/cache"))
#: As gcc and clang do without an option.
PLAIN = ("-fno-sanitize=undefined",)

pytestmark = needs("system", HERE.os == "linux", "compilers are real on Linux only")


def program(folder: Path, name: str, status: int = 0) -> Path:
    """A program that does nothing, or fails."""
    path = folder / name
    folder.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return path


def test_the_compiler_on_path_comes_before_zig(tmp_path: Path) -> None:
    gcc = program(tmp_path, "gcc")
    found = find_compiler(path=str(tmp_path), zig=ZIG)
    assert found is not None
    assert (found.kind, found.c, found.cxx) == ("gcc", (str(gcc),), None)


def test_zig_serves_where_the_one_on_path_makes_no_programs(tmp_path: Path) -> None:
    program(tmp_path, "gcc", status=1)
    found = find_compiler(path=str(tmp_path), zig=ZIG)
    assert found is not None
    assert (found.c, found.cxx) == (("/kept/zig/zig", "cc", *PLAIN), ("/kept/zig/zig", "c++", *PLAIN))
    assert find_compiler(path=str(tmp_path)) is None


def test_the_cross_compiler_on_path_comes_before_zig(tmp_path: Path) -> None:
    gcc = program(tmp_path, f"{MACHINE}-linux-gnu-gcc")
    qemu = program(tmp_path, f"qemu-{MACHINE}")
    found = find_cross_compiler(OTHER, path=str(tmp_path), zig=ZIG)
    assert found is not None
    assert (found.kind, found.c) == ("cross gcc", (str(gcc),))
    assert found.activation["CROSSCOMPILING_EMULATOR"] == str(qemu)


def test_zig_is_the_cross_compiler_without_another_and_names_the_system(tmp_path: Path) -> None:
    program(tmp_path, f"{MACHINE}-linux-gnu-gcc", status=1)
    found = find_cross_compiler(OTHER, path=str(tmp_path), zig=ZIG)
    assert found is not None
    files = {file.path: file.read().decode() for file in compiler_files("cxx_compiler", "gxx_x", OTHER, found)}
    text = files[f"bin/{MACHINE}-conda-linux-gnu-c++"]
    target = f"{PLAIN[0]} -target {MACHINE}-linux-gnu.2.17"
    assert text.splitlines()[-1] == f'exec /kept/zig/zig c++ {target} "$@"'
    assert "export ZIG_GLOBAL_CACHE_DIR=/kept/cache" in text


def test_zig_does_not_see_options_that_its_linker_refuses(tmp_path: Path) -> None:
    program(tmp_path / "zig", "zig").write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    found = find_compiler(path="", zig=Zig(tmp_path / "zig", tmp_path / "cache"))
    files = {file.path: file.read() for file in compiler_files("c_compiler", "gcc_x", HERE, found)}
    (text,) = (text for path, text in files.items() if path.endswith("-cc"))
    (tmp_path / "cc").write_bytes(text)
    words = ["-shared", "-Wl,-Bsymbolic-functions", "-Wl,--exclude-libs,ALL", "-Wl,-z,now", "a b.o", "-o", "it's.so"]
    seen = subprocess.run(["sh", tmp_path / "cc", *words], capture_output=True, text=True, check=True).stdout
    assert seen.splitlines() == ["cc", *PLAIN, "-shared", "-Wl,-z,now", "a b.o", "-o", "it's.so"]


@pytest.mark.parametrize("subdir", ["linux-ppc64le", "linux-s390x", "osx-arm64", "win-64"])
def test_zig_crosses_only_to_what_the_channel_has_compilers_for(tmp_path: Path, subdir: str) -> None:
    assert find_cross_compiler(Platform.parse(subdir), path=str(tmp_path), zig=ZIG) is None


#: Stands for what is above the data on packages.
HEAD = b"""\
# What the stand-in channel holds: the metadata of real packages, as the recipes say it at the commits named here.
# docs/stand-in-channel.md describes the format; feedstock_tools/facts/packages.py reads and checks it.

"""


def identity(platform: Platform, *parts: str) -> str:
    """The inputs of a channel's identity, as ledgers record them."""
    content = packages_file().read_bytes()
    packages = sha256(HEAD + content[content.index(b"sources:") :]).hexdigest()
    return sha256("\n".join(["10", platform.subdir, packages, *parts]).encode()).hexdigest()


def named(path: Path) -> str:
    """A program as identities have it now: its name and what is in it."""
    content = path.read_bytes()
    return f"{path.name} {sha256(b'%d' % len(content) + bytes([10]) + content).hexdigest()}"


def test_the_identity_of_builds_is_that_of_their_programs(tmp_path: Path) -> None:
    gcc = program(tmp_path, "gcc")
    assert stand_in_identity(HERE, path=str(tmp_path)) == identity(HERE, named(gcc))
    cross, qemu = program(tmp_path, f"{MACHINE}-linux-gnu-gcc"), program(tmp_path, f"qemu-{MACHINE}")
    assert stand_in_identity(OTHER, path=str(tmp_path)) == identity(OTHER, named(gcc), named(cross), named(qemu))


def test_the_identity_is_the_same_wherever_the_same_compiler_is_and_another_with_another(tmp_path: Path) -> None:
    here, there, other = (program(tmp_path / name, "gcc") for name in ("here", "there", "other"))
    os.utime(there, (1, 1))
    other.write_text(other.read_text() + "# another version")
    ours, theirs, others = (stand_in_identity(HERE, path=str(file.parent)) for file in (here, there, other))
    assert ours == theirs != others


def test_programs_that_packages_call_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    here, there = (program(tmp_path / name, "gcc") for name in ("here", "there"))
    ours, theirs = (programs_called(HERE, path=str(file.parent)) for file in (here, there))
    assert ours != theirs


def test_the_identity_of_a_cross_build_by_zig_names_its_version(tmp_path: Path) -> None:
    gcc = program(tmp_path, "gcc")
    assert stand_in_identity(OTHER, path=str(tmp_path)) == identity(OTHER, named(gcc), f"zig {ZIG_VERSION}")


def test_the_identity_without_a_compiler_depends_on_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    zig = f"zig {ZIG_VERSION}"
    for interpreter in ("/one/python", "/other/python"):
        monkeypatch.setattr(sys, "executable", interpreter)
        assert stand_in_identity(HERE, path="") == identity(HERE, zig)
        assert stand_in_identity(OTHER, path="") == identity(OTHER, zig, zig)
