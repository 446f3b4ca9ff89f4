"""From a folder to packages in a channel by calling functions: values in, values out, nothing printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import Built, Event
from feedstock_tools.builds.matrix.matrix import read_matrix
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Limits
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.builds.publish.publish import Published, publish
from feedstock_tools.builds.runs.observer import NextAttempt, Progress
from feedstock_tools.builds.runs.run import run
from feedstock_tools.builds.testing.tests import TestOptions, built_packages, run_tests
from feedstock_tools.channel.targets import parse_target
from tests.support.feedstocks import CPU, HERE, TinyFeedstock

CAPACITY = Capacity((0, 1), 2 << 30)


class Watched:
    """Records the events of a run, of tests and of publishing."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.rows: list[tuple[str, bool]] = []
        self.left: list[float | None] = []
        self.tested: list[str] = []
        self.published: list[str] = []

    def begin(self, *what: object) -> None:
        if isinstance(what[0], str):
            self.tested.append(what[0])
        elif isinstance(what[-1], Published):
            self.published.append(what[-1].file)

    def event(self, row: Row, event: Event | NextAttempt) -> None:
        if isinstance(event, Built):
            self.built.append(event.output)

    def end(self, row: Row) -> None:
        self.rows.append((row.name, row.failed is None))

    def progress(self, progress: Progress) -> None:
        self.left.append(progress.left)

    def ending(self, builds: int, *, go_on: bool) -> None:
        raise AssertionError("nothing cuts this run short")

    def line(self, package: str, text: str) -> None:
        raise AssertionError("a ledger knows the package")

    def failed(self, package: str, reason: str, last_lines: object) -> None:
        raise AssertionError(reason)

    def incomplete(self, state: str, configurations: object) -> None:
        raise AssertionError("all that was chosen is complete")

    def untested(self, reason: str, files: object) -> None:
        raise AssertionError("all that was chosen is tested")


def opened(feedstock: TinyFeedstock) -> Workspace:
    """The tiny feedstock with its channel, in this process's environment."""
    return open_workspace(feedstock.folder, None, (str(feedstock.channel),), dict(os.environ))


def files_of(folder: Path) -> dict[Path, bytes]:
    """The files of a feedstock, except build artifacts."""
    kept = (path for path in folder.rglob("*") if path.is_file() and "build_artifacts" not in path.parts)
    return {path: path.read_bytes() for path in kept}


def test_a_workspace_that_is_opened_writes_nothing_but_caches(feedstock: TinyFeedstock) -> None:
    before = files_of(feedstock.folder)
    workspace = opened(feedstock)
    found = agenda(workspace, workspace.chosen([CPU]), CAPACITY, 1)
    assert len(found.todo) == 2
    assert files_of(feedstock.folder) == before
    assert {path.name for path in feedstock.artifacts.iterdir()} == {".cache", ".gitignore"}


def test_from_a_folder_to_a_channel(
    feedstock: TinyFeedstock, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["another", "program"])
    watched = Watched()
    workspace = opened(feedstock)
    chosen = workspace.chosen([f"{CPU}_py3.11"])
    todo = agenda(workspace, chosen, CAPACITY, 1)
    result = run(workspace, todo, Limits(), watched, command="a test")
    assert result.is_complete
    assert watched.rows == [(row.name, True) for row in todo.todo]
    assert watched.built == ["libtiny", "tiny-base", "tiny"]
    assert watched.left
    matrix = read_matrix(workspace, chosen)
    assert [each.state for each in matrix.configurations] == ["done"]
    assert {record.command for record in matrix.builds} == {"a test"}

    again = agenda(workspace, chosen, CAPACITY, 1)
    assert (again.todo, len(again.done), again.seconds) == ((), 1, None)
    assert not run(workspace, again, Limits(), watched).built

    tested = run_tests(built_packages(workspace, chosen), TestOptions(), workspace.machine, watched)
    assert [record.result for record in tested] == ["passed"] * 3
    assert len(watched.tested) == 3

    target = parse_target(str(tmp_path / "channel"), None, workspace.machine, tmp_path)
    published = publish(read_matrix(workspace, chosen), target, watched)
    assert {each.result for each in published} == {"published"}
    assert sorted(watched.published) == sorted(f"{HERE.subdir}/{name}" for name in feedstock.packages())
    assert capfd.readouterr() == ("", "")


def test_the_times_of_earlier_builds_tell_how_long_the_next_takes(whole_feedstock: TinyFeedstock) -> None:
    for script in whole_feedstock.folder.glob("recipe/*.sh"):
        script.write_text(f"{script.read_text()}# changed\n")
    workspace = opened(whole_feedstock)
    found = agenda(workspace, workspace.chosen([CPU]), CAPACITY, 2)
    first, second = found.todo
    assert [output.name for output in first.wanted.makes] == ["libtiny", "tiny-base", "tiny"]
    assert [output.name for output in second.wanted.makes] == ["tiny-base", "tiny"]
    assert [output.name for output in second.wanted.missing] == ["libtiny", "tiny-base", "tiny"]
    assert first.wanted.expected is not None
    assert second.wanted.expected is not None
    library = first.wanted.seconds["libtiny"]
    assert found.seconds == pytest.approx(max(first.wanted.expected, library + second.wanted.expected))
