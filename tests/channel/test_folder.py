"""Channels that are folders: indexing them, and adding to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import add_packages, complete_index, index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.targets import FolderTarget
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError

ADD_FIVE = """
import sys
from pathlib import Path
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.metadata import PackageMetadata

channel, private, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
for number in range(5):
    add_packages(channel, [write_package(private, PackageMetadata(name, str(number), "h_0", 0, "linux-64"))])
"""


def package(folder: Path, name: str, version: str = "1.0") -> Path:
    return write_package(folder, PackageMetadata(name, version, "h_0", 0, "linux-64"))


def test_added_packages_are_in_the_repodata(tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    added = add_packages(channel, [package(tmp_path, "one"), package(tmp_path, "two")])

    assert added == (channel / "linux-64/one-1.0-h_0.conda", channel / "linux-64/two-1.0-h_0.conda")
    assert [record.name for record in read_records(str(channel), ["linux-64", "noarch"])] == ["one", "two"]


def test_a_package_that_a_killed_run_did_not_index_is_indexed_later(tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    add_packages(channel, [package(tmp_path, "one")])
    index = channel / "linux-64" / "repodata.json"
    before = index.stat().st_mtime_ns
    complete_index(channel)
    assert index.stat().st_mtime_ns == before  # nothing is missing
    package(channel, "two")
    (channel / ".tmp").mkdir()
    complete_index(channel)
    assert [record.name for record in read_records(str(channel), ["linux-64"])] == ["one", "two"]
    assert not (channel / ".tmp").exists()


@pytest.mark.parametrize("text", ["[", "[]", '{"packages": 1}'])
def test_an_index_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    package(tmp_path / "channel", "one")
    (tmp_path / "channel" / "linux-64" / "repodata.json").write_text(text)
    with pytest.raises(WorkError, match="cannot read the index"):
        complete_index(tmp_path / "channel")


def test_nothing_is_added_where_one_package_is_damaged(tmp_path: Path) -> None:
    damaged = package(tmp_path, "two")
    damaged.write_bytes(b"rubbish")

    with pytest.raises(WorkError, match="not a readable conda package"):
        add_packages(tmp_path / "channel", [package(tmp_path, "one"), damaged])
    assert not (tmp_path / "channel").exists()


def test_a_package_under_another_name_is_refused(tmp_path: Path) -> None:
    renamed = package(tmp_path, "one").rename(tmp_path / "linux-64/other-1.0-h_0.conda")

    with pytest.raises(WorkError, match=r"must be named one-1\.0-h_0\.conda"):
        add_packages(tmp_path / "channel", [renamed])


def test_a_package_with_another_hash_than_the_caller_knows_is_refused(tmp_path: Path) -> None:
    one, two, channel = package(tmp_path, "one"), package(tmp_path, "two"), tmp_path / "channel"
    known = {one: sha256_of(one), two: sha256_of(two)}
    write_package(tmp_path, PackageMetadata("two", "1.0", "h_0", 0, "linux-64", license="MIT"))
    with pytest.raises(WorkError, match="its sha256 differs") as raised:
        add_packages(channel, [one, two], hashes=known)
    assert raised.value.mistakes[0].path == two
    assert not list(channel.glob("linux-64/*.conda"))
    assert len(add_packages(channel, [one], hashes=known)) == 1
    with pytest.raises(WorkError, match="its sha256 differs"):
        FolderTarget(tmp_path / "target").put(two, f"linux-64/{two.name}", known[two])
    assert not list(tmp_path.glob("target/linux-64/*.conda"))


def test_of_two_that_publish_different_packages_of_a_name_the_second_is_told(tmp_path: Path) -> None:
    target, file = FolderTarget(tmp_path / "target"), "linux-64/one-1.0-h_0.conda"
    one = package(tmp_path / "first", "one")
    metadata = PackageMetadata("one", "1.0", "h_0", 0, "linux-64", license="MIT")
    other = write_package(tmp_path / "second", metadata)
    assert target.there([file]) == {}  # what both saw before they began
    assert target.put(one, file, sha256_of(one)) == "published"
    assert target.put(one, file, sha256_of(one)) == "there"
    with pytest.raises(WorkError, match="another process has published a different package of this name"):
        target.put(other, file, sha256_of(other))
    assert sha256_of(tmp_path / "target" / file) == sha256_of(one)


def test_a_package_of_the_name_in_the_other_form_is_another_package(tmp_path: Path) -> None:
    """Those who install it would get one of the two, whatever both were told."""
    target, older = FolderTarget(tmp_path / "target"), "linux-64/one-1.0-h_0.tar.bz2"
    one = package(tmp_path / "first", "one")
    assert target.there([older]) == {}
    assert target.put(one, "linux-64/one-1.0-h_0.conda", sha256_of(one)) == "published"
    assert target.there([older]) == {older: sha256_of(one)}
    (tmp_path / "target" / older).write_bytes(b"")
    one.unlink()
    (tmp_path / "target/linux-64/one-1.0-h_0.conda").unlink()
    with pytest.raises(WorkError, match="a package of this name in the other form"):
        target.put(package(tmp_path / "second", "one"), "linux-64/one-1.0-h_0.conda", "")


def test_a_damaged_package_in_the_channel_is_named(tmp_path: Path) -> None:
    damaged = package(tmp_path, "one")
    damaged.write_bytes(b"rubbish")

    with pytest.raises(WorkError) as raised:
        index_channel(tmp_path)
    assert raised.value.mistakes[0].path == damaged


def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """By whatever path they know the folder."""
    (tmp_path / "channel").mkdir()
    (tmp_path / "link").symlink_to("channel")
    processes = [
        subprocess.Popen([sys.executable, "-c", ADD_FIVE, str(tmp_path / channel), str(tmp_path / name), name])
        for channel, name in (("channel", "one"), ("link", "two"))
    ]
    assert [process.wait(60) for process in processes] == [0, 0]

    records = read_records(str(tmp_path / "channel"), ["linux-64"])
    assert sorted((record.name, record.version) for record in records) == [
        (name, str(number)) for name in ("one", "two") for number in range(5)
    ]
    assert not list((tmp_path / "channel").rglob("*.part"))
