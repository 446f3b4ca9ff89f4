"""Packages and repodata that are made to exhaust their readers are refused, at once and with the name of the file."""

from __future__ import annotations

import bz2
import io
import json
import os
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from feedstock_tools.channel import repodata
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages import reading
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.packing import stored_frame as stored
from feedstock_tools.channel.packages.reading import read_documents, read_package, unpack
from feedstock_tools.channel.repodata import read_records, run_exports_of
from feedstock_tools.errors import WorkError
from feedstock_tools.gpu_code import code
from feedstock_tools.gpu_code.code import gpu_code, gpu_code_in_bytes
from maintenance.hostile.archives import END, INDEX, PLAIN, conda, header, member, zeros
from tests.support.limits import MEMORY, SECONDS, limited, refusal_of

METADATA = PackageMetadata("bomb", "1", "0", 0, "noarch")
GIB = 1 << 30


def index(folder: Path, text: bytes) -> Path:
    return conda(folder, stored(member("info/index.json", text) + END))


def huge(name: str, size: int = 8 * GIB) -> bytes:
    return stored(header(name, size)) + zeros(size) + stored(END)


def many(count: int) -> bytes:
    return stored(b"".join(header(f"info/{number}", 0) for number in range(count)) + END)


def _tar_bz2(folder: Path) -> Path:
    """A `.tar.bz2` of zeros: each block of bzip2 unpacks to 45 MB of them."""
    path = folder / "bomb-1-0.tar.bz2"
    with path.open("wb") as stream:
        packer = bz2.BZ2Compressor(9)
        stream.write(packer.compress(header("info/index.json", 8 * GIB)))
        for _ in range(16):
            stream.write(packer.compress(bytes(1 << 20)))
        stream.write(packer.flush())
    return path


def _sparse(folder: Path) -> Path:
    path = folder / "bomb-1-0.conda"
    with path.open("wb") as stream:
        stream.truncate(64 * GIB)
    return path


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "bomb-1-0.conda")
    return folder / "bomb-1-0.conda"


def _nested_zip(folder: Path) -> Path:
    path = conda(folder)
    content = path.read_bytes()
    path.write_bytes(content[:60] + content[60:].replace(b"PK\1\2", b"PK\1\3"))
    return path


def many_depends(count: int) -> bytes:
    """A document of a package with a list of this length, written at once: to dump such a list takes time."""
    return json.dumps({**INDEX, "depends": ["a"]}).encode().replace(b'["a"]', b'["a"' + b', "a"' * (count - 1) + b"]")


DEEP = b'{"name": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
#: Packages whose metadata must be refused.
METADATA_BOMBS: dict[str, Callable[[Path], Path]] = {
    "8 GiB of zeros as index.json": lambda folder: conda(folder, huge("info/index.json")),
    "8 GiB before index.json": lambda folder: conda(folder, huge("info/license") + PLAIN),
    "a size of 8 EiB": lambda folder: conda(folder, stored(header("info/index.json", 8 << 60) + END)),
    "3 million depends": lambda folder: index(folder, many_depends(3_000_000)),
    "11 thousand depends": lambda folder: index(folder, many_depends(11_000)),
    "nested lists": lambda folder: index(folder, DEEP),
    "a number of a million digits": lambda folder: index(
        folder, json.dumps(INDEX).replace('"build_number": 0', '"build_number": ' + "9" * 1_000_000).encode()
    ),
    "infinite build number": lambda folder: index(folder, json.dumps({**INDEX, "build_number": float("inf")}).encode()),
    "an escape sequence as name": lambda folder: index(folder, json.dumps({**INDEX, "name": "\x1b[2J"}).encode()),
    "half a character": lambda folder: index(folder, b'{"name": "\\ud800", "version": "1", "build": "0"}'),
    "index.json is a link": lambda folder: conda(
        folder, stored(header("info/index.json", 0, tarfile.SYMTYPE, "/etc/passwd") + END)
    ),
    "index.json is a FIFO": lambda folder: conda(folder, stored(header("info/index.json", 0, tarfile.FIFOTYPE) + END)),
    "8 GiB in a .tar.bz2": _tar_bz2,
    "a sparse file": _sparse,
    "a FIFO": _fifo,
    "a broken directory": _nested_zip,
    "a frame that ends early": lambda folder: conda(folder, PLAIN[:40]),
    "more members than are read": lambda folder: conda(folder, many(1_001)),
}


@pytest.mark.parametrize("bomb", METADATA_BOMBS.values(), ids=METADATA_BOMBS)
def test_metadata_that_exhausts_its_reader_is_refused(
    tmp_path: Path, bomb: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reading.MOST_MEMBERS, "info", 1_000)
    path = bomb(tmp_path)
    message = refusal_of(lambda: read_package(path), memory=2 * MEMORY)
    assert path.name in message
    assert not refusal_of(lambda: read_package(write_package(tmp_path, METADATA)))


#: Packages whose contents must be refused.
CONTENT_BOMBS = {
    "8 GiB of zeros": lambda folder: conda(folder, pkg=huge("lib/a.so")),
    "many of 64 MiB": lambda folder: conda(
        folder, pkg=b"".join(stored(header(f"lib/{n}.so", 1 << 26)) + zeros(1 << 26) for n in range(64)) + stored(END)
    ),
    "8 GiB in a license": lambda folder: conda(folder, PLAIN[:-7] + huge("info/license")),
    "a path outside": lambda folder: conda(folder, pkg=stored(member("../../../outside", b"x") + END)),
    "a link outside, and a file behind it": lambda folder: conda(
        folder,
        pkg=stored(header("lib", 0, tarfile.SYMTYPE, str(folder)) + member("lib/outside", b"x") + END),
    ),
    "a device": lambda folder: conda(folder, pkg=stored(header("lib/zero", 0, tarfile.CHRTYPE) + END)),
    "a name of a million characters": lambda folder: conda(folder, pkg=stored(member("a" * 1_000_000, b"x") + END)),
}


@pytest.mark.parametrize("bomb", CONTENT_BOMBS.values(), ids=CONTENT_BOMBS)
def test_contents_that_exhaust_the_disk_or_leave_their_folder_are_refused(
    tmp_path: Path, bomb: Callable[[Path], Path]
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = bomb(inside)
    before = {one.name for one in tmp_path.rglob("*")}
    message = refusal_of(lambda: gpu_code(path))
    assert {one.name for one in tmp_path.rglob("*")} == before
    assert not message or path.name in message


def test_the_numbers_of_entries_are_those_that_the_documentation_names() -> None:
    assert reading.MOST_MEMBERS == {"info": 10_000, "pkg": 40_000}


def test_a_package_of_too_many_files_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reading.MOST_MEMBERS, "pkg", 1000)
    headers = b"".join(header(f"lib/{number}", 0) for number in range(1001))
    path = conda(tmp_path, pkg=stored(headers + END))
    assert "it has more than 1000 entries" in refusal_of(lambda: unpack(path, tmp_path / "unpacked"))
    assert not (tmp_path / "unpacked").exists()


def test_a_package_has_no_more_files_than_its_size_explains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_FILES_BASE", 10)
    few = [PackageFile(f"lib/{number}.so", b"") for number in range(60)]
    path = write_package(tmp_path / "padded", METADATA, [*few, PackageFile("lib/large.so", os.urandom(20_000))])
    unpack(path, tmp_path / "unpacked")  # stored, not compressed: each header takes 512 bytes
    headers = b"".join(header(f"lib/{number}", 0) for number in range(60))
    for name in ("bomb-1-0.tar.bz2", "bomb-1-0.tar.gz"):
        small = tmp_path / name
        small.write_bytes(bz2.compress(member("info/index.json", json.dumps(INDEX).encode()) + headers + END))
        explained = 10 + small.stat().st_size // 250
        assert explained < 60
        refusal = refusal_of(lambda small=small: gpu_code(small))  # type: ignore[misc]
        assert f"it has more than {explained} " in refusal
    assert "it has more than" in refusal_of(lambda: unpack(tmp_path / "bomb-1-0.tar.bz2", tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def test_one_bad_package_does_not_end_the_rest(tmp_path: Path) -> None:
    bad, good = conda(tmp_path, huge("info/index.json")), write_package(tmp_path / "good", METADATA)
    with limited():
        assert [bool(refusal_of(lambda path=path: read_package(path))) for path in (bad, good, bad, good)] == [  # type: ignore[misc]
            True,
            False,
            True,
            False,
        ]
        with pytest.raises(WorkError, match="refused"):
            add_packages(tmp_path / "channel", [good, bad])
        assert not (tmp_path / "channel").exists()
        add_packages(tmp_path / "channel", [good])


def test_a_package_that_unpacks_to_much_is_read_where_its_size_explains_it(tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 20
    path = write_package(tmp_path, METADATA, [PackageFile("lib/a.so", content)])
    unpack(path, tmp_path / "unpacked")
    assert (tmp_path / "unpacked/lib/a.so").stat().st_size == len(content)
    assert read_documents(path, ["info/paths.json", "info/none"])["info/none"] is None


def _repodata(folder: Path, text: bytes) -> Path:
    (folder / "noarch").mkdir(parents=True)
    (folder / "noarch" / "repodata.json").write_bytes(text)
    return folder


def _entry(**values: object) -> bytes:
    return json.dumps({"packages.conda": {"bomb-1-0.conda": {**INDEX, **values}}}).encode()


#: Documents of a channel that must be refused.
REPODATA_BOMBS = {
    "nested lists": b'{"packages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "nested mappings": b'{"a":' * 100_000 + b"0" + b"}" * 100_000,
    "3 million depends": b'{"packages.conda": {"bomb-1-0.conda": ' + many_depends(3_000_000) + b"}}",
    "depends that are a text": _entry(depends="abc" * 1000),
    "depends that are numbers": _entry(depends=[1, 2]),
    "a number of a million digits": _entry().replace(b'"build_number": 0', b'"build_number": ' + b"9" * 1_000_000),
    "an infinite number": _entry(timestamp=float("inf")),
    "an escape sequence as name": _entry(name="\x1b]0;x\x07"),
    "a line break as version": _entry(version="1\n2"),
    "half a character as build": _entry().replace(b'"0"', b'"\\ud800"'),
    "packages that are a list": b'{"packages": [1]}',
    "a list": b"[]",
    "NUL bytes": bytes(1 << 20),
    "nothing": b"",
}


@pytest.mark.parametrize("text", REPODATA_BOMBS.values(), ids=REPODATA_BOMBS)
def test_repodata_that_exhausts_its_reader_is_refused(tmp_path: Path, text: bytes) -> None:
    channel = _repodata(tmp_path, text)
    assert "repodata" in refusal_of(lambda: read_records(str(channel), ["noarch"]))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")])
def test_repodata_that_is_not_a_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "noarch").mkdir()
    make(tmp_path / "noarch" / "repodata.json")
    assert "cannot read the repodata" in refusal_of(lambda: read_records(str(tmp_path), ["noarch"]))


def test_run_exports_that_unpack_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repodata, "_LARGEST_LIST", 8 << 20)
    packer = bz2.BZ2Compressor(9)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(24)]
    (tmp_path / "run_exports.json.bz2").write_bytes(b"".join([*parts, packer.flush()]))
    url = f"{tmp_path.as_uri()}/bomb-1-0.conda"
    assert "more than" in refusal_of(lambda: run_exports_of(url))


def _chains() -> Iterator[bytes]:
    """Entries of fat binaries, each of which contains the beginning of another, and none of which ends well."""
    magic = bytes.fromhex("50ed55ba01001000")
    for _ in range(40_000):
        entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 1, 64, 16, 0, 0, 0, 0, 80, 0, 0, 0, 0, 0)
        yield entry + magic + struct.pack("<Q", 40_000 * 70)


def test_code_that_only_looks_like_fat_binaries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(_chains())
    monkeypatch.setattr(code, "_MOST_STEPS", code._MOST_STEPS // 10)
    message = refusal_of(lambda: gpu_code_in_bytes(content + bytes(len(content))), seconds=SECONDS / 5)
    assert "fat binaries" in message


@pytest.mark.parametrize(
    "content",
    [
        bytes.fromhex("50ed55ba01001000") * 80_000,
        b".version 1.0 .target sm_90 " * 40_000,
        b".version " + b" " * 1_000_000,
        b".version 1." + b"0" * 1_000_000,
        (b"\x7fELF\x02\x01\x01\x33" + bytes(10) + b"\xbe\0" + bytes(44)) * 15_000,
    ],
)
def test_code_of_many_pieces_is_read_in_little_time(content: bytes) -> None:
    with limited(SECONDS / 2):
        gpu_code_in_bytes(io.BytesIO(content).getvalue())
