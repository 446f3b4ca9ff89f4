"""The picture of builds over time: jobs do not overlap in a lane, idle time is cut out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from feedstock_tools.builds.matrix.matrix import Matrix
from feedstock_tools.report.timeline import draw, jobs_of

MakeMatrix = Callable[[int], Matrix]


def test_a_bar_for_each_row_that_was_built_and_no_two_on_each_other(matrix_of: MakeMatrix) -> None:
    matrix = matrix_of(60)
    jobs = jobs_of(matrix.builds, {record.id for record in matrix.builds}, matrix.at)
    picture = draw(jobs)
    assert picture is not None
    assert len(picture.bars) == len({(record.machine, record.log) for record in matrix.builds})
    rows: dict[float, list[tuple[float, float]]] = {}
    for bar in picture.bars:
        rows.setdefault(bar.y, []).append((bar.x, bar.job.end.timestamp()))
        assert bar.x + bar.width <= picture.width
    for row in rows.values():
        assert all(before[0] <= after[0] for before, after in pairwise(sorted(row)))
    assert [name for name, _, _ in picture.lanes] == ["build-server", "workstation"]


def test_a_night_without_builds_takes_no_room(matrix_of: MakeMatrix) -> None:
    matrix = matrix_of(3)
    picture = draw(jobs_of(matrix.builds, (), matrix.at))
    assert picture is not None
    assert len(picture.segments) == 2
    assert [tick.text[:10] for tick in picture.ticks if tick.major] == ["2026-03-03", "2026-03-04"]


def test_a_build_whose_run_died_does_not_go_on(matrix_of: MakeMatrix) -> None:
    matrix = matrix_of(10)
    running = [record for record in matrix.builds if record.result == "running"]
    alive = jobs_of(running, {record.id for record in running}, matrix.at)
    dead = jobs_of(running, (), matrix.at)
    assert {job.result for job in alive} == {"running"}
    assert {job.result for job in dead} == {"interrupted"}
    assert all(job.end == job.begin for job in dead)


def test_without_builds_there_is_no_picture() -> None:
    assert draw(()) is None


def test_every_day_with_builds_is_named(matrix_of: MakeMatrix) -> None:
    matrix = matrix_of(15)
    picture = draw(jobs_of(matrix.builds, (), matrix.at))
    assert picture is not None
    assert {tick.text[:10] for tick in picture.ticks if len(tick.text) > 10} == {"2026-03-03", "2026-03-04"}
    assert all(after.x - before.x > 40 for before, after in pairwise(picture.ticks))
