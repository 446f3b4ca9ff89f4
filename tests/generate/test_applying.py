"""Writing generated files: idempotent, atomic, and careful with files that a person changed."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.generate.generating import apply, compare

A, B = PurePosixPath("recipe/a.yaml"), PurePosixPath("b.yml")


def _kinds(folder: Path, texts: dict[PurePosixPath, str]) -> dict[str, str]:
    return {str(change.path): change.kind for change in compare(folder, texts)}


def test_applying_twice_changes_nothing(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n", B: "b\n"})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    changes = apply(tmp_path, {A: "a\n", B: "b\n"})

    assert {change.kind for change in changes} == {"same"}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_file_that_the_spec_no_longer_has_is_removed(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n", B: "b\n"})

    assert _kinds(tmp_path, {B: "b\n"}) == {"b.yml": "same", "recipe/a.yaml": "removed"}
    apply(tmp_path, {B: "b\n"})

    assert not (tmp_path / A).exists()


def test_an_edited_file_stops_everything(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n", B: "b\n"})
    (tmp_path / A).write_text("mine\n")

    with pytest.raises(InputError, match=r"a\.yaml: was edited since it was generated"):
        apply(tmp_path, {A: "new\n", B: "new\n"})

    assert (tmp_path / A).read_text() == "mine\n"
    assert (tmp_path / B).read_text() == "b\n"


def test_an_edited_file_is_kept_when_its_part_of_the_spec_goes(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n"})
    (tmp_path / A).write_text("mine\n")

    with pytest.raises(InputError, match="was edited"):
        apply(tmp_path, {})


def test_force_overwrites_an_edited_file(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n"})
    (tmp_path / A).write_text("mine\n")

    apply(tmp_path, {A: "new\n"}, force=True)

    assert (tmp_path / A).read_text() == "new\n"
    assert _kinds(tmp_path, {A: "new\n"}) == {"recipe/a.yaml": "same"}


def test_a_file_that_was_never_generated_counts_as_edited(tmp_path: Path) -> None:
    (tmp_path / B).write_text("mine\n")

    assert _kinds(tmp_path, {B: "b\n"}) == {"b.yml": "edited"}


def test_an_edit_that_arrives_at_the_new_text_is_no_conflict(tmp_path: Path) -> None:
    apply(tmp_path, {A: "a\n"})
    (tmp_path / A).write_text("new\n")

    assert _kinds(tmp_path, {A: "new\n"}) == {"recipe/a.yaml": "same"}


def test_a_diff_has_the_names_that_git_apply_takes(tmp_path: Path) -> None:
    apply(tmp_path, {A: "old\n"})

    (change,) = compare(tmp_path, {A: "new\n"})

    assert change.diff() == "--- a/recipe/a.yaml\n+++ b/recipe/a.yaml\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize("record", ["[]", "{", '{"a": 1}', "\x00"])
def test_a_broken_record_is_reported(record: str, tmp_path: Path) -> None:
    (tmp_path / ".feedstock-tools").mkdir()
    (tmp_path / ".feedstock-tools" / "generated.json").write_text(record)

    with pytest.raises(InputError, match=r"generated\.json"):
        compare(tmp_path, {A: "a\n"})


def test_a_record_cannot_make_it_delete_files_elsewhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    feedstock = tmp_path / "feedstock"
    (feedstock / ".feedstock-tools").mkdir(parents=True)
    (feedstock / ".feedstock-tools" / "generated.json").write_text(json.dumps({"../outside": "0"}))

    with pytest.raises(InputError, match="leads out of the feedstock"):
        apply(feedstock, {}, force=True)

    assert outside.exists()


def test_a_link_out_of_the_feedstock_is_not_followed(tmp_path: Path) -> None:
    feedstock = tmp_path / "feedstock"
    feedstock.mkdir()
    (feedstock / "recipe").symlink_to(tmp_path)

    with pytest.raises(InputError, match="leads out of the feedstock"):
        apply(feedstock, {A: "a\n"})


def test_a_failed_write_leaves_the_old_file_and_no_scraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(tmp_path, {B: "old\n"})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(WorkError, match="No space left on device"):
        apply(tmp_path, {B: "new\n"})

    assert (tmp_path / B).read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".feedstock-tools", "b.yml"]
