"""Artifacts folders that lie: each attack is refused within limits, and what comes beside it is merged all the same."""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import BuildRecord, EnvironmentRecord, Ledger, PackageRecord, SolvedPackage
from feedstock_tools.builds.publish import collect as merging
from feedstock_tools.builds.publish import parts
from feedstock_tools.builds.publish.collect import Collected, collect
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from tests.support.limits import limited
from tests.support.needs import needs

pytestmark = needs("system", sys.platform != "win32", "FIFOs and links")

HIDDEN = "what only this user may read"


def metadata(name: str, **changes: object) -> PackageMetadata:
    return replace(PackageMetadata(name, "1.0", "0", 0, "linux-64"), **changes)  # type: ignore[arg-type]


def make_part(root: Path, output: str = "tiny", package: PackageMetadata | None = None, channel: str = ".") -> Path:
    """The artifacts of a machine that has built one package."""
    made = package or metadata(output)
    (root / "logs").mkdir(parents=True)
    (root / "logs" / f"{output}.log").write_text(f"built {output}")
    path = write_package(root / channel, made, [PackageFile("file", output.encode())])
    record = PackageRecord(channel, f"linux-64/{path.name}", path.stat().st_size, sha256_of(path), 1)
    begun = BuildRecord(
        identity=f"identity of {output}",
        configuration="linux_64_",
        row="linux_64_",
        output=output,
        result="running",
        started="2026-01-01T00:00:00.000+00:00",
        log=f"logs/{output}.log",
        engine="rattler-build",
        channels=("conda-forge",),
        machine="runner",
        process="1:1",
    )
    solved = EnvironmentRecord("host", (SolvedPackage("a", "1", "0", "linux-64", "c"),))
    with Ledger(root / "ledger.sqlite") as ledger:
        record_id = ledger.begin(begun).id
        ledger.finish(replace(begun, id=record_id, result="done", seconds=1.5, packages=(record,)), [solved])
    return root


def execute(root: Path, statements: str) -> None:
    """Change a ledger as nobody should."""
    with closing(sqlite3.connect(root / "ledger.sqlite")) as database:
        database.executescript(f"PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON; {statements}")
        database.commit()


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file in a folder but the ledger and the index, with its bytes."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in found
        if path.suffix in (".conda", ".log") or path.is_symlink() or path.suffix == ".part"
    }


@functools.cache
def good_part(folder: Path) -> tuple[Path, dict[str, bytes]]:
    """A part that does not lie, made once in the folder of these tests, and its files where it is merged alone."""
    good = make_part(folder / "good-part", "good")
    collect([good], Artifacts(folder / "good-part-alone"))
    return good, files_of(folder / "good-part-alone")


def refused(tmp_path: Path, bad: Path, message: str) -> Collected:
    """Collect a bad part with a good one: only the good one is merged, in the way it is merged alone."""
    good, alone = good_part(tmp_path.parent)
    target = Artifacts(tmp_path / "target")
    with limited():
        done = collect([bad, good], target)
    assert (done.folders, done.builds, done.packages) == (1, 1, 1)
    assert message in "\n".join(map(str, done.refused)), done.refused
    assert files_of(target.root) == alone
    assert not any(HIDDEN.encode() in content for content in files_of(target.root).values())
    with Ledger(target.ledger) as ledger:
        assert [record.output for record in ledger.builds()] == ["good"]
    with limited(), pytest.raises(FeedstockError):
        collect([bad], Artifacts(tmp_path / "nothing"))
    assert files_of(tmp_path / "nothing") == {}
    return done


OUT = "leads out of its folder"
LOG = "a log in the ledger is outside"
PACKAGE = "a path, hash or size that none has"
NAME = "has a name or a time that no build has"
LEDGERS = {
    "a log in a channel": ("UPDATE builds SET log = 'built-on-stand-in/linux-64/openssl-99-0.conda'", LOG),
    "a log above": ("UPDATE builds SET log = '../secret.log'", OUT),
    "a log anywhere": ("UPDATE builds SET log = '/etc/passwd'", OUT),
    "a log that is the ledger": ("UPDATE builds SET log = 'logs/../ledger.sqlite'", OUT),
    "a log beside the logs": ("UPDATE builds SET log = 'ledger.sqlite'", LOG),
    "a log in a folder": ("UPDATE builds SET log = 'logs/linux-64/x.conda'", LOG),
    "a hidden log": ("UPDATE builds SET log = 'logs/.bashrc'", LOG),
    "a log with a line feed": ("UPDATE builds SET log = 'logs/a' || char(10) || '.log'", LOG),
    "a channel above": ("UPDATE packages SET channel = '..'", OUT),
    "a channel anywhere": ("UPDATE packages SET channel = '/tmp'", OUT),
    "a channel on another disk": ("UPDATE packages SET channel = 'C:'", OUT),
    "a channel of logs": ("UPDATE packages SET channel = 'logs'", PACKAGE),
    "a package above": ("UPDATE packages SET file = 'linux-64/../../x-1-0.conda'", OUT),
    "a package in no subdir": ("UPDATE packages SET file = 'etc/x-1-0.conda'", PACKAGE),
    "a hidden package": ("UPDATE packages SET file = 'linux-64/.x-1-0.conda'", PACKAGE),
    "a package of another ending": ("UPDATE packages SET file = 'linux-64/repodata.json'", PACKAGE),
    "a hash that leads away": ("UPDATE packages SET sha256 = '../../x'", PACKAGE),
    "a size below zero": ("UPDATE packages SET size = -1", PACKAGE),
    "an enormous size": ("UPDATE packages SET size = 9223372036854775807", "has changed since it was built"),
    "another size": ("UPDATE packages SET size = size + 1", "has changed since it was built"),
    "codes for the terminal": ("UPDATE builds SET row = char(27) || ']0;owned' || char(7)", NAME),
    "a name without end": ("UPDATE builds SET configuration = printf('%.*c', 5000, 'x')", NAME),
    "no time": ("UPDATE builds SET started = 'yesterday'", NAME),
    "a text without end": ("UPDATE builds SET reason = printf('%.*c', 2000000, 'x')", "damaged"),
    "a value beyond all": ("UPDATE builds SET reason = CAST(zeroblob(80000000) AS TEXT)", "damaged"),
    "deep JSON": ("UPDATE builds SET marks = printf('%.*c', 500000, '[')", "damaged"),
    "a number beyond all": ("UPDATE builds SET cores = 1e300", "damaged"),
    "an endless time": ("UPDATE builds SET seconds = 9e999", "damaged"),
    "another kind of id": (
        "CREATE TABLE b AS SELECT * FROM builds; DROP TABLE builds; ALTER TABLE b RENAME TO builds;"
        " UPDATE builds SET id = 'x'",
        "damaged",
    ),
    "packages without end": (
        "INSERT INTO packages WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        " SELECT 1, '.', 'linux-64/x-' || i || '-0.conda', 1, '0', 1 FROM n",
        "damaged",
    ),
    "a view": ("ALTER TABLE builds RENAME TO b; CREATE VIEW builds AS SELECT * FROM b", "damaged"),
    "a trigger": ("CREATE TRIGGER t AFTER UPDATE ON builds BEGIN DELETE FROM builds; END", "damaged"),
    "a computed column": (
        "ALTER TABLE builds ADD COLUMN x TEXT GENERATED ALWAYS AS (hex(zeroblob(30000000))) VIRTUAL",
        "'builds' computes values",
    ),
    "a computed index": ("CREATE INDEX i ON builds (length(hex(zeroblob(length(row)))))", "'i' computes values"),
    "a virtual table": (
        "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING csv(filename=x)')",
        "damaged",
    ),
    "a table of another form": ("DROP TABLE tests", "ledger"),
    "a form of the future": ("PRAGMA user_version = 99", "its form is 99"),
    "a form below all": ("PRAGMA user_version = -5", "its form is -5"),
    "a form that it has not": ("PRAGMA user_version = 2", "its form is 2"),
    "an unknown result": ("UPDATE builds SET result = 'doomed'", "damaged"),
    "another environment": ("UPDATE environments SET packages = '[{\"name\": 1}]'", "damaged"),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_that_lies_is_refused(name: str, tmp_path: Path) -> None:
    statements, message = LEDGERS[name]
    bad = make_part(tmp_path / "bad")
    (tmp_path / "secret.log").write_text(HIDDEN)
    (bad / "built-on-stand-in" / "linux-64").mkdir(parents=True)
    (bad / "built-on-stand-in" / "linux-64" / "openssl-99-0.conda").write_text("no package")
    execute(bad, statements)
    refused(tmp_path, bad, message)


def linked(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def a_fifo(path: Path, _target: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path, _target: Path) -> None:
    path.unlink()
    path.mkdir()


def behind_a_linked_folder(path: Path, target: Path) -> None:
    """The folder of the file is a link to one outside that has a file of this name."""
    outside = target.parent / "outside"
    outside.mkdir()
    (outside / path.name).write_bytes(path.read_bytes() if path.suffix == ".conda" else HIDDEN.encode())
    path.unlink()
    for other in path.parent.iterdir():
        other.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(outside)


PLACES = {"logs/tiny.log": LOG, "linux-64/tiny-1.0-0.conda": "is not a file in its folder"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", [linked, a_fifo, a_folder, behind_a_linked_folder])
def test_a_link_or_a_fifo_in_the_place_of_a_file_is_refused(
    place: str, change: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    bad = make_part(tmp_path / "bad")
    (tmp_path / "secret").write_text(HIDDEN)
    change(bad / place, tmp_path / "secret")
    refused(tmp_path, bad, PLACES[place])


def test_a_link_to_the_ledger_of_somebody_else_is_refused(tmp_path: Path) -> None:
    bad, other = make_part(tmp_path / "bad"), make_part(tmp_path / "other", "other")
    linked(bad / "ledger.sqlite", other / "ledger.sqlite")
    refused(tmp_path, bad, "is not a regular file of this folder")


def test_a_link_that_takes_the_place_of_the_ledger_after_the_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, other = make_part(tmp_path / "bad"), make_part(tmp_path / "other", "other")
    is_own_file = parts._is_own_file

    def replaced_after_the_check(root: Path, path: Path) -> bool:
        is_own = is_own_file(root, path)
        linked(bad / "ledger.sqlite", other / "ledger.sqlite")
        return is_own

    monkeypatch.setattr(parts, "_is_own_file", replaced_after_the_check)
    with pytest.raises(InputError, match="by a link"):
        collect([bad], Artifacts(tmp_path / "target"))


def test_a_package_that_is_replaced_after_the_check_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, target = make_part(tmp_path / "bad"), Artifacts(tmp_path / "target")
    other = write_package(tmp_path / "other", metadata("tiny"), [PackageFile("file", HIDDEN.encode())])

    def replaced_before_the_copy(folder: Path, packages: Sequence[Path], **options: Any) -> tuple[Path, ...]:
        linked(bad / "linux-64" / other.name, other)
        return add_packages(folder, packages, **options)

    monkeypatch.setattr(merging, "add_packages", replaced_before_the_copy)
    with pytest.raises(WorkError, match="its sha256 differs"):
        collect([bad], target)
    assert not list(target.root.glob("linux-64/*.conda"))
    with Ledger(target.ledger) as ledger:
        assert [record.result for record in ledger.builds()] == ["running"]


def test_a_journal_that_names_a_file_to_be_removed_is_refused(tmp_path: Path) -> None:
    """SQLite removes the journal of several databases that a journal names, once it is not needed: any file."""
    bad, victim = make_part(tmp_path / "bad"), tmp_path / "victim"
    victim.write_text("")
    name = str(victim).encode()
    content = bytes.fromhex("d9d505f920a163d7") + bytes(504)  # the header of a journal without pages
    tail = b"\0\0\0\1" + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    (bad / "ledger.sqlite-journal").write_bytes(content + tail + bytes.fromhex("d9d505f920a163d7"))
    refused(tmp_path, bad, "belongs to several databases")
    assert victim.exists()


@pytest.mark.parametrize(
    ("package", "channel", "message"),
    [
        (metadata("openssl"), ".", "linux-64/openssl-1.0-0, but it is recorded as a build of tiny"),
        (metadata("tiny", extra={"stand-in": {"contents": "none"}}), ".", "was built on the stand-in channel"),
    ],
)
def test_a_package_that_is_not_what_was_to_be_built_is_refused(
    package: PackageMetadata, channel: str, message: str, tmp_path: Path
) -> None:
    refused(tmp_path, make_part(tmp_path / "bad", "tiny", package, channel), message)


def test_a_package_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    bad = make_part(tmp_path / "bad")
    (bad / "linux-64" / "tiny-1.0-0.conda").rename(bad / "linux-64" / "openssl-3.0-0.conda")
    execute(bad, "UPDATE packages SET file = 'linux-64/openssl-3.0-0.conda'")
    refused(tmp_path, bad, "linux-64/tiny-1.0-0, but it is recorded as a build of tiny")


def test_a_ledger_with_too_many_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_RECORDS", 10)
    bad = make_part(tmp_path / "bad")
    columns = "configuration, row, output, result, started, log, engine, channels, marks"
    for number in range(2, 20):
        same = f"SELECT {number}, {number}, {columns} FROM builds WHERE id = 1"  # noqa: S608
        execute(bad, f"INSERT INTO builds (id, identity, {columns}) {same}")
    refused(tmp_path, bad, "has more than 10 records")
    monkeypatch.setattr(parts, "_LARGEST_LEDGER", 10)
    with pytest.raises(InputError, match="is larger than"):
        collect([bad], Artifacts(tmp_path / "another"))


def test_two_machines_with_one_name_that_begin_at_once_are_two(tmp_path: Path) -> None:
    """Runners of a CI service have the same name, and containers count their processes from 1."""
    first, second = make_part(tmp_path / "first"), make_part(tmp_path / "second")
    execute(second, "UPDATE builds SET result = 'failed', seconds = 2.25; DELETE FROM packages")
    (second / "logs" / "tiny.log").write_text("another log of the same name")
    target = Artifacts(tmp_path / "target")
    assert collect([first, second], target) == Collected(2, builds=2, tests=0, packages=1, known=0)
    assert collect([second, first], target) == Collected(2, builds=0, tests=0, packages=0, known=2)
    with Ledger(target.ledger) as ledger:
        logs = [(record.result, (target.root / record.log).read_text()) for record in ledger.builds()]
    assert logs == [("done", "built tiny"), ("failed", "another log of the same name")]


def test_a_lost_log_is_not_replaced_by_one_of_the_same_name(tmp_path: Path) -> None:
    first, second = make_part(tmp_path / "first"), make_part(tmp_path / "second", "other")
    execute(second, "UPDATE builds SET log = 'logs/tiny.log'")
    target = Artifacts(tmp_path / "target")
    assert collect([first, second], target).builds == 2
    with Ledger(target.ledger) as ledger:
        logs = {record.output: record.log for record in ledger.builds()}
    assert logs["tiny"] == "logs/tiny.log"
    assert not (target.root / logs["other"]).exists()


def test_a_folder_that_is_no_part_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path, tmp_path / "empty", "there is no artifacts folder to collect from")


def test_the_same_folder_twice_is_one(tmp_path: Path) -> None:
    part = make_part(tmp_path / "part")
    assert collect([part, tmp_path / "part" / "..", part], Artifacts(tmp_path / "target")).folders == 1


def test_every_reason_is_told_if_all_are_refused(tmp_path: Path) -> None:
    first, second = make_part(tmp_path / "first"), make_part(tmp_path / "second", "other")
    execute(first, "UPDATE builds SET log = 'logs'")
    execute(second, "UPDATE packages SET channel = 'logs'")
    with pytest.raises(WorkError) as told:
        collect([first, second], Artifacts(tmp_path / "target"))
    assert LOG in str(told.value)
    assert PACKAGE in str(told.value)
