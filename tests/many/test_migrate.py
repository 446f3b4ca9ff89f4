"""A migration on many feedstocks: which get a branch, what its commit has, and what an interrupted run leaves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.git import commit_on_branch
from feedstock_tools.many.index import INDEX, opened_index
from tests.support import command
from tests.support.git import committed, git
from tests.support.workspaces import feedstock

PINNING = "libbase:\n- 1\nzlib:\n- 1\n"
MIGRATION = "__migrator:\n  kind: version\n  migration_number: 1\n  exclude: [left]\nmigrator_ts: 1\nzlib:\n- 2\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clones of `base`, of `app` and `left`, which build with it, and of `other`; the migration is about zlib."""
    for key in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{key}_NAME", "me")
        monkeypatch.setenv(f"{key}_EMAIL", "me@localhost")
    folder = tmp_path / "w"
    feedstock(folder / "base-feedstock", "base", host=("zlib",), makes=("libbase",))
    for name in ("app", "left"):
        feedstock(folder / f"{name}-feedstock", name, host=("zlib", "libbase"))
    feedstock(folder / "other-feedstock", "other", host=("xz",))
    for each in folder.iterdir():
        committed(each)
    (tmp_path / "pinning").mkdir()
    (tmp_path / "pinning/conda_build_config.yaml").write_text(PINNING)
    (tmp_path / "zlib2.yaml").write_text(MIGRATION)
    with opened_index(folder / INDEX, make=True) as index:
        assert {each.outcome for each in index.update(folder, 1)} == {"read"}
    return folder


def migrate(workspace: Path, *words: str) -> list[dict[str, str]]:
    top = workspace.parent
    options = ("--pinning", str(top / "pinning"), "--smithy", "none", "--json", *words)
    done = command.run(command.tool("many", "migrate", str(workspace), str(top / "zlib2.yaml"), *options))
    assert done.returncode == 0, done.stderr
    given = json.loads(done.stdout)
    assert given["verdict"] == "right"
    found: list[dict[str, str]] = given["feedstocks"]
    return found


def test_each_feedstock_that_needs_it_gets_one_commit_in_the_order_of_rebuilding(workspace: Path) -> None:
    before = {each.name: git(each, "rev-parse", "HEAD") for each in workspace.iterdir() if each.is_dir()}
    found = migrate(workspace)
    assert [(each["name"], each["outcome"]) for each in found] == [("base", "committed"), ("app", "committed")]
    base = workspace / "base-feedstock"
    assert git(base, "rev-parse", "zlib2~1") == before["base-feedstock"]
    subject, *body = git(base, "log", "-1", "--format=%B", "zlib2").splitlines()
    assert subject.startswith("MNT: Re-rendered with conda-smithy ")
    assert "zlib2.yaml: 3 jobs change" in body and any(line.endswith("zlib 1 -> 2") for line in body)
    names = git(base, "diff", "--name-only", "zlib2~1", "zlib2").split()
    assert {".ci_support/migrations/zlib2.yaml", ".ci_support/linux_64_.yaml", "recipe/meta.yaml"} <= {*names}
    assert "number: 1" in git(base, "show", "zlib2:recipe/meta.yaml")
    assert "- '2'" in git(base, "show", "zlib2:.ci_support/linux_64_.yaml")
    for each in workspace.glob("*-feedstock"):
        assert git(each, "status", "--porcelain") == "" and git(each, "rev-parse", "HEAD") == before[each.name]
    assert git(workspace / "left-feedstock", "branch", "--list", "zlib2") == ""


def test_an_interrupted_run_goes_on_and_some_can_be_left_out(workspace: Path) -> None:
    assert [each["name"] for each in migrate(workspace, "--first", "1")] == ["base"]
    assert [(each["name"], each["outcome"]) for each in migrate(workspace)] == [("base", "done"), ("app", "committed")]
    assert migrate(workspace, "--new-branch", "again", "--exclude", "base", "--only", "base") == []
    assert [each["outcome"] for each in migrate(workspace, "--new-branch", "again", "--dry-run")] == [
        "needed",
        "needed",
    ]
    assert git(workspace / "base-feedstock", "branch", "--list", "again") == ""


@pytest.fixture
def identity() -> dict[str, str]:
    known = command.environment()
    names = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**known, **names}


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "kept").write_text("1\n")
    (folder / "gone").write_text("1\n")
    committed(folder)
    yield folder


def test_a_commit_on_a_branch_has_the_files_and_their_modes(repository: Path, identity: dict[str, str]) -> None:
    hook = repository / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    files = {'odd "name"\\\n': (b"data\n", False), "sub/run.sh": (b"\0", True), "gone": None}
    commit = commit_on_branch(repository, "new/branch", files, "say\n\nmore é", identity)
    hook.unlink()
    assert git(repository, "rev-parse", "new/branch").strip() == commit
    listed = git(repository, "ls-tree", "-r", "-z", "new/branch").split("\0")[:-1]
    assert {line.split("\t")[1]: line.split()[0] for line in listed} == {
        "kept": "100644",
        'odd "name"\\\n': "100644",
        "sub/run.sh": "100755",
    }
    assert git(repository, "log", "-1", "--format=%an %B", "new/branch").strip() == "me say\n\nmore é"
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(InputError, match="the branch new/branch exists"):
        commit_on_branch(repository, "new/branch", {}, "again", identity)


@pytest.mark.parametrize("branch", ["-x", "a\nb", "", "a b"])
def test_what_is_no_name_of_a_branch_is_refused(repository: Path, identity: dict[str, str], branch: str) -> None:
    with pytest.raises(InputError, match="is not a name of a branch"):
        commit_on_branch(repository, branch, {}, "m", identity)


def test_what_git_refuses_leaves_no_branch(repository: Path, identity: dict[str, str]) -> None:
    with pytest.raises(WorkError, match="git fast-import failed"):
        commit_on_branch(repository, "b..c", {}, "m", identity)
    assert git(repository, "branch", "--list", "b*") == ""


def test_a_run_that_is_killed_again_and_again_leaves_each_branch_whole_or_none(workspace: Path) -> None:
    top = workspace.parent
    options = ("--pinning", str(top / "pinning"), "--smithy", "none")
    words = command.tool("many", "migrate", str(workspace), str(top / "zlib2.yaml"), *options)
    for tenths in (3, 6, 9, 12, 15):
        run = command.start(words)
        try:
            run.communicate(timeout=tenths / 10)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
    found = migrate(workspace)
    assert [each["name"] for each in found] == ["base", "app"]
    for name in ("base", "app"):
        folder = workspace / f"{name}-feedstock"
        assert git(folder, "rev-list", "--count", "HEAD..zlib2").strip() == "1"
        assert "number: 1" in git(folder, "show", "zlib2:recipe/meta.yaml")
        git(folder, "fsck", "--strict")
        assert git(folder, "status", "--porcelain") == ""
