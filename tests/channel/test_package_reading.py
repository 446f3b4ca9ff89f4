"""A package has one reading: what two readers may understand differently is refused, with the name of the member."""

from __future__ import annotations

import bz2
import io
import json
import os
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.packing import stored_frame as stored
from feedstock_tools.channel.packages.reading import (
    read_documents,
    read_package,
    unpack,
    unpack_own,
    verify_package,
)
from feedstock_tools.errors import WorkError
from maintenance.hostile.archives import END, INDEX, PLAIN, conda, header, member, zeros

NAME = "info/index.json"
TEXT = json.dumps(INDEX).encode()
OTHER = json.dumps({**INDEX, "name": "openssl", "version": "99"}).encode()


def paths(*listed: dict[str, object]) -> bytes:
    return member("info/paths.json", json.dumps({"paths": listed, "paths_version": 1}).encode())


def info(*parts: bytes) -> Callable[[Path], Path]:
    return lambda folder: conda(folder, stored(b"".join(parts) + END))


def pkg(*parts: bytes, listed: bytes = b"") -> Callable[[Path], Path]:
    return lambda folder: conda(folder, stored(member(NAME, TEXT) + listed + END), stored(b"".join(parts) + END))


def posix(*records: str) -> bytes:
    """An extended header of the next member."""
    texts = [f" {text}\n".encode() for text in records]
    lines = b"".join(next(b"%d%b" % (n, t) for n in range(9999) if len(b"%d%b" % (n, t)) == n) for t in texts)
    return header("x", len(lines), tarfile.XHDTYPE) + lines + bytes(-len(lines) % 512)


def long_name(name: str, kind: bytes = tarfile.GNUTYPE_LONGNAME) -> bytes:
    return header("././@LongLink", len(name) + 1, kind) + name.encode() + bytes(512 - len(name) % 512)


def summed(block: bytes, start: int, content: bytes) -> bytes:
    """A header with other bytes at a place, and with their sum."""
    changed = bytearray(block)
    changed[start : start + len(content)] = content
    changed[148:156] = b" " * 8
    changed[148:156] = b"%06o\0 " % sum(changed)
    return bytes(changed)


def zipped(*others: tuple[str, bytes], last: tuple[tuple[str, bytes], ...] = ()) -> Callable[[Path], Path]:
    """A `.conda` with members before and after its own."""

    def make(folder: Path) -> Path:
        path = folder / "bomb-1-0.conda"
        own = (("metadata.json", b"{}"), ("pkg-bomb-1-0.tar.zst", stored(END)), ("info-bomb-1-0.tar.zst", PLAIN))
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (*others, *own, *last):
                archive.writestr(name, content)
        return path

    return make


def bytes_of(change: Callable[[bytes], bytes], name: str = "bomb-1-0") -> Callable[[Path], Path]:
    """A package whose bytes were changed."""

    def make(folder: Path) -> Path:
        path = conda(folder, name=name)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def bzipped(*streams: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "bomb-1-0.tar.bz2"
        path.write_bytes(b"".join(map(bz2.compress, streams)))
        return path

    return make


def deflated(folder: Path) -> Path:
    path = folder / "bomb-1-0.conda"
    with zipfile.ZipFile(conda(folder, name="other")) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return path


def in_local_header(content: bytes) -> bytes:
    """Another name of the info part in the header before it than in the directory."""
    place = content.index(b"info-")
    return content[:place] + b"xnfo-" + content[place + 5 :]


def with_extra(folder: Path) -> Path:
    path = folder / "bomb-1-0.conda"
    with zipfile.ZipFile(conda(folder, name="other")) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name)
            entry.extra = b"\x75\x70\x05\x00\x01abcd"  # another name, in Unicode
            new.writestr(entry, old.read(name))
    return path


AROUND = "bytes before or after its zip"
LIB = {"_path": "lib/a", "path_type": "hardlink", "size_in_bytes": 1, "sha256": "0" * 64}
#: What is refused, each with words of the reason.
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    # The zip.
    "a second info part": (zipped(("info-xx-1-0.tar.zst", PLAIN)), "two members 'info': 'info-xx-1-0.tar.zst' and"),
    "a second part of the same name": (zipped(last=(("info-bomb-1-0.tar.zst", PLAIN),)), "two members 'info'"),
    "a second pkg part": (zipped(("pkg-xx-1-0.tar.zst", stored(END))), "two members 'pkg'"),
    "a third part": (zipped(("extra-bomb-1-0.tar.zst", PLAIN)), "no member 'extra-bomb-1-0.tar.zst'"),
    "a member in a folder": (zipped(("x/info-bomb-1-0.tar.zst", PLAIN)), "no member 'x/info-bomb-1-0.tar.zst'"),
    "no info part": (bytes_of(lambda text: text.replace(b"info-", b"pkg-x")), "two members 'pkg'"),
    "no metadata.json": (
        bytes_of(lambda text: text.replace(b"metadata.json", b"metadata.jsoN")),
        "no member 'metadata.jsoN'",
    ),
    "parts of two packages": (bytes_of(lambda text: text.replace(b"pkg-bomb", b"pkg-bomd")), "different packages"),
    "another name before a member": (bytes_of(in_local_header), "the header of 'info-bomb-1-0.tar.zst' differs"),
    "bytes before the zip": (bytes_of(lambda text: b"x" * 64 + text), AROUND),
    "bytes after the zip": (bytes_of(lambda text: text + b"x"), AROUND),
    "a comment": (bytes_of(lambda text: text[:-2] + b"\1\0x"), AROUND),
    "another zip before": (bytes_of(lambda text: text + text), AROUND),
    "a compressed zip": (deflated, "or it is compressed"),
    "a field with a name": (with_extra, "fields of another kind"),
    # The frames.
    "a second frame": (lambda folder: conda(folder, PLAIN + PLAIN), "has bytes after its Zstandard frame"),
    "bytes after a frame": (lambda folder: conda(folder, PLAIN + b"x"), "has bytes after its Zstandard frame"),
    "a frame that is skipped": (lambda folder: conda(folder, b"\x50\x2a\x4d\x18\0\0\0\0" + PLAIN), "does not begin"),
    "a frame with a dictionary": (lambda folder: conda(folder, PLAIN[:4] + b"\1" + PLAIN[5:]), "does not begin"),
    "a reserved block": (lambda folder: conda(folder, PLAIN[:6] + b"\7" + PLAIN[7:]), ""),
    "a second bzip2 stream": (bzipped(member(NAME, TEXT), member("lib/a", b"") + END), "after its bzip2 stream"),
    # The tars.
    "a second index.json": (info(member(NAME, TEXT), member(NAME, OTHER)), f"two members '{NAME}'"),
    "a second index.json in a .tar.bz2": (bzipped(member(NAME, TEXT) + member(NAME, OTHER) + END), "two members"),
    "./info/index.json": (info(member(NAME, TEXT), member(f"./{NAME}", OTHER)), f"'./{NAME}' is not written plainly"),
    "info/./index.json": (info(member(NAME, TEXT), member("info/./index.json", OTHER)), "'info/./index.json' is not"),
    "info//index.json": (info(member(NAME, TEXT), member("info//index.json", OTHER)), "'info//index.json' is not"),
    "a way back": (info(member(NAME, TEXT), member("info/x/../index.json", OTHER)), "is not written plainly"),
    "a path from the root": (pkg(member("/etc/passwd", b"")), "'/etc/passwd' is not written plainly"),
    "a file that ends as a folder": (pkg(member("lib/", b"")), "'lib/' is not written plainly"),
    "an endless path": (pkg(posix(f"path={'a/' * 2500}b"), member("x", b"")), "has 5001 characters"),
    "index.json in capitals": (info(member(NAME, TEXT), member("info/INDEX.JSON", OTHER)), "where case does not count"),
    "index.json with a dot": (info(member(NAME, TEXT), member("info/index.json.", OTHER)), "where case does not"),
    "index.json with a space": (info(member(NAME, TEXT), member("info/index.json ", OTHER)), "where case does not"),
    "a stream of index.json": (info(member(NAME, TEXT), member("info/index.json::$DATA", OTHER)), "where case does"),
    "index.json with what nobody sees": (info(member(NAME, TEXT), member(f"{NAME}\u200b", OTHER)), "where case does"),
    "metadata in capitals": (pkg(member("INFO/index.json", OTHER)), "where case does not count"),
    "a file below a link in capitals": (pkg(header("A", 0, b"2", "/"), member("a/b", b"")), "below a link where case"),
    "a link in capitals above a file": (pkg(member("a/b", b""), header("A", 0, b"2", "/")), "with members below it"),
    "metadata among the contents": (pkg(member(NAME, OTHER)), f"'{NAME}' is in the part 'pkg'"),
    "contents among the metadata": (info(member(NAME, TEXT), member("lib/a", b"")), "'lib/a' is in the part 'info'"),
    "index.json as a link": (info(header(NAME, 0, tarfile.SYMTYPE, "x")), f"{NAME} is not a regular file but a link"),
    "a file below a link": (pkg(header("lib", 0, tarfile.SYMTYPE, "/"), member("lib/a", b"")), "which is a link"),
    "a link above a file": (pkg(member("lib/a", b""), header("lib", 0, tarfile.SYMTYPE, "/")), "with members below"),
    "a file below a file": (pkg(member("lib", b""), member("lib/a", b"")), "is below 'lib', which is a file"),
    "a hard link to nothing": (pkg(header("lib/a", 0, tarfile.LNKTYPE, "lib/b")), "which is not a file before it"),
    "a hard link to metadata": (pkg(header("lib/a", 0, tarfile.LNKTYPE, NAME)), "not a file before it in its part"),
    "a hard link out": (pkg(header("lib/a", 0, tarfile.LNKTYPE, "../b")), "'../b' is not written plainly"),
    "a device": (pkg(header("dev", 0, tarfile.CHRTYPE)), "'dev' is not a file, a folder or a link"),
    "a FIFO": (pkg(header("fifo", 0, tarfile.FIFOTYPE)), "'fifo' is not a file, a folder or a link"),
    "a global header": (pkg(header("g", 0, tarfile.XGLTYPE)), "'g' is not a file, a folder or a link"),
    "a sparse file": (pkg(header("s", 0, tarfile.GNUTYPE_SPARSE)), "'s' is not a file, a folder or a link"),
    "a link with contents": (pkg(header("l", 512, tarfile.SYMTYPE, "x"), bytes(512)), "'l' has a second size"),
    "two long names": (pkg(long_name("a"), long_name("b"), member("c", b"")), "a member has two path"),
    "an empty header of no member": (pkg(posix()), "the name of a member that does not follow"),
    "two empty headers": (pkg(posix(), posix(), member("c", b"")), "two headers of one kind"),
    "two kinds of long names": (pkg(long_name("a"), posix("path=b"), member("c", b"")), "a member has two path"),
    "a name of many KiB": (pkg(long_name("a" * 80_000), member("c", b"")), "has 80001 bytes"),
    "a long name of nothing": (pkg(member("a", b""), long_name("b")), "a member that does not follow"),
    "a long name with a NUL": (pkg(long_name("a\0b"), member("c", b"")), "has a NUL"),
    "another size": (pkg(posix("size=512"), member("lib/a", b"x")), "'lib/a' has a second size"),
    "a key twice": (pkg(posix("path=a", "path=b"), member("c", b"")), "says something twice"),
    "a key of a sparse file": (pkg(posix("GNU.sparse.major=1"), member("c", b"")), "GNU.sparse.major"),
    "a damaged key": (pkg(posix("path=a").replace(b"9 path", b"8 path"), member("c", b"")), "is damaged"),
    "a name in Latin-1": (pkg(summed(header("a", 0), 0, b"\xe9")), "is not UTF-8"),
    "a wrong sum": (pkg(header("a", 0).replace(b"a", b"b", 1)), "the header of a member is damaged"),
    "a header of 1979": (pkg(summed(header("a", 0), 257, bytes(8))), "a form that readers take differently"),
    "a field of GNU's": (pkg(summed(header("a", 0), 345, b"x")), "fields of a sparse file"),
    "a size in bytes": (pkg(summed(header("a", 0), 124, b"\x80" + bytes(11))), "where octal digits must be"),
    "members after the end": (pkg(member("a", b""), END, member("b", b"")), "members after the end"),
    "members after half an end": (pkg(member("a", b""), bytes(512), member("b", b"")), "members after the end"),
    "no end": (lambda folder: conda(folder, stored(member(NAME, TEXT))), "its tar ends too early"),
    "half an end": (lambda folder: conda(folder, stored(member(NAME, TEXT) + bytes(512))), "ends too early"),
    # The documents.
    "a key twice in index.json": (info(member(NAME, TEXT[:-1] + b', "name": "openssl"}')), "has 'name' twice"),
    "index.json in UTF-16": (info(member(NAME, TEXT.decode().encode("utf-16"))), "utf-8"),
    "not a number": (info(member(NAME, TEXT.replace(b'"build_number": 0', b'"build_number": NaN'))), "NaN is not JSON"),
    "a build number in words": (info(member(NAME, TEXT.replace(b'_number": 0', b'_number": "7"'))), "build number"),
    "a build number that is true": (info(member(NAME, TEXT.replace(b'_number": 0', b'_number": true'))), "number"),
    "no index.json": (info(member("info/about.json", b"{}")), "has no info/index.json"),
    # The contents.
    "a file that is not listed": (pkg(member("lib/a", b"x"), listed=paths()), "'lib/a' is not in info/paths.json"),
    "a file that is missing": (pkg(listed=paths(LIB)), "'lib/a' is in info/paths.json only"),
    "another file": (pkg(member("lib/a", b"x"), listed=paths(LIB)), "'lib/a' is not the file that"),
    "a link for a file": (pkg(header("lib/a", 0, b"2", "b"), listed=paths(LIB)), "'lib/a' is not the file that"),
    "a file that is listed twice": (pkg(member("lib/a", b"x"), listed=paths(LIB, LIB)), "lists a file twice"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_package_that_two_readers_may_read_differently_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(WorkError) as refused:
        verify_package(path)
    assert path.name in str(refused.value)
    assert reason in str(refused.value), refused.value


def test_a_tar_that_unpacks_to_more_than_its_size_explains_is_refused(tmp_path: Path) -> None:
    content = stored(header("lib/a", 8 << 30)) + zeros(1 << 30)
    with pytest.raises(WorkError, match="after its Zstandard frame"):
        verify_package(conda(tmp_path, pkg=content))
    with pytest.raises(WorkError, match="unpacks to more than 275 MB"):
        verify_package(conda(tmp_path, pkg=zeros(1 << 30)))


def test_every_kind_of_member_is_read(tmp_path: Path) -> None:
    far = "/".join(["a" * 90] * 3)
    parts = (
        header("lib/", 0, tarfile.DIRTYPE),
        member("lib/a", b"x"),
        header("lib/b", 0, tarfile.LNKTYPE, "lib/a"),
        header("lib/c", 0, tarfile.SYMTYPE, "../lib/a"),
        posix("mtime=1.5", f"path={far}"),
        member("short", b"y"),
        member(f"{far}2", b"z"),
        header("empty/", 0, tarfile.DIRTYPE),
    )
    x, y, z = ({"sha256": sha256(text).hexdigest(), "size_in_bytes": 1} for text in (b"x", b"y", b"z"))
    listed = paths(
        *({"_path": name, "path_type": "hardlink", **x} for name in ("lib/a", "lib/b")),
        {"_path": "lib/c", "path_type": "softlink", **x},
        {"_path": far, "path_type": "hardlink", **y},
        {"_path": f"{far}2", "path_type": "hardlink", **z},
        {"_path": "empty", "path_type": "directory"},
    )
    as_conda = pkg(*parts, listed=listed)(tmp_path)
    as_bz2 = bzipped(member(NAME, TEXT) + listed + b"".join(parts) + END)(tmp_path)
    for path in (as_conda, as_bz2):
        assert verify_package(path).name == "bomb"
        folder = tmp_path / path.suffix
        unpack(path, folder)
        assert (folder / "lib/b").samefile(folder / "lib/a")
        assert (folder / "lib/c").readlink() == Path("../lib/a")
        assert ((folder / far).read_text(), (folder / f"{far}2").read_text()) == ("y", "z")
        assert (folder / "empty").is_dir()
    assert read_documents(as_conda, ["lib/a", NAME, "info/no"]) == {"lib/a": b"x", NAME: TEXT, "info/no": None}


def test_contents_may_differ_in_case_alone(tmp_path: Path) -> None:
    """As those of ncurses do: `share/terminfo/E` and `share/terminfo/e`."""
    verify_package(
        pkg(member("t/E/a", b""), member("t/e/a", b""), member("t/e/A", b""), header("L", 0, b"2", "t"))(tmp_path)
    )


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    path = pkg(member("lib/a", b"x"), member("lib/a", b"y"))(tmp_path)
    with pytest.raises(WorkError, match="two members"):
        unpack(path, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_a_package_of_the_engine_is_verified(tmp_path: Path) -> None:
    from rattler_build import assemble_package, collect_files

    (tmp_path / "contents/lib").mkdir(parents=True)
    (tmp_path / "contents/lib/a").write_bytes(os.urandom(300_000) * 3)
    (tmp_path / "contents/lib/b").symlink_to("a")
    contents = tmp_path / "contents"
    made = assemble_package("bomb", "1", "noarch", "0", tmp_path / "made", files=collect_files(contents))
    assert verify_package(made.path).name == "bomb"


_NAMES = st.sampled_from(["a", "b", "a/b", "lib/a", "lib", "lib/", "./a", "a//b", "info/x", "é", "a" * 120, "../a", ""])
_PIECES = st.one_of(
    st.builds(member, _NAMES, st.sampled_from([b"", b"x", b"y" * 600])),
    st.builds(
        header,
        _NAMES,
        st.sampled_from([0, 0, 512]),
        st.sampled_from([bytes([kind]) for kind in b"0125567LKxgS\0"]),
        st.sampled_from(["a", "lib/a", "lib", ""]),
    ),
    st.builds(long_name, st.sampled_from(["a", "lib/c", "x" * 130])),
    st.builds(lambda name: posix(f"path={name}"), st.sampled_from(["a", "lib/d", "é" * 80])),
    st.just(bytes(512)),
)

#: Python knows filters from 3.11.4 on.
_AS_IT_IS = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=6))
def test_what_is_read_here_is_what_other_readers_find(pieces: list[bytes]) -> None:
    tar = b"".join(pieces) + END
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        try:
            unpack(conda(folder, pkg=stored(tar)), folder / "ours")
        except WorkError:
            return
        unpack_own(folder / "bomb-1-0.conda", folder / "of rattler")
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extractall(folder / "of Python", **_AS_IT_IS)  # type: ignore[arg-type]  # noqa: S202 - nothing of it leads out
        ours = _tree(folder / "ours")
        assert ours == _tree(folder / "of rattler")
        assert {name: what for name, what in ours.items() if not name.startswith("info")} == _tree(folder / "of Python")


def _tree(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        found[name] = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


def test_the_metadata_of_a_written_package_is_that_of_its_index(tmp_path: Path) -> None:
    metadata = PackageMetadata("bomb", "1", "0", 0, "noarch")
    path = write_package(tmp_path, metadata, [PackageFile("lib/a", b"x"), PackageFile("lib/b", link="a")])
    assert read_package(path) == verify_package(path) == metadata


def test_sizes_that_older_pythons_write_twice_are_one_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb-1-0.conda"
    with zipfile.ZipFile(conda(tmp_path, name="other")) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            with new.open(zipfile.ZipInfo(name.replace("other", "bomb")), "w", force_zip64=True) as target:
                target.write(old.read(name))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            sizes = struct.pack("<2L", each.compress_size, each.file_size)
            content[each.header_offset + 18 : each.header_offset + 26] = sizes  # as before Python 3.11.4
    path.write_bytes(content)
    assert read_package(path).name == "bomb"
    with zipfile.ZipFile(path) as archive:
        content[archive.infolist()[0].header_offset + 18] ^= 1
    path.write_bytes(content)
    with pytest.raises(WorkError, match=r"fields of another kind|differs from the directory"):
        read_package(path)
