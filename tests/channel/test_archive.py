"""Writing conda packages and reading them back."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from rattler.package_streaming import extract

from feedstock_tools.channel.metadata import PackageFile, PackageMetadata, RunExports
from feedstock_tools.channel.packages.archive import combine, replace_document, write_package
from feedstock_tools.channel.packages.reading import read_documents, read_package, unpack
from feedstock_tools.errors import WorkError

LIBRARY = PackageMetadata(
    name="libhello",
    version="1.2",
    build="cuda112habc1234_3",
    build_number=3,
    subdir="linux-64",
    depends=("libgcc >=14",),
    constrains=("cudatoolkit 11.2|11.2.*",),
    track_features=("libhello-cpu",),
    license="BSD-3-Clause",
    run_exports=RunExports(weak=("libhello >=1.2,<1.3.0a0",)),
    timestamp=1_700_000_000_000,
    summary="Says hello.",
    extra={"maker": "a test"},
)
FILES = (
    PackageFile("lib/libhello.so", link="libhello.so.1"),
    PackageFile("lib/libhello.so.1", b"\x7fELF" + bytes(range(256)) * 2000, executable=True),
    PackageFile("etc/hello.conf", b"home=/opt/old\n", prefix="/opt/old"),
)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = write_package(tmp_path, LIBRARY, FILES)

    assert path == tmp_path / "linux-64" / "libhello-1.2-cuda112habc1234_3.conda"
    assert read_package(path) == LIBRARY


def test_rattler_unpacks_the_contents(tmp_path: Path) -> None:
    extract(write_package(tmp_path, LIBRARY, FILES), tmp_path / "unpacked")

    unpacked = tmp_path / "unpacked"
    assert (unpacked / "lib/libhello.so").readlink() == Path("libhello.so.1")
    assert (unpacked / "lib/libhello.so.1").read_bytes() == FILES[1].content
    assert (unpacked / "lib/libhello.so.1").stat().st_mode & 0o111
    assert not (unpacked / "etc/hello.conf").stat().st_mode & 0o111


def test_the_bytes_depend_on_nothing_but_the_content(tmp_path: Path) -> None:
    one = write_package(tmp_path / "one", LIBRARY, FILES)
    other = write_package(tmp_path / "other", LIBRARY, reversed(FILES))

    assert one.read_bytes() == other.read_bytes()


def test_a_document_is_replaced_and_the_contents_stay(tmp_path: Path) -> None:
    path = write_package(tmp_path, LIBRARY, FILES)
    before = zipfile.ZipFile(path).read(f"pkg-{path.stem}.tar.zst")
    replace_document(path, "info/run_exports.json", b'{"weak": ["other"]}')
    assert zipfile.ZipFile(path).read(f"pkg-{path.stem}.tar.zst") == before
    assert read_package(path).run_exports == RunExports(weak=("other",))
    names = ["info/about.json", "info/index.json", "info/paths.json"]
    assert read_documents(path, names) == read_documents(write_package(tmp_path / "again", LIBRARY, FILES), names)
    extract(path, tmp_path / "prefix")
    assert [each.name for each in tmp_path.glob("linux-64/*")] == [path.name]
    with pytest.raises(WorkError, match=r"has no info/other\.json"):
        replace_document(path, "info/other.json", b"")


def test_a_document_of_a_package_that_was_renamed_is_replaced(tmp_path: Path) -> None:
    path = write_package(tmp_path, LIBRARY, FILES)
    renamed = path.rename(tmp_path / "another-1-0.conda")
    replace_document(renamed, "info/about.json", b"{}")
    assert read_documents(renamed, ["info/about.json"]) == {"info/about.json": b"{}"}
    with zipfile.ZipFile(renamed) as archive:
        assert archive.namelist() == ["metadata.json", f"pkg-{path.stem}.tar.zst", f"info-{path.stem}.tar.zst"]


def test_what_cannot_be_combined_is_an_error_about_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, contents = write_package(tmp_path, LIBRARY, FILES), write_package(tmp_path / "contents", LIBRARY, FILES)
    before = path.read_bytes()
    unpack(path, tmp_path / "unpacked")

    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as locked:
        locked.setattr(Path, "read_bytes", refused)
        with pytest.raises(WorkError, match=r"cannot write the package: .*Permission denied"):
            combine(path, contents, tmp_path / "unpacked", {}, 0)
    _without_index(contents)
    with pytest.raises(WorkError, match=r"it has no member named pkg-\*"):
        combine(path, contents, tmp_path / "unpacked", {}, 0)
    assert path.read_bytes() == before


def test_a_package_cannot_write_outside_of_its_prefix(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="leads out of the package"):
        write_package(tmp_path, LIBRARY, [PackageFile("../../etc/passwd", b"")])
    assert not list(tmp_path.rglob("*.conda"))
    assert not list(tmp_path.rglob("*.part"))


def _rubbish(path: Path) -> None:
    path.write_bytes(b"rubbish" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _without_index(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", "{}")


@pytest.mark.parametrize("damage", [_rubbish, _empty, _cut_off, _without_index])
def test_a_damaged_package_is_refused_with_its_path(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = write_package(tmp_path, LIBRARY, FILES)
    damage(path)

    with pytest.raises(WorkError, match=r"libhello-1\.2-cuda112habc1234_3\.conda"):
        read_package(path)
