"""GPU code in wheels, zips, tars and packages, and in archives inside of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import WorkError
from feedstock_tools.gpu_code import archives
from feedstock_tools.gpu_code.archives import Unread, files_of
from feedstock_tools.gpu_code.code import architecture_names, contents, gpu_code
from feedstock_tools.report.pins.gpu import gpu_code_text

PTX = b"x" * 700 + b".version 8.0\n.target sm_90\n.address_size 64\n\0"
LONG = "nvidia/" + "l" * 120 + "/libk.so"


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        link = tarfile.TarInfo("lib/libk.so.1")
        link.type, link.linkname = tarfile.SYMTYPE, "libk.so"
        archive.addfile(link)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def conda(folder: Path) -> bytes:
    files = [PackageFile("lib/libk.so", PTX), PackageFile("info.txt", b"")]
    return write_package(folder, PackageMetadata("k", "1.0", "cuda129_0", 0, "linux-64"), files).read_bytes()


FILES = {"k/libk.so": PTX, "k/none.so": b"none", LONG: PTX}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("k-1.0-cp312-cp312-linux_x86_64.whl", zipped(FILES)),
        ("k.zip", zipped(FILES, zipfile.ZIP_STORED)),
        ("k.zip", zipped(FILES, zipfile.ZIP_LZMA)),
        ("k.tar", tarred(FILES)),
        ("k.tar.gz", gzip.compress(tarred(FILES, tarfile.GNU_FORMAT))),
        ("k.tar.bz2", bz2.compress(tarred(FILES))),
        ("k.tar.xz", lzma.compress(tarred(FILES))),
        ("k.txz", lzma.compress(tarred(FILES)[:1024]) + lzma.compress(tarred(FILES)[1024:])),
        ("k", gzip.compress(tarred(FILES))),  # whatever its name
    ],
)
def test_the_files_of_each_kind_of_archive(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    found = gpu_code(tmp_path / name)
    assert {path: architecture_names(codes) for path, codes in found.items()} == {
        "k/libk.so": ["compute_90"],
        LONG: ["compute_90"],
    }


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_no_tar(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "k.ptx.packed").write_bytes(pack(PTX))
    assert list(gpu_code(tmp_path / "k.ptx.packed")) == ["k.ptx.packed"]


def test_archives_inside_of_archives(tmp_path: Path) -> None:
    inner = gzip.compress(tarred({"k.conda": conda(tmp_path), "k.whl": zipped({"libk.so": PTX})}))
    (tmp_path / "all.zip").write_bytes(zipped({"a/inner.tar.gz": inner, "k.ptx.gz": gzip.compress(PTX)}))
    found = gpu_code(tmp_path / "all.zip")
    assert list(found) == ["a/inner.tar.gz/k.conda/lib/libk.so", "a/inner.tar.gz/k.whl/libk.so", "k.ptx.gz"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "all.zip").rename(tmp_path / "folder" / "all.zip")
    assert [name.partition("/")[0] for name in gpu_code(tmp_path / "folder")] == ["all.zip"] * 3


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("k.7z", b"7z\xbc\xaf\x27\x1c" + PTX, "a 7-Zip archive cannot be read here"),
        ("k.tar.zst", b"\x28\xb5\x2f\xfd" + PTX, "a Zstandard file cannot be read here"),
        ("k.deb", b"!<arch>\ndebian-binary" + PTX, "a Debian package cannot be read here"),
        ("k.whl", zipped(FILES)[:-30], "damaged or encrypted"),
        ("k.tar.gz", gzip.compress(tarred(FILES))[:-30], "damaged or encrypted"),
        ("k.tar", tarred(FILES)[:2000], "damaged or encrypted"),
        ("k.tar.bz2", bz2.compress(tarred(FILES) + tarred({"info/index.json": b"{}"})), "bytes after its end"),
        ("k.tar.xz", lzma.compress(tarred(FILES))[:200], "damaged or encrypted"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WorkError, match=reason):
        gpu_code(tmp_path / name)
    (tmp_path / "outer.zip").write_bytes(zipped({f"a/{name}": content}))
    found = contents(tmp_path / "outer.zip")
    assert reason in gpu_code_text(found)
    assert [entry for entry in found.values() if isinstance(entry, Unread)]
    listed = CliRunner().invoke(command, ["binary", str(tmp_path / "outer.zip"), "--json"], standalone_mode=False)
    assert '"not_read"' in listed.output


@pytest.mark.parametrize(
    ("second", "reason"),
    [("info/index.json", "two"), ("./info//index.json", "plainly"), ("lib/libk.so", "two"), ("a/../x", "plainly")],
)
def test_a_package_has_the_one_reading_that_all_have_of_it(tmp_path: Path, second: str, reason: str) -> None:
    index = b'{"name": "k", "version": "1.0", "build": "0", "build_number": 0, "subdir": "linux-64", "depends": []}'
    package = tmp_path / "k-1.0-0.tar.bz2"
    for more in ((), ((second, b"none"),)):
        with tarfile.open(package, "w:bz2") as archive:
            for name, content in (("info/index.json", index), ("lib/libk.so", PTX), *more):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        if not more:
            assert list(gpu_code(package)) == ["lib/libk.so"]
    with pytest.raises(WorkError, match=reason):
        gpu_code(package)


def test_an_encrypted_zip_is_said(tmp_path: Path) -> None:
    content = bytearray(zipped({"libk.so": PTX}, zipfile.ZIP_STORED))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "k.zip").write_bytes(content)
    with pytest.raises(WorkError, match="encrypted"):
        gpu_code(tmp_path / "k.zip")


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "unpacked_size", lambda path: 1_000_000.0)
    zeros = bytes(3_000_000)
    for content in (
        zipped({"a": zeros}),
        gzip.compress(tarred({"a": zeros})),
        zipped({"a.tar.gz": gzip.compress(tarred({"a": zeros}))}),
        lzma.compress(zeros),
    ):
        (tmp_path / "bomb").write_bytes(content)
        with pytest.raises(WorkError, match="it unpacks to more than 1 MB"):
            gpu_code(tmp_path / "bomb")


def test_an_archive_of_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MOST_FILES", 10)
    for content in (zipped({str(number): b"" for number in range(20)}), tarred({str(n): b"" for n in range(20)})):
        (tmp_path / "many").write_bytes(content)
        with pytest.raises(WorkError, match="more than 10 files"):
            gpu_code(tmp_path / "many")


def test_each_file_of_an_archive_is_a_new_one(tmp_path: Path) -> None:
    """One that is emptied and written again goes to the disk at once on ext4, which takes minutes for 20,000 files."""
    (tmp_path / "two.tar").write_bytes(tarred({"a": b"first", "b": b"second"}))
    files = files_of(tmp_path / "two.tar")
    _, first = next(files)
    assert isinstance(first, Path)
    with first.open("rb") as stream:
        assert next(files)[0] == "b"
        assert stream.read() == b"first"
    list(files)


def test_archives_nested_too_deep_are_said(tmp_path: Path) -> None:
    content = PTX
    for _ in range(8):
        content = zipped({"a": content})
    (tmp_path / "deep.zip").write_bytes(content)
    assert "inside of 4 other archives" in gpu_code_text(contents(tmp_path / "deep.zip"))


def test_names_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "k.tar").write_bytes(tarred({"../../out": PTX, "/etc/out": PTX}))
    assert list(gpu_code(tmp_path / "in" / "k.tar")) == ["../../out", "/etc/out"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "k.tar"]


def test_of_a_name_without_end_only_its_beginning_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_LONGEST_NAME", 100)
    (tmp_path / "k.tar").write_bytes(tarred({LONG: PTX, "k.so": PTX}))
    found = list(gpu_code(tmp_path / "k.tar"))
    assert found[0] == "k.so"
    assert len(found[1]) < 100 < len(LONG)


def test_a_static_library_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "libk.a").write_bytes(b"!<arch>\n" + PTX)
    assert list(gpu_code(tmp_path / "libk.a")) == ["libk.a"]
