"""What a change of the pinning does to the feedstocks of an index."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.bounds import pool
from feedstock_tools.check.findings import Verdict
from feedstock_tools.many import impact as impact_module
from feedstock_tools.many.impact import Change, impact
from feedstock_tools.many.index import INDEX, Index, opened_index
from feedstock_tools.report.many import JobTimes, impact_checks, impact_text
from tests.support import command
from tests.support.git import committed
from tests.support.workspaces import feedstock

PINNING = "libbase:\n- 1\nzlib:\n- 1\nbzip2:\n- 1\nzip_keys:\n-\n  - bzip2\n  - xz\nxz:\n- 5\n"


def pinning(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "conda_build_config.yaml").write_text(text)
    return folder


def test_only_feedstocks_that_could_change_are_rendered_and_come_in_the_order_of_their_packages(tmp_path: Path) -> None:
    feedstock(tmp_path / "w" / "base-feedstock", "base", host=("zlib",), makes=("libbase",))
    feedstock(tmp_path / "w" / "app-feedstock", "app", host=("zlib", "libbase"))
    feedstock(tmp_path / "w" / "other-feedstock", "other", host=("xz",))
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    zipped = pinning(tmp_path / "zipped", PINNING.replace("bzip2:\n- 1", "bzip2:\n- 2"))
    with opened_index(tmp_path / INDEX, make=True) as index:
        assert {each.outcome for each in index.update(tmp_path / "w", 1)} == {"read"}
        found = impact(index, before, after)
        assert found.change.keys == {"zlib"}
        assert (found.layers, found.untouched) == ((("base",), ("app",)), ("other",))
        assert all(each.changed or each.added for each in found.changed)
        every = impact(index, before, after, every=True)
        assert [each.name for each in every.changed] == [each.name for each in found.changed]
        assert every.untouched == () and every.same.keys() == {"other"}
        assert "other" not in impact(index, before, zipped).untouched, (
            "it uses a key that is zipped with the changed one"
        )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Feedstocks `base`, `app`, which builds with it, and `other`; all use zlib or xz."""
    folder = tmp_path / "w"
    feedstock(folder / "base-feedstock", "base", host=("zlib",), makes=("libbase",))
    feedstock(folder / "app-feedstock", "app", host=("zlib", "libbase"))
    feedstock(folder / "other-feedstock", "other", host=("xz",))
    with opened_index(folder / INDEX, make=True) as index:
        assert {each.outcome for each in index.update(folder, 1)} == {"read"}
    return folder


def test_a_migration_is_a_change_too_but_not_of_those_that_it_excludes(workspace: Path, tmp_path: Path) -> None:
    migration = tmp_path / "zlib2.yaml"
    migration.write_text("__migrator:\n  kind: version\n  exclude: [app]\nmigrator_ts: 1\nzlib:\n- 2\n")
    with opened_index(workspace / INDEX) as index:
        found = impact(index, pinning(tmp_path / "before", PINNING), migration)
    assert found.change.keys == {"zlib"}
    assert (found.layers, found.untouched, list(found.same)) == ((("base",),), ("other",), ["app"])


def test_a_migration_of_a_key_that_was_not_pinned_is_a_change(workspace: Path, tmp_path: Path) -> None:
    migration = tmp_path / "xz6.yaml"
    migration.write_text("__migrator:\n  kind: version\nmigrator_ts: 1\nxz:\n- 6\n")
    with opened_index(workspace / INDEX) as index:
        found = impact(index, pinning(tmp_path / "before", "zlib:\n- 1\n"), migration)
    assert (found.layers, found.untouched) == ((("other",),), ("app", "base"))


def test_packages_that_cannot_be_rendered_are_not_known_and_never_left_out(tmp_path: Path) -> None:
    folder = feedstock(tmp_path / "w" / "base-feedstock", "base", host=("zlib",))
    meta = folder / "recipe" / "meta.yaml"
    meta.write_text(meta.read_text().replace('"1.0"', '"1.0-1"'))
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    with opened_index(tmp_path / INDEX, make=True) as index:
        assert [each.outcome for each in index.update(tmp_path / "w", 1)] == ["read"]
        found = impact(index, before, after)
    assert [each.name for each in found.changed if "1.0-1" in each.unnamed] == ["base"]
    assert [check.verdict for check in impact_checks(found)] == [Verdict.UNKNOWN]
    assert "Packages not known: base: linux_64_: " in impact_text(found, JobTimes({}, 60))


def test_the_deployment_target_of_macos_changes_all_that_build_there(workspace: Path, tmp_path: Path) -> None:
    before = pinning(tmp_path / "before", f"{PINNING}c_stdlib_version:\n- 10.13  # [osx]\n")
    after = pinning(tmp_path / "after", f"{PINNING}c_stdlib_version:\n- 11.0  # [osx]\n")
    with opened_index(workspace / INDEX) as index:
        found = impact(index, before, after)
        assert [each.name for each in found.changed] == ["app", "base", "other"]
        assert impact(index, before, after, every=True).missed == ()


def _rendered(monkeypatch: pytest.MonkeyPatch, index: Index, before: Path, after: Path) -> list[str]:
    """The feedstocks that an impact renders, beside giving the same answer as one that knows nothing yet."""
    each_bounded, members = pool.each_bounded, list[str]()

    def watched(work: Any, wanted: list[Any], *rest: Any) -> Any:
        members.extend(member.name for member in wanted)
        return each_bounded(work, wanted, *rest)

    monkeypatch.setattr(impact_module, "each_bounded", watched)
    found = impact(index, before, after)
    monkeypatch.setattr(impact_module, "each_bounded", each_bounded)
    assert found.changed == impact(index, before, after, every=True).changed
    return members


def test_a_second_change_renders_only_what_it_reaches(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    with opened_index(workspace / INDEX) as index:
        assert _rendered(monkeypatch, index, before, after) == ["app", "base"]
        assert _rendered(monkeypatch, index, before, after) == []
        (after / "conda_build_config.yaml").write_text(PINNING.replace("- 1", "- 2"))  # libbase and bzip2, too
        assert _rendered(monkeypatch, index, before, after) == ["app", "base", "other"]
        recipe = workspace / "app-feedstock/recipe/meta.yaml"
        recipe.write_text(recipe.read_text() + "# changed\n")
        assert {each.outcome for each in index.update(workspace, 1)} == {"read", "unchanged"}
        assert _rendered(monkeypatch, index, before, after) == ["app"]
    with sqlite3.connect(f"file:{workspace / INDEX}?mode=ro", uri=True) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        (before / "conda_build_config.yaml").write_text(f"{PINNING}other_key:\n- 1\n")
        assert _rendered(monkeypatch, Index(connection), before, after) == []
        (before / "conda_build_config.yaml").write_text(PINNING.replace("xz:\n- 5", "xz:\n- 4"))
        assert _rendered(monkeypatch, Index(connection), before, after) == ["other"]


def test_another_process_takes_the_answers_that_one_has_kept(workspace: Path, tmp_path: Path) -> None:
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    for seed in "123":
        impact_of = command.tool("many", "impact", str(workspace), str(before), str(after))
        assert command.run(impact_of, variables=command.environment(PYTHONHASHSEED=seed)).returncode == 0
    with sqlite3.connect(workspace / INDEX) as connection:
        assert connection.execute("SELECT count(*) FROM answer").fetchone() == (2,)


def test_what_the_index_rules_out_and_changes_is_named(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    monkeypatch.setattr(Change, "why", lambda *_: "")
    with opened_index(workspace / INDEX) as index:
        assert impact(index, before, after).missed == ()
        assert impact(index, before, after, every=True).missed == ("app", "base")


def test_the_command_takes_revisions_and_prints_markdown_and_a_page(workspace: Path, tmp_path: Path) -> None:
    clone = tmp_path / "pinning-feedstock"
    clone.mkdir()
    pinning(clone / "recipe", PINNING)
    committed(clone)
    (clone / "recipe/conda_build_config.yaml").write_text(PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    page = tmp_path / "impact.html"
    words = ("many", "impact", str(workspace))
    done = command.run(command.tool(*words, f"{clone}@HEAD", str(clone), "--markdown", "--html", str(page)))
    assert done.returncode == 0, done.stderr
    line = "**2 feedstocks to rebuild in 2 layers: 6 jobs, 6 h 00 min.** 2 renderings completed.\n"
    assert done.stdout.startswith(line)
    assert "| 1 | `base` | 0 | 0 | 3 | 6 |" in done.stdout
    text = page.read_text()
    assert "Layer 2" in text and "libbase-1.0" in text.replace("<wbr>", "")
    assert command.run(command.tool(*words, f"{clone}@nowhere", str(clone))).returncode == 2
    times = tmp_path / "times.yaml"
    times.write_text("base/linux_64_*: 30 min\na*: 2 h\n")
    done = command.run(command.tool(*words, f"{clone}@HEAD", str(clone), "--job-times", str(times)))
    assert "2 feedstocks to rebuild in 2 layers: 6 jobs, 8 h 30 min." in done.stdout


def test_a_feedstock_that_could_not_be_read_is_not_untouched(workspace: Path, tmp_path: Path) -> None:
    (workspace / "other-feedstock/conda-forge.yml").write_text("provider: [")
    with opened_index(workspace / INDEX) as index:
        assert {each.outcome for each in index.update(workspace, 1)} == {"refused", "unchanged"}
    before, after = (pinning(tmp_path / name, f"{PINNING}other_key:\n- {name}\n") for name in ("1", "2"))
    asked = command.tool("many", "impact", str(workspace), str(before), str(after))
    shown = command.run(asked)
    assert shown.stdout.startswith("1 of 1 rendering could not be completed: other (could not be read: ")
    assert (shown.returncode, command.run([*asked, "--strict"]).returncode) == (0, 1)
    found = json.loads(command.run([*asked, "--json"]).stdout)
    assert (found["verdict"], found["untouched"]) == ("unknown", ["app", "base"])
