"""The ledger: what counts as done, and what happens to a ledger that cannot be used."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import (
    FORM,
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    Ledger,
    PackageRecord,
    SolvedPackage,
    TestRecord,
    database,
    now,
)
from feedstock_tools.builds.ledger.seal import _key, key_of_user
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.processes import process_lives, this_machine, this_process

BEGUN = BuildRecord(
    identity="i1",
    configuration="linux_64_",
    row="linux_64__py3.12",
    output="tiny",
    result="running",
    started="2026-01-01T00:00:00.000+00:00",
    log="logs/tiny.log",
    engine="rattler-build 0.73.0",
    channels=("conda-forge",),
    marks={"channel": "stand-in"},
)


def package(folder: Path, content: bytes = b"package") -> PackageRecord:
    """A file in the channel, and its record."""
    path = folder / "linux-64" / "tiny-1-0.conda"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    state = path.stat()
    return PackageRecord(".", "linux-64/tiny-1-0.conda", state.st_size, sha256_of(path), state.st_mtime_ns)


def finished(ledger: Ledger, record: PackageRecord) -> BuildRecord:
    """A build that was begun and is done."""
    done = replace(ledger.begin(BEGUN), result="done", ended=now(), seconds=1.5, packages=(record,))
    ledger.finish(done)
    return done


def test_a_finished_build_is_found_by_its_identity_as_it_was_recorded(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        done = finished(ledger, package(tmp_path))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.done("i1") == done
        assert ledger.done("i2") is None


def test_what_is_recorded_at_once_is_recorded_whole_or_not_at_all(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(KeyboardInterrupt), ledger.at_once():
            finished(ledger, package(tmp_path))
            raise KeyboardInterrupt
        assert ledger.builds() == ()
        with ledger.at_once():
            done = [finished(ledger, package(tmp_path)) for _ in range(3)]
        finished(ledger, package(tmp_path))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.builds()[:3] == tuple(done)
        assert len(ledger.builds()) == 4


@pytest.mark.parametrize("result", ["running", "failed", "interrupted"])
def test_only_what_is_done_counts(tmp_path: Path, result: str) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.finish(replace(ledger.begin(BEGUN), result=result, packages=(package(tmp_path),)))
        assert ledger.done("i1") is None


def test_a_package_that_is_gone_is_not_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        (tmp_path / "linux-64" / "tiny-1-0.conda").unlink()
        assert ledger.done("i1") is None


def test_a_package_that_was_tampered_with_is_not_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        (tmp_path / "linux-64" / "tiny-1-0.conda").write_bytes(b"PACKAGE")
        os.utime(tmp_path / "linux-64" / "tiny-1-0.conda", ns=(1, 1))
        assert ledger.done("i1") is None


def test_a_package_that_was_copied_back_is_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
        os.utime(tmp_path / "linux-64" / "tiny-1-0.conda", ns=(1, 1))
        assert ledger.done("i1") is not None


def test_what_a_killed_run_left_is_settled(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.begin(BEGUN)
        delivered = replace(ledger.begin(replace(BEGUN, identity="i2")), packages=(package(tmp_path),))
        ledger.promise(delivered)
        missing = replace(delivered.packages[0], file="linux-64/other-1-0.conda")
        ledger.promise(replace(ledger.begin(replace(BEGUN, identity="i3")), packages=(missing,)))
        settled = ledger.settle(BEGUN.row)
        assert [(record.identity, record.result) for record in settled] == [
            ("i1", "interrupted"),
            ("i2", "done"),
            ("i3", "interrupted"),
        ]
        assert ledger.done("i2") is not None
        assert ledger.settle(BEGUN.row) == ()


@pytest.mark.parametrize("form", [*range(1, FORM), FORM + 1, -5])
def test_a_ledger_of_another_form_is_refused_and_left_alone(tmp_path: Path, form: int) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.begin(BEGUN)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {form}")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(WorkError, match=f"its form is {form}, and this version reads form {FORM} only") as raised:
        Ledger(path)
    (mistake,) = raised.value.mistakes
    assert mistake.path == path
    assert mistake.hint is not None
    assert "move the ledger away" in mistake.hint
    assert path.read_bytes() == content


def test_a_ledger_that_cannot_be_created_as_a_whole_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE tests (id INTEGER);")
    connection.close()
    with pytest.raises(WorkError, match="ledger cannot be used"):
        Ledger(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    assert [name for (name,) in connection.execute("SELECT name FROM sqlite_master")] == ["tests"]
    connection.close()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_ledger_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(WorkError, match=r"ledger .*(damaged|cannot be used)"):
        Ledger(path).builds()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "change",
    [
        *("UPDATE builds SET inputs = '{'", "UPDATE builds SET inputs = '[1]'", "UPDATE builds SET channels = '5'"),
        *('UPDATE builds SET "values" = \'{"python": [3.12]}\'', "UPDATE builds SET started = x'00ff'"),
        *("UPDATE builds SET seconds = 'long'", "UPDATE builds SET seconds = 9e999", "UPDATE builds SET result = 'x'"),
        *("UPDATE builds SET log = 'a' || char(0)", "UPDATE packages SET file = 'a' || char(0)"),
        *("UPDATE packages SET size = 'x'", "UPDATE environments SET packages = '[1]'"),
        *("UPDATE environments SET packages = '{'", "UPDATE environments SET packages = '[{\"name\": 1}]'"),
        "CREATE TRIGGER t AFTER INSERT ON builds BEGIN DELETE FROM builds; END",
        "DROP TABLE packages; CREATE VIEW packages AS SELECT 1 AS build",
    ],
)
def test_a_ledger_that_holds_what_no_ledger_does_is_damaged(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        begun = ledger.begin(BEGUN)
        package = PackageRecord("", "linux-64/a-1-0.conda", 1, "0", 1)
        solved = EnvironmentRecord("host", (SolvedPackage("a", "1", "0", "linux-64", "c"),))
        ledger.finish(replace(begun, result="done", packages=(package,)), [solved])
    with sqlite3.connect(path) as connection:
        connection.executescript(f"PRAGMA ignore_check_constraints = ON; {change}")
    connection.close()
    with pytest.raises(WorkError, match="the ledger is damaged"), Ledger(path) as ledger:
        ledger.builds()
        ledger.environments(begun.id or 0)


def test_a_ledger_whose_words_are_damaged_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE builds", b"CREATE TABLE b\xecilds"))
    with pytest.raises(WorkError, match="the ledger is damaged"):
        Ledger(path).builds()


def test_a_locked_ledger_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.05)
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(WorkError, match="Another program holds it"), Ledger(path) as ledger:
            ledger.begin(BEGUN)
    finally:
        holder.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match="ledger cannot be used"):
        Ledger(tmp_path / "file" / "ledger.sqlite")


def test_what_a_build_was_made_of_and_with_is_kept(tmp_path: Path) -> None:
    solved = EnvironmentRecord("host", (SolvedPackage("zlib", "1.3", "h0_0", "linux-64", "conda-forge", "ab" * 32),))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        begun = ledger.begin(
            replace(
                BEGUN,
                machine=this_machine(),
                process=this_process(),
                cores=4,
                memory_limit=1 << 30,
                commit_id="abc+",
                inputs={"recipe": "r1"},
                values={"python": "3.12"},
                command="build linux_64",
            )
        )
        done = replace(begun, result="done", ended=now(), peak_memory=1 << 20, packages=(package(tmp_path),))
        ledger.finish(done, [solved])
        assert ledger.builds() == (done,)
        assert done.id is not None
        assert ledger.environments(done.id) == (solved,)


def test_tests_of_a_package_are_kept_with_their_benchmark(tmp_path: Path) -> None:
    test = TestRecord(
        sha256="ab",
        channel=".",
        file="linux-64/tiny-1-0.conda",
        started=now(),
        result="passed",
        log="logs/test.log",
        machine="desk",
        gpu="H100",
        driver="580.1",
        benchmark={"copy": {"value": 1.5, "unit": "s"}},
    )
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        kept = ledger.record_test(test)
        assert ledger.tests(["ab"]) == ledger.tests() == (kept,)
        assert replace(kept, id=None) == test
        assert ledger.tests(["cd"]) == ()


def test_what_happened_to_packages_is_ordered_by_time_whatever_was_recorded_first(tmp_path: Path) -> None:
    """As `collect` records it, which reads one machine after the other."""
    day, next_day = "2026-01-01T01:00:00+00:00", "2026-01-02T01:00:00+00:00"
    test = TestRecord("ab", ".", "linux-64/tiny-1-0.conda", next_day, "passed", "", "here")
    comparison = ComparisonRecord("ab", ".", test.file, next_day, "same", "", "here")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for record in (
            test,
            replace(test, started=day, ended="2026-01-01T22:00:00-05:00", machine="ended last"),
            replace(test, started=day, machine="early"),
            replace(test, started="someday", machine="without a time"),
            replace(test, machine="at the same time"),
        ):
            ledger.record_test(record)
        ledger.record_comparison(comparison)
        ledger.record_comparison(replace(comparison, started=day, machine="early"))
        order = ["without a time", "early", "here", "at the same time", "ended last"]
        assert [each.machine for each in ledger.tests()] == order
        assert [each.machine for each in ledger.tests(["ab"])] == order
        assert [each.machine for each in ledger.comparisons()] == ["early", "here"]


def test_a_dead_run_is_distinguished_from_a_live_one() -> None:
    assert process_lives(this_process(), this_machine())
    if Path("/proc/self/stat").exists():  # its number may have been given to another process since
        assert process_lives(f"{os.getpid()}:1", this_machine()) is False
    assert process_lives("999999999:1", this_machine()) is False
    assert process_lives(this_process(), "another machine") is None


def test_a_ledger_that_is_removed_while_it_is_open_is_said_to_be_so(tmp_path: Path) -> None:
    with Ledger(tmp_path / "out" / "ledger.sqlite") as ledger:
        begun = ledger.begin(BEGUN)
        shutil.rmtree(tmp_path / "out")
        with pytest.raises(WorkError, match="was removed while it was in use"):
            ledger.finish(replace(begun, result="failed", ended=now()))


def test_a_run_gives_signs_of_life_for_its_own_running_builds(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        mine = replace(BEGUN, machine="here", process="1:2")
        ledger.finish(replace(ledger.begin(mine), result="failed", ended=now()))
        ledger.begin(mine)
        ledger.begin(replace(BEGUN, machine="here", process="3:4"))
        ledger.give_sign("here", "1:2")
        assert [bool(record.seen) for record in ledger.builds()] == [False, True, False]


def test_a_key_of_another_user_or_in_the_current_folder_seals_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert key_of_user() is not None
    assert not (tmp_path / "state").exists()
    if sys.platform != "win32":
        monkeypatch.setenv("HOME", "home")
        assert key_of_user() is None
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home/.local/state"))
        monkeypatch.setattr(os, "geteuid", lambda: 1 + os.getuid())
        _key.cache_clear()
        assert key_of_user() is None
    _key.cache_clear()


def test_a_record_without_the_seal_of_this_user_is_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        done = finished(ledger, package(tmp_path))
        assert ledger.done("i1") == done
    key = tmp_path / "of another" / "feedstock-tools" / "ledger.key"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another"))
    with Ledger(path) as ledger:
        assert ledger.done("i1") is None
        assert [each.brought for each in ledger.builds_of(["i1"])] == [True]
    assert key.stat().st_mode & 0o777 == 0o600 or sys.platform == "win32"


def test_no_key_is_taken_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state" / "feedstock-tools").mkdir(parents=True)
    (tmp_path / "state" / "feedstock-tools" / "ledger.key").write_bytes(b"k" * 32)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert key_of_user() not in (None, b"k" * 32)


@pytest.mark.parametrize("name", [f"ledger.sqlite-{part}" for part in ("wal", "shm", "journal")])
@pytest.mark.parametrize("kind", ["link", "damaged"])
def test_what_lies_beside_a_ledger_leads_nowhere(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        finished(ledger, package(tmp_path))
    (tmp_path / "precious").write_text("precious\n" * 1000)
    (tmp_path / name).unlink(missing_ok=True)
    if kind == "link":
        (tmp_path / name).symlink_to(tmp_path / "precious")
    else:
        (tmp_path / name).write_text("x" * 100)
    with suppress(WorkError), Ledger(path) as ledger:
        assert len(ledger.builds()) == 1
        finished(ledger, package(tmp_path))
    assert (tmp_path / "precious").read_text() == "precious\n" * 1000


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE builds SET identity = 'i2'",
        "UPDATE builds SET marks = '{}', seal = ''",
        "UPDATE packages SET sha256 = '1'",
    ],
)
def test_a_seal_covers_what_decides_whether_a_build_counts(tmp_path: Path, change: str) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        finished(ledger, package(tmp_path))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database, database:
        database.execute(change)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert [each.brought for each in ledger.builds()] == [True]
        assert ledger.done("i1") is ledger.done("i2") is None


@pytest.mark.parametrize("change", ["result = 'passed'", "gpu = 'H200'", "sha256 = 'cd'", "seal = ''"])
def test_a_test_and_a_comparison_that_another_recorded_do_not_count(tmp_path: Path, change: str) -> None:
    failed = TestRecord("ab", ".", "linux-64/tiny-1-0.conda", now(), "failed", "", "here")
    other = ComparisonRecord("ab", ".", failed.file, now(), "different", "", "here")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.record_test(failed)
        ledger.record_comparison(other)
        assert not any(each.brought for each in ledger.tests())
        assert not any(each.brought for each in ledger.comparisons())
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database, database:
        database.execute(f"UPDATE tests SET {change}")  # noqa: S608
        database.execute("UPDATE comparisons SET result = 'same', seal = (SELECT seal FROM tests)")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert not any(ledger.counts(each) for each in ledger.tests())
        assert not any(ledger.counts(each) for each in ledger.comparisons())


def test_a_brought_promise_is_not_settled_as_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        done = finished(ledger, package(tmp_path))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database, database:
        database.execute("UPDATE builds SET result = 'running'")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert [each.result for each in ledger.settle(done.row)] == ["interrupted"]
