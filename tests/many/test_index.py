"""The index of a folder of feedstocks: what it knows, what it reads again, and what it answers."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.many.index import INDEX, Updated, opened_index
from tests.support import command
from tests.support.workspaces import feedstock, workspace


def updated(folder: Path) -> dict[str, str]:
    """What an update does with each feedstock."""
    with opened_index(folder / INDEX, make=True) as index:
        return {each.name: each.outcome for each in index.update(folder, 1)}


def names(folder: Path, **asked: object) -> list[str]:
    with opened_index(folder / INDEX) as index:
        return [each.name for each in index.find(**asked)]  # type: ignore[arg-type]


def test_feedstocks_are_found_by_what_they_use_require_and_make(tmp_path: Path) -> None:
    workspace(tmp_path)
    assert set(updated(tmp_path).values()) == {"read"}
    assert names(tmp_path) == ["app", "base", "gpu"]
    assert names(tmp_path, key="zlib") == ["base"]
    assert names(tmp_path, depends="libbase") == ["app", "gpu"]
    assert names(tmp_path, makes="libbase") == ["base"]
    assert names(tmp_path, cuda=True) == ["gpu"]
    assert names(tmp_path, cuda=True, key="zlib") == []
    assert names(tmp_path, form="recipe.yaml") == ["app"]
    with opened_index(tmp_path / INDEX) as index:
        (gpu,) = index.find(makes="gpu")
        assert (gpu.jobs, gpu.cuda, gpu.format) == (2, 1, "meta.yaml")
        words = {member.name: mentioned for member, mentioned, *_ in index.members()}
    assert {"zlib", "libbase"} <= words["base"] and "zlib" not in words["gpu"]


def test_only_what_has_changed_is_read_again_and_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    workspace(tmp_path)
    updated(tmp_path)
    assert set(updated(tmp_path).values()) == {"unchanged"}
    recipe = tmp_path / "base-feedstock" / "recipe" / "meta.yaml"
    recipe.write_text(recipe.read_text().replace("zlib", "bzip2"))
    (tmp_path / "gpu-feedstock").rename(tmp_path / "other-feedstock")
    assert updated(tmp_path) == {"app": "unchanged", "base": "read", "other": "read", "gpu": "gone"}
    assert names(tmp_path, depends="zlib") == []
    with sqlite3.connect(tmp_path / INDEX) as database:
        left = database.execute("SELECT count(*) FROM job WHERE feedstock NOT IN (SELECT id FROM feedstock)").fetchone()
    assert left == (0,)


def test_an_index_whose_making_was_interrupted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(tmp_path)
    with monkeypatch.context() as interrupted:
        interrupted.setattr("feedstock_tools.many.index._FORM", object())  # its insertion fails after the tables
        with pytest.raises(InputError):
            updated(tmp_path)
    assert set(updated(tmp_path).values()) == {"read"}


def test_of_a_repository_the_last_commit_counts_also_of_a_bare_one(tmp_path: Path) -> None:
    made = feedstock(tmp_path / "clones" / "base-feedstock", "base", host=("zlib",))
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=made, check=True)
    (tmp_path / "bare").mkdir()
    bare = tmp_path / "bare" / "conda-forge+base-feedstock" / "repo"
    subprocess.run(["git", "clone", "-q", "--bare", str(made), str(bare)], check=True)
    (made / "recipe" / "meta.yaml").write_text("not committed")
    for folder in (tmp_path / "clones", tmp_path / "bare"):
        assert updated(folder) == {"base": "read"}
        assert names(folder, depends="zlib") == ["base"]
        assert updated(folder) == {"base": "unchanged"}


def test_what_cannot_be_rendered_is_named_with_the_reason_and_stays_known(tmp_path: Path) -> None:
    made = feedstock(tmp_path / "base-feedstock", "base")
    (made / "recipe" / "meta.yaml").write_text("package: [")
    with opened_index(tmp_path / INDEX, make=True) as index:
        (found,) = index.update(tmp_path, 1)
        assert found.outcome == "refused" and "YAML" in found.reason
        assert list(index.update(tmp_path, 1)) == [Updated("base", "unchanged")]
        assert index.find()[0].error == found.reason


def test_another_file_is_no_index_and_is_not_touched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no index"), opened_index(tmp_path / "none"):
        pass
    with sqlite3.connect(tmp_path / "other") as database:
        database.execute("CREATE TABLE mine (a)")
    with pytest.raises(InputError, match="is no index"), opened_index(tmp_path / "other", make=True):
        pass
    assert (tmp_path / "other").stat().st_size > 0


def test_the_command_prints_a_table_and_values(tmp_path: Path) -> None:
    workspace(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return command.run(command.tool("many", *words), tmp_path, command.environment())

    made = run("index", ".", "--jobs", "2", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout) == {
        "verdict": "right",
        "checks": [{"name": name, "verdict": "right", "reason": ""} for name in ("app", "base", "gpu")],
        "index": INDEX,
        "read": 3,
        "unchanged": 0,
        "gone": 0,
        "refused": 0,
        "reasons": {},
    }
    shown = run("list", ".", "--cuda-jobs")
    assert [line.split() for line in shown.stdout.splitlines()][3][:4] == ["gpu", "meta.yaml", "2", "1"]
    (app,) = json.loads(run("list", ".", "--recipe", "recipe.yaml", "--json").stdout)["feedstocks"]
    assert (app["name"], app["jobs"]) == ("app", 1)
    assert run("list", "recipe").returncode == 2


def test_what_could_not_be_read_is_unknown_in_every_answer(tmp_path: Path) -> None:
    workspace(tmp_path)
    (tmp_path / "base-feedstock/recipe/meta.yaml").write_text("package: [")
    for words in (("index",), ("index",), ("list", "--key", "bzip2"), ("list", "--json")):
        asked = command.tool("many", words[0], str(tmp_path), *words[1:])
        shown = command.run(asked)
        if "--json" in words:
            found = json.loads(shown.stdout)
            assert found["verdict"] == "unknown"
            assert [each["name"] for each in found["checks"] if each["verdict"] == "unknown"] == ["base"]
        else:
            assert shown.stdout.startswith("1 of 3 readings could not be completed: base (")
        assert (shown.returncode, command.run([*asked, "--strict"]).returncode) == (0, 1)
