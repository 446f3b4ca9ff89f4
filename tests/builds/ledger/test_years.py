"""A ledger of years: what decides is found among thousands of builds, and nothing else is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from benchmarks.builds.ledger import fill
from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord, records
from feedstock_tools.builds.plan.needs import History
from tests.support import command
from tests.support.feedstocks import GPU, TinyFeedstock
from tests.support.needs import needs

FEW = 1_200
MANY = 5_000
#: Processor time of a command, its start included; more where coverage is measured.
SECONDS = 1.5 * (4 if os.environ.get("COVERAGE_RUN") else 1)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the builds that are read from then on."""
    numbers: list[int] = []
    build_of: Callable[..., BuildRecord] = records.build_of

    def counted(row: tuple[int, ...], packages: object) -> BuildRecord:
        numbers.append(row[-1])
        return build_of(row, packages)

    monkeypatch.setattr("feedstock_tools.builds.ledger.records.build_of", counted)
    return numbers


def record(number: int, **changes: object) -> BuildRecord:
    made = BuildRecord(
        identity=f"i{number}",
        configuration=f"c{number % 7}",
        row=f"r{number % 7}",
        output=f"o{number % 3}",
        result="done",
        started=f"2020-01-01T00:00:{number % 60:02}+00:00",
        log="logs/x.log",
        engine="e",
        channels=("c",),
        seconds=float(number),
        packages=(PackageRecord(".", f"linux-64/p-{number}-0.conda", 1, "0" * 64, 1),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def filled(path: Path, numbers: range) -> list[BuildRecord]:
    with Ledger(path) as ledger, ledger.at_once():
        found = []
        for number in numbers:
            made = record(number, result="failed") if number % 5 == 0 else record(number)
            made = replace(made, id=ledger.begin(made).id)
            ledger.finish(made)
            found.append(made)
    return found


def test_what_is_asked_for_is_what_a_search_through_all_builds_finds(tmp_path: Path) -> None:
    builds = filled(tmp_path / "ledger.sqlite", range(900))
    places = [(f"r{row}", f"o{output}") for row in range(8) for output in range(4)]
    identities = [f"i{number}" for number in range(0, 1_800, 2)]
    done = [each for each in builds if each.result == "done"]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.builds() == tuple(builds)
        assert ledger.builds_of(identities) == tuple(each for each in builds if each.identity in identities)
        last = [[each for each in done if (each.row, each.output) == place][-2:] for place in places]
        assert ledger.done_in(places, 2) == tuple(sorted(chain(*last), key=lambda each: each.id or 0))
        newest = {each.row: each for each in done if each.output == "o1"}
        assert ledger.done_of_output("o1") == tuple(sorted(newest.values(), key=lambda each: each.id or 0))
        assert ledger.done_as(["linux-64/p-7-0.conda", "linux-64/p-5-0.conda"]) == (builds[7],)
        assert ledger.last_builds(["c1", "c2"], 4) == tuple(
            [each for each in builds if each.configuration in ("c1", "c2")][-4:]
        )
        assert ledger.identities_done(identities) == {each.identity for each in done} & set(identities)


def test_the_newest_build_of_an_identity_decides_beside_those_that_run_or_are_done(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        results = ("failed", "done", "failed", "running", "interrupted", "failed")
        for result in results:
            begun = ledger.begin(record(1))
            if result != "running":
                ledger.finish(replace(begun, result=result))
        assert [each.result for each in ledger.builds_of(["i1"])] == ["done", "running", "failed"]


@pytest.mark.parametrize("held", [0, 60, None], ids=["the oldest", "one between", "none"])
def test_of_many_builds_of_one_identity_few_are_read(tmp_path: Path, read: list[int], held: int | None) -> None:
    (tmp_path / "linux-64").mkdir()
    with Ledger(tmp_path / "ledger.sqlite") as ledger, ledger.at_once():
        for number in range(64):
            made = replace(record(number), identity="i")
            if number == held:
                path = tmp_path / made.packages[0].file
                path.write_text("x")
                made = replace(made, packages=(replace(made.packages[0], mtime_ns=path.stat().st_mtime_ns),))
            ledger.finish(replace(made, id=ledger.begin(made).id))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        read.clear()
        assert ledger.done("i") == (None if held is None else ledger.builds()[held])
        found = ledger.builds_of(["i"])
    assert [each.seconds for each in found] == ([63.0] if held is None else [float(held), 63.0])
    assert len(read) <= 64 + 5


def test_the_history_of_a_row_counts_before_that_of_its_output(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.sqlite", range(300))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        history = History.of(ledger, {("r1", "o1"): False, ("another", "o1"): False, ("another", "none"): None})
    assert history.seconds("r1", "o1") == 232.0
    assert history.seconds("another", "o1") == 289.0
    assert history.seconds("another", "none") is None


@pytest.mark.parametrize(("is_gpu", "seconds"), [(True, 900.0), (False, 3.0), (None, 451.5)])
def test_the_times_of_a_row_for_a_gpu_come_from_rows_for_gpus(
    tmp_path: Path, is_gpu: bool | None, seconds: float
) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        rows = ("cpu", {"cuda_compiler_version": "None"}, 3.0), ("gpu", {"cuda_compiler_version": "12.9"}, 900.0)
        for row, values, took in rows:
            made = replace(record(1), row=row, output="o", values=values, seconds=took)
            ledger.finish(replace(made, id=ledger.begin(made).id))
        history = History.of(ledger, {("new", "o"): is_gpu, ("gpu", "o"): True, ("new", "other"): True})
    assert (history.seconds("new", "o"), history.seconds("gpu", "o")) == (seconds, 900.0)
    assert history.seconds("new", "other") is None


def test_status_plan_list_and_an_idle_build_read_few_of_many_builds(
    gpu_feedstock: TinyFeedstock, read: list[int]
) -> None:
    from feedstock_tools.builds.matrix.listing import listing
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.builds.plan.agenda import agenda
    from feedstock_tools.builds.plan.hosts import Capacity
    from feedstock_tools.builds.plan.workspace import open_workspace

    workspace = open_workspace(gpu_feedstock.folder, None, [str(gpu_feedstock.channel)], {})
    chosen = workspace.chosen()
    before = [(each.configuration.name, each.state) for each in read_matrix(workspace, chosen).configurations]
    times = agenda(workspace, chosen, Capacity.of_machine()).todo
    fill(gpu_feedstock.artifacts / "ledger.sqlite", MANY)
    read.clear()
    matrix = read_matrix(workspace, chosen)
    assert len(read) < FEW
    read.clear()
    todo = agenda(workspace, chosen, Capacity.of_machine()).todo
    assert [work.name for work in todo] == [work.name for work in times]
    assert listing(workspace, chosen)
    assert len(read) < 200
    after = {each.configuration.name: each.state for each in matrix.configurations}
    done = {name for name, state in before if state == "done"}
    assert {name for name, state in after.items() if state == "done"} == done
    assert "Nothing to do" in gpu_feedstock.build(f"{GPU}_py3.11").stdout


@pytest.mark.slow
@needs("system", hasattr(os, "wait4"), "one that tells what a process took")
def test_fifty_thousand_builds_take_a_second_and_little_memory(gpu_feedstock: TinyFeedstock) -> None:
    fill(gpu_feedstock.artifacts / "ledger.sqlite", 50_000, solved_packages=2)
    for words in (("status",), ("plan",), ("build", "--list"), ("build", f"{GPU}_py3.11")):
        arguments = [*words, "--channel", str(gpu_feedstock.channel)]
        ended = command.measured(command.tool(*arguments), gpu_feedstock.folder)
        assert ended.returncode == 0, ended.stderr
        assert ended.seconds < SECONDS
        assert ended.memory < 150 << 20


def test_a_ledger_that_another_program_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    builds = filled(path, range(9))
    with closing(sqlite3.connect(path)) as connection:
        indexes = "SELECT count(*) FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'"
        assert connection.execute(indexes).fetchone() == (6,)
        connection.execute("BEGIN IMMEDIATE")
        with Ledger(path) as ledger:
            assert ledger.done_in([("r1", "o1")], 9) == (builds[1],)
