"""Many feedstocks in one command: outcomes, migrations, an own failure for each, and a run that goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.many import RerenderedFeedstock, opened_record, rerender_many
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.smithy import find_release
from tests.support import command
from tests.support.smithy_release import write_release

RECIPE = """
package: {{name: {name}, version: "1"}}
requirements:
  host:
    - {host}
"""
PINNING = "zlib:\n- '1.2'\nbzip2:\n- '1.0'\n"
MIGRATION = """
__migrator:
  kind: version
  migration_number: 1
  bump_number: 1
  exclude:
  - third
migrator_ts: 1700000000
zlib:
- '1.3'
"""


@pytest.fixture
def feedstocks(tmp_path: Path) -> list[Path]:
    """Four feedstocks: two use zlib, one bzip2, and the recipe of the last cannot be read."""
    made = []
    for name, host in (("first", "zlib"), ("second", "bzip2"), ("third", "zlib"), ("broken", "zlib")):
        folder = tmp_path / f"{name}-feedstock"
        (folder / "recipe").mkdir(parents=True)
        (folder / "recipe/meta.yaml").write_text(RECIPE.format(name=name, host=host))
        (folder / "conda-forge.yml").write_text("provider: {osx_64: null, win_64: null}\n")
        made.append(folder)
    (made[-1] / "recipe/meta.yaml").write_text("package: {name: [}\n")
    return made


@pytest.fixture
def pinning(tmp_path: Path) -> Path:
    path = tmp_path / "conda_build_config.yaml"
    path.write_text(PINNING)
    return path


@pytest.fixture
def migration(tmp_path: Path) -> Path:
    path = tmp_path / "zlib13.yaml"
    path.write_text(MIGRATION)
    return path


def by_name(found: list[RerenderedFeedstock]) -> dict[str, RerenderedFeedstock]:
    return {one.feedstock.name.removesuffix("-feedstock"): one for one in found}


def test_each_feedstock_has_its_own_outcome(feedstocks: list[Path], pinning: Path, tmp_path: Path) -> None:
    release = find_release(write_release(tmp_path / "release"))
    first = by_name(list(rerender_many(feedstocks, pinning=pinning, smithy=release, write=True, jobs=2)))
    assert {name: one.outcome for name, one in first.items()} == {
        "first": "changed",
        "second": "changed",
        "third": "changed",
        "broken": "refused",
    }
    assert ("add", "README.md") in first["first"].changes
    assert "broken-feedstock/recipe/meta.yaml" in first["broken"].reason
    again = by_name(list(rerender_many(feedstocks, pinning=pinning, smithy=release, write=True, jobs=2)))
    assert [one.outcome for one in again.values()].count("unchanged") == 3
    expected = rerender(feedstocks[0], pinning=pinning, smithy=release)
    assert not expected.changes()


def test_without_writing_nothing_is_written(feedstocks: list[Path], pinning: Path) -> None:
    assert [one.outcome for one in rerender_many(feedstocks[:1], pinning=pinning)] == ["changed"]
    assert not (feedstocks[0] / ".ci_support").exists()


def test_a_migration_goes_to_those_that_need_it_and_the_others_say_why_not(
    feedstocks: list[Path], pinning: Path, migration: Path
) -> None:
    has = feedstocks[1].with_name("newer-feedstock")
    shutil.copytree(feedstocks[0], has)
    (has / "recipe/conda_build_config.yaml").write_text("zlib:\n- '1.4'\n")
    laid = feedstocks[1].with_name("laid-feedstock")
    shutil.copytree(feedstocks[0], laid)
    (laid / ".ci_support/migrations").mkdir(parents=True)
    shutil.copy(migration, laid / ".ci_support/migrations")
    wanted = [*feedstocks, has, laid]
    found = by_name(list(rerender_many(wanted, pinning=pinning, migration=migration, write=True)))
    assert {name: (one.outcome, one.reason.partition("\n")[0]) for name, one in found.items() if name != "broken"} == {
        "first": ("changed", ""),
        "second": ("not needed", "no configuration uses zlib"),
        "third": ("not needed", "the migration excludes third"),
        "newer": ("not needed", "the migration changes nothing: the configurations have zlib 1.4"),
        "laid": ("not needed", "it has the migration"),
    }
    assert found["broken"].outcome == "refused"
    assert "'1.3'" in (feedstocks[0] / ".ci_support/linux_64_.yaml").read_text()
    assert (feedstocks[0] / ".ci_support/migrations/zlib13.yaml").read_text() == MIGRATION
    assert not (feedstocks[1] / ".ci_support").exists()


def test_what_exceeds_a_bound_has_failed_and_is_tried_again(feedstocks: list[Path], pinning: Path) -> None:
    outputs = "".join(f"  - name: a{number}\n" for number in range(501))
    (feedstocks[0] / "recipe/meta.yaml").write_text(f"package:\n  name: demo\n  version: 1.0\noutputs:\n{outputs}")
    (found,) = rerender_many(feedstocks[:1], pinning=pinning)
    assert (found.outcome, "more than" in found.reason) == ("failed", True)


def test_what_is_no_migration_is_refused_before_anything_is_done(feedstocks: list[Path], pinning: Path) -> None:
    with pytest.raises(InputError, match="is not a migration"):
        list(rerender_many(feedstocks, pinning=pinning, migration=pinning, write=True))


def test_the_command_prints_outcomes_and_a_summary(feedstocks: list[Path], pinning: Path) -> None:
    words = [str(folder) for folder in feedstocks]
    run = command.run(command.tool("rerender", *words, "--jobs", "2", "--pinning", str(pinning)))
    assert run.returncode == 1
    assert sorted(line.partition(": ")[0].split()[0] for line in run.stdout.splitlines()) == [
        *["changed"] * 3,
        "refused",
    ]
    assert "4 feedstocks: 3 changed, 1 refused\n" in run.stderr
    done = command.run(command.tool("rerender", *words[:2], "--check", "--json", "--pinning", str(pinning)))
    assert done.returncode == 0
    assert [one["outcome"] for one in json.loads(done.stdout)] == ["unchanged"] * 2
    mixed = command.run(command.tool("rerender", *words, "--diff"))
    assert (mixed.returncode, "are for one feedstock" in mixed.stderr) == (2, True)


def test_an_interrupted_run_goes_on(feedstocks: list[Path], pinning: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    words = ("--pinning", str(pinning), "--resume", str(record))
    command.run(command.tool("rerender", str(feedstocks[0]), str(feedstocks[3]), *words))
    with record.open("a") as stream:
        stream.write('{"feedstock": "cut o')
    run = command.run(command.tool("rerender", *map(str, feedstocks), *words))
    assert "4 feedstocks: 3 changed, 1 refused, 2 of them by an earlier run\n" in run.stderr
    assert len(run.stdout.splitlines()) == 2
    assert len(record.read_text().splitlines()) == 5
    pinning.write_text(PINNING.replace("1.2", "1.1"))
    other = command.run(command.tool("rerender", *map(str, feedstocks), *words))
    assert (other.returncode, "belongs to a run with another pinning" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [("nonsense\n", "is not a record"), ('{"options": {}}\n{"feedstock": 3}\n', "is not an outcome of a rerender")],
)
def test_another_file_is_not_taken_for_a_record(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text(content)
    with pytest.raises(InputError, match=message), opened_record(path, {}):
        pass
    assert path.read_text() == content


def test_failures_are_tried_again(tmp_path: Path) -> None:
    with opened_record(tmp_path / "record", {"rules": "1"}) as record:
        record.add(RerenderedFeedstock(tmp_path / "one", "failed", "no space"))
        record.add(RerenderedFeedstock(tmp_path / "two", "refused", "bad"))
    with opened_record(tmp_path / "record", {"rules": "1"}) as record:
        assert (record.has(tmp_path / "one"), record.has(tmp_path / "two")) == (False, True)
