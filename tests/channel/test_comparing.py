"""Two packages compared file by file, and what `feedstock-tools diff` says of them."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import compare_packages, write_package
from feedstock_tools.channel.packages.reading import unpack
from feedstock_tools.errors import WorkError
from tests.support.command import run, tool

METADATA = PackageMetadata(name="one", version="1", build="0", build_number=0, subdir="linux-64", timestamp=0)


def package(folder: Path, *files: PackageFile, metadata: PackageMetadata = METADATA) -> Path:
    """A package in a folder of its own."""
    return write_package(folder, metadata, files)


def of(path: str, content: bytes = b"", *, executable: bool = False, link: str | None = None) -> PackageFile:
    return PackageFile(path, content, executable=executable, link=link)


def test_every_file_that_differs_is_named_with_how(tmp_path: Path) -> None:
    first = package(
        tmp_path / "first",
        of("same.txt", b"the same\n"),
        of("text.txt", b"one\ntwo\nthree\n"),
        of("bytes.so", b"\0abcd"),
        of("longer.so", b"\0ab"),
        of("program", b"x", executable=True),
        of("link", link="here"),
        of("was-link", link="here"),
        of("gone.txt", b"1234"),
    )
    second = package(
        tmp_path / "second",
        of("same.txt", b"the same\n"),
        of("text.txt", b"one\n2\nthree\n"),
        of("bytes.so", b"\0abXd"),
        of("longer.so", b"\0abc"),
        of("program", b"x"),
        of("link", link="there"),
        of("was-link", b"here"),
        of("new.txt", b"12"),
    )
    found = compare_packages(first, second)
    assert not found.same_bytes
    assert not found.same_contents
    contents = {each.path: each for each in found.differences if not each.path.startswith("info/")}
    assert {path: each.what for path, each in contents.items()} == {
        "bytes.so": "bytes",
        "gone.txt": "only in the first",
        "link": "link",
        "longer.so": "bytes",
        "new.txt": "only in the second",
        "program": "mode",
        "text.txt": "text",
        "was-link": "kind",
    }
    assert contents["text.txt"].lines == ("@@ -2 +2 @@", "-two", "+2")
    assert (contents["bytes.so"].first_byte, contents["longer.so"].first_byte) == (3, 3)
    assert (contents["gone.txt"].sizes, contents["new.txt"].sizes) == ((4, 0), (0, 2))


def test_packages_that_are_only_packed_differently_have_the_same_contents(tmp_path: Path) -> None:
    first = package(tmp_path / "first", of("a", b"a"))
    later = package(tmp_path / "second", of("a", b"a"), metadata=replace(METADATA, timestamp=86_400_000))
    assert [each.path for each in compare_packages(first, later).differences] == ["info/index.json"]
    bz2 = tmp_path / "one-1-0.tar.bz2"
    with tarfile.open(bz2, "w:bz2") as archive:
        unpacked = tmp_path / "unpacked"
        unpack(first, unpacked)
        for part in ("a", "info"):
            archive.add(unpacked / part, part)
    found = compare_packages(first, bz2)
    assert (found.same_bytes, found.same_contents) == (False, True)
    assert compare_packages(first, first).same_bytes


def test_a_file_that_is_no_package_is_reported(tmp_path: Path) -> None:
    (tmp_path / "one-1-0.conda").write_bytes(b"no")
    with pytest.raises(WorkError, match="not a readable conda package"):
        compare_packages(tmp_path / "one-1-0.conda", tmp_path / "one-1-0.conda")


def test_the_command_compares_packages(tmp_path: Path) -> None:
    first = package(tmp_path / "first", of("share/a.txt", b"one\n"))
    second = package(tmp_path / "second", of("share/a.txt", b"\x1b[31mtwo\n"))
    shown = run(tool("diff", str(first), str(second)))
    assert shown.returncode == 0, shown.stderr
    assert "share/a.txt: another text\n  @@ -1 +1 @@\n  -one\n" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert shown.stdout.endswith("2 of 4 files differ.\n")  # info/paths.json has the hash of the other
    values = json.loads(run(tool("diff", str(first), str(second), "--json")).stdout)
    assert (values["same_contents"], values["files"]) == (False, 4)
    assert [each["path"] for each in values["differences"]] == ["info/paths.json", "share/a.txt"]
    same = run(tool("diff", str(first), str(first), "--markdown"))
    assert same.stdout.startswith("**The same package, byte for byte (")


def test_a_package_is_compared_with_another_only(tmp_path: Path) -> None:
    first = package(tmp_path / "first")
    refused = run(tool("diff", str(first), "HEAD"))
    assert refused.returncode == 2
    assert "can only be compared with another" in refused.stderr
