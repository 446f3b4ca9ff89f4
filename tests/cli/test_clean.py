"""`clean`: what it finds, what it leaves alone, and what it needs to be told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.feedstock.cleaning import KINDS, find_removable, remove_all
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.locks import Locks
from tests.support import command
from tests.support.feedstocks import CPU, GPU, HERE, TinyFeedstock
from tests.support.needs import needs

BUILT = f"{GPU}_py3.11"


def cleaned(feedstock: TinyFeedstock, *arguments: str, status: int = 0) -> dict[str, Any]:
    """What `clean --json` says."""
    run = feedstock.ask("clean", "--json", *arguments)
    assert run.returncode == status, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def kinds(found: dict[str, Any]) -> dict[str, set[str]]:
    """Kind → the names of what was found."""
    listed: dict[str, set[str]] = {}
    for item in found["items"]:
        listed.setdefault(item["kind"], set()).add(Path(item["path"]).name)
    return listed


def failed(feedstock: TinyFeedstock) -> Path:
    """The work folder that a failed build leaves."""
    feedstock.edit("recipe/build-library.sh", "mkdir", "exit 3\nmkdir")
    assert feedstock.build(f"{CPU}_py3.11").returncode == 1
    feedstock.edit("recipe/build-library.sh", "exit 3\n", "")
    (folder,) = (path for path in (feedstock.artifacts / ".work").iterdir() if path.name != "locks")
    return folder


def test_packages_logs_and_the_ledger_stay_unless_they_are_asked_for(gpu_feedstock: TinyFeedstock) -> None:
    work = failed(gpu_feedstock)
    found = kinds(cleaned(gpu_feedstock, "--dry-run"))
    assert found == {"work": {work.name}, "caches": {".cache", "pkg_cache", "src_cache"}}
    assert work.is_dir()
    done = cleaned(gpu_feedstock, "--yes")
    assert done["removed_bytes"] == done["bytes"] > 0
    assert not work.exists()
    left = {path.name for path in gpu_feedstock.artifacts.iterdir()} - {".lock", ".work", ".gitignore"}
    assert left == {"ledger.sqlite", HERE.subdir, "logs", "noarch"}
    assert cleaned(gpu_feedstock, "--yes")["items"] == []
    assert "Nothing to do" in gpu_feedstock.build(BUILT).stdout
    more = kinds(cleaned(gpu_feedstock, "--yes", "--packages", "--logs", "--ledger", "--shared"))
    assert more["ledger"] == {"ledger.sqlite"}
    assert more["logs"] == {"logs"}
    assert more["packages"] == {HERE.subdir, "noarch"}
    assert gpu_feedstock.build(BUILT).returncode == 0
    assert len(gpu_feedstock.packages()) == 4


def test_what_a_build_uses_now_stays(gpu_feedstock: TinyFeedstock) -> None:
    with Locks.wait_for(Artifacts(gpu_feedstock.artifacts).locks, ["row of a build"]):
        done = cleaned(gpu_feedstock, "--yes", "--ledger", status=1)
    assert {item["kept"] for item in done["items"]} == {"a build is using it"}
    assert done["removed_bytes"] == 0
    assert (gpu_feedstock.artifacts / "pkg_cache").is_dir()
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        assert len(ledger.builds()) == 4


def test_nothing_is_removed_without_consent(gpu_feedstock: TinyFeedstock) -> None:
    run = gpu_feedstock.ask("clean")
    assert run.returncode == 2
    assert "pkg_cache" in run.stdout
    assert "--yes removes without asking, --dry-run only lists" in run.stderr
    both = gpu_feedstock.ask("clean", "--yes", "--dry-run")
    assert both.returncode == 2
    assert "exclude each other" in both.stderr
    assert (gpu_feedstock.artifacts / "pkg_cache").is_dir()


@needs("system", hasattr(os, "openpty"), "a pseudo-terminal")
@pytest.mark.parametrize(("answer", "stays"), [("n", True), ("y", False)])
def test_in_a_terminal_it_asks(gpu_feedstock: TinyFeedstock, answer: str, stays: bool) -> None:
    ours, theirs = os.openpty()
    os.write(ours, f"{answer}\n".encode())
    run = command.run(command.tool("clean"), gpu_feedstock.folder, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert "Remove all of this?" in run.stderr
    assert (gpu_feedstock.artifacts / "pkg_cache").is_dir() == stays


def test_without_a_feedstock_only_the_users_cache_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "here" / "build_artifacts" / "pkg_cache").mkdir(parents=True)
    cache = Path(os.environ["XDG_CACHE_HOME"], "feedstock-tools")
    (cache / "ziglang" / "cache").mkdir(parents=True, exist_ok=True)
    run = command.run(command.tool("clean", "--dry-run", "--shared", "--json"), tmp_path / "here")
    found = json.loads(run.stdout)["items"]
    assert str(cache / "ziglang") in {item["path"] for item in found}
    assert not any("pkg_cache" in item["path"] for item in found)


@pytest.mark.usefixtures("within_limits")
def test_the_work_of_a_killed_build_goes_with_the_next_one(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    program = """
import os, signal
from feedstock_tools.builds.runs import building
building._build = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""
    run = command.run(feedstock.patched_build(program, f"{CPU}_py3.11"), feedstock.folder)
    assert run.returncode == -9
    work = [path for path in (feedstock.artifacts / ".work").iterdir() if path.name != "locks"]
    assert len(work) == 1
    assert feedstock.build(f"{GPU}_py3.11").returncode == 0
    assert not work[0].exists()


def environment(place: Path, home: Path, checkout: Path) -> Path:
    """An environment as pip leaves it, for a checkout."""
    record = place / "lib" / "python3.11" / "site-packages" / "feedstock_tools-1.dist-info" / "direct_url.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}}))
    (place / "pyvenv.cfg").write_text(f"home = {home}\nversion = 3.11\n")
    return place


def test_environments_are_old_without_their_checkout_or_python(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "feedstock-tools" / "environments"
    (tmp_path / "checkout").mkdir()
    environment(cache / "a" / "build-3.11", tmp_path, tmp_path / "checkout")
    without = environment(cache / "b" / "build-3.11", tmp_path, tmp_path / "gone")
    pythonless = environment(cache / "a" / "build-3.10", tmp_path / "gone", tmp_path / "checkout")
    (cache / "a" / "build-3.9").mkdir()
    machine = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = find_removable(None, None, machine, ["environments"])
    assert {each.path for each in found} == {without, pythonless}
    assert all(each.removed for each in remove_all(found, None))
    assert (cache / "a" / "build-3.11" / "pyvenv.cfg").is_file()


@pytest.mark.usefixtures("within_limits")
def test_leftovers_of_killed_commands_are_found_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    mark = subprocess.run(
        [sys.executable, "-c", "from feedstock_tools.files.temporary import own_mark; print(own_mark())"],
        env=command.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    name = f".{mark}.part"
    root = tmp_path / "feedstock"
    places = [
        *("recipe", ".ci_support", ".github/workflows", "build_artifacts", "build_artifacts/linux-64"),
        *("build_artifacts/built-on-stand-in/noarch", "build_artifacts/.cache/recipe-v1", "build_artifacts/logs"),
    ]
    for place in places:
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / name).write_text("half")
    (tmp_path / "tmp" / f"feedstock-tools-{mark}").mkdir()
    cache = tmp_path / "cache" / "feedstock-tools"
    for place in (".", "conda-forge-pinning", "stand-in/0123", "ziglang"):
        (cache / place / name).mkdir(parents=True)
    machine = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = find_removable(root, Artifacts(root / "build_artifacts"), machine, ["leftovers"])
    assert len(found) == len(places) + 1 + 4
    assert all(each.removed for each in remove_all(found, Artifacts(root / "build_artifacts")))
    assert not list(tmp_path.rglob("*.part"))


def test_a_folder_that_cannot_be_removed_is_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "pkg_cache").mkdir(parents=True)
    found = find_removable(tmp_path, Artifacts(tmp_path / "a"), {"HOME": str(tmp_path)}, ["caches"])

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    (kept,) = remove_all(found, Artifacts(tmp_path / "a"))
    assert (kept.removed, kept.kept) == (False, "Permission denied")
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "a")
    assert remove_all(found, None)[0].removed
    assert set(KINDS) >= {each.kind for each in found}
