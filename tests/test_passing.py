"""How a run of all tests is compared with the record, shown by runs of a few made-up tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.needs import kind_of
from tests.support.passing import Record, read_record, record_text, renewed, short_of
from tests.support.paths import ROOT

KNOWN = Record(100, {"fetched": 10, "system": 2})
TESTS = """
import pytest
from tests.support.needs import needs

@pytest.mark.parametrize("number", range({passing}))
def test_it(number):
    pass

@needs("fetched", False, "a clone")
def test_that_needs_a_clone():
    pass

{more}
"""
CONFTEST = """
import sys
from pathlib import Path
from tests.support.passing import Passing

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passing(Path({record!r}), record=False))
"""


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (KNOWN, []),
        (Record(112, {}), []),
        (Record(101, {"fetched": 10, "system": 1}), []),
        (Record(99, {"fetched": 10, "system": 2}), ["111 tests ran", "99 tests passed"]),
        (Record(99, {"fetched": 11, "system": 2}), ["11 tests were skipped for want of clones", "99 tests passed"]),
        (Record(100, {"fetched": 10, "system": 2, "device": 1}), ["1 tests were skipped for want of a GPU"]),
        (Record(90, {"fetched": 10, "system": 12}), ["12 tests were skipped for want of another", "90 tests passed"]),
    ],
)
def test_a_run_falls_short_where_fewer_tests_pass_or_more_are_skipped(now: Record, said: list[str]) -> None:
    found = short_of(KNOWN, now, same_system=True)
    assert [line.startswith(start) for line, start in zip(found, said, strict=True)] == [True] * len(said), found


def test_another_system_may_skip_what_it_must_and_lose_nothing() -> None:
    assert short_of(KNOWN, Record(60, {"fetched": 10, "system": 42}), same_system=False) == []
    assert len(short_of(KNOWN, Record(60, {"fetched": 10, "system": 41}), same_system=False)) == 1


def test_a_record_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "passing.toml"
    path.write_text(record_text(KNOWN))
    assert read_record(path) == KNOWN


def test_a_record_is_what_a_machine_with_less_comes_to() -> None:
    assert renewed(KNOWN, Record(115, {"fetched": 3, "device": 1})) == Record(
        115 + 4 - 13, {"fetched": 10, "system": 2, "device": 1}
    )
    assert renewed(KNOWN, KNOWN) == KNOWN


def test_a_reason_names_its_kind() -> None:
    assert kind_of("needs fetched: a clone") == "fetched"
    assert kind_of("needs luck: four leaves") is None
    assert kind_of("fetched: a clone") is None


@pytest.mark.parametrize(
    ("passing", "more", "status", "said"),
    [
        (3, "", 0, "3 passed, 1 skipped"),
        (2, "", 1, "2 tests passed, and 3 are recorded"),
        (
            3,
            '@pytest.mark.skip(reason="it is late")\ndef test_tired(): pass',
            1,
            "for no reason that tests/support",
        ),
        (3, "def test_wrong(): assert False", 1, "1 failed, 3 passed, 1 skipped"),
    ],
)
def test_a_run_of_too_few_fails(tmp_path: Path, passing: int, more: str, status: int, said: str) -> None:
    (tmp_path / "test_few.py").write_text(TESTS.format(passing=passing, more=more))
    (tmp_path / "passing.toml").write_text(record_text(Record(3, {"fetched": 1})))
    record = tmp_path / "passing.toml"
    (tmp_path / "conftest.py").write_text(CONFTEST.format(record=str(record)))
    words = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    words += ["--basetemp", str(tmp_path / "temporary")]  # in the usual place it would remove what earlier runs left
    workers = ["-p", "xdist.plugin", "-n", "2"] if status == 0 else []
    few = command.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # the installed plugins take a second to import
    program = f"import pytest\nraise SystemExit(pytest.main({[*words, *workers, str(tmp_path)]}))"
    run = command.run([sys.executable, "-c", program], ROOT, few)
    assert run.returncode == status, run.stdout + run.stderr
    assert said in run.stdout
