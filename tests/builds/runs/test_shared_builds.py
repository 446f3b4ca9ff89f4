"""What several rows and outputs inherit is built once, kept until all of them are done, and then removed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from feedstock_tools.builds.engines.contract import Built
from feedstock_tools.builds.engines.embedded.fixed_place import is_possible
from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.runs.row_build import shared_lock
from feedstock_tools.builds.runs.shared import seal
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.properties import KINDS
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.locks import Locks
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.rows import made_up_shared
from tests.support.serving import files, serving
from tests.support.sharing import BY_PLACE, contents, differing, runs, with_shared_build
from tests.support.waiting import processes_below, wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", is_possible(), "one that allows a process mounts of its own"),
]
CPU = f"{HERE.name}_cpu"
#: Statements after which each heir runs the staging output by itself.
ALONE = "from feedstock_tools.builds.engines.embedded.engine import RattlerBuild\nRattlerBuild.keeps_shared = False"


@pytest.fixture
def counted(feedstock: TinyFeedstock) -> TinyFeedstock:
    return with_shared_build(feedstock)


def kept(feedstock: TinyFeedstock) -> list[str]:
    """The shared builds on the disk."""
    return sorted(path.name for path in (feedstock.artifacts / ".work" / "shared").glob("*"))


def records(feedstock: TinyFeedstock) -> list[tuple[str, str]]:
    return [(record.output, record.result) for record in feedstock.records()]


def test_rows_share_a_staging_output(counted: TinyFeedstock) -> None:
    planned = json.loads(counted.ask("plan", CPU, "--json", "--channel", str(counted.channel)).stdout)
    shared, *rows = planned["todo"]
    assert shared["builds"][0].startswith("compiled-shared-")
    assert [row["configuration"] for row in rows] == [shared["configuration"]] * 2
    run = counted.build(CPU, "--jobs", "2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert runs(counted) == ["shared", "heir", "heir"]
    assert len(counted.packages()) == 4
    assert kept(counted) == []
    assert records(counted)[0] == ("compiled", "done")
    record = counted.records()[0]
    assert record.seconds
    assert "shared" in (counted.artifacts / record.log).read_text()
    assert "Nothing to do" in counted.build(CPU).stdout


def test_a_package_of_an_heir_is_the_one_that_its_own_staging_would_give(
    counted: TinyFeedstock, tmp_path: Path
) -> None:
    """But for the path of the build, and the recipe as the engine was given it."""
    assert counted.build(CPU).returncode == 0
    first = tmp_path / "first"
    counted.artifacts.rename(first)
    again = command.run(counted.patched_build(ALONE, CPU), counted.folder)
    assert again.returncode == 0, again.stdout + again.stderr
    packages = [path for path in counted.artifacts.glob("*/*.conda") if path.parent.name != "pkgs"]
    assert len(packages) == 4
    for path in packages:
        made = contents(first / path.parent.name / path.name, tmp_path / "made" / path.stem)
        expected = contents(path, tmp_path / "expected" / path.stem)
        assert differing(made, expected) <= BY_PLACE, path.name
        assert b"/unit/" not in expected["info/recipe/rendered_recipe.yaml"]
        assert str(counted.channel).encode() not in made["info/recipe/rendered_recipe.yaml"]


def test_a_later_row_finds_what_an_earlier_one_had_built(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    assert len(kept(counted)) == 1
    status = counted.ask("status", CPU, "--channel", str(counted.channel)).stdout
    assert "Kept until all rows that inherit from it are done:\n  compiled-shared-" in status
    assert "3 of 4" in status
    assert counted.build(f"{CPU}_py3.12").returncode == 0
    assert runs(counted) == ["shared", "heir", "heir"]
    assert kept(counted) == []


def test_a_heir_that_fails_leaves_the_shared_build_for_its_next_attempt(counted: TinyFeedstock) -> None:
    counted.edit("recipe/recipe.yaml", "test -f objects/one.o", "test ! -f $RECIPE_DIR/../broken")
    (counted.folder / "broken").touch()
    assert counted.build(CPU, "--jobs", "2").returncode == 1
    assert len(kept(counted)) == 1
    (counted.folder / "broken").unlink()
    assert counted.build(CPU, "--jobs", "2").returncode == 0
    assert runs(counted).count("shared") == 1
    assert kept(counted) == []


@pytest.mark.parametrize(
    ("module", "name"), [("builds.runs.shared", "_contents"), ("builds.engines.embedded.engine", "request_file")]
)
def test_a_full_disk_ends_the_build_with_a_reason(counted: TinyFeedstock, module: str, name: str) -> None:
    full = (
        f"import feedstock_tools.{module} as module\n"
        "def full(*_):\n    raise OSError(28, 'No space left on device')\n"
        f"module.{name} = full"
    )
    run = command.run(counted.patched_build(full, f"{CPU}_py3.11"), counted.folder)
    assert (run.returncode, run.stderr) == (1, "")
    assert "No space left on device" in run.stdout
    assert records(counted) == [("compiled", "failed")]


def test_no_row_begins_after_the_shared_build_failed(counted: TinyFeedstock) -> None:
    counted.edit("recipe/recipe.yaml", "cp part.txt", "false; cp part.txt")
    run = counted.build(CPU, "--jobs", "2")
    assert run.returncode == 1
    assert "FAILED: compiled-shared-" in run.stdout
    assert records(counted) == [("compiled", "failed")]
    assert kept(counted) != []
    (state,) = json.loads(counted.ask("status", CPU, "--json", "--channel", str(counted.channel)).stdout)[
        "configurations"
    ]
    assert state["state"] == "failed"
    assert [(shared["name"], shared["state"]) for shared in state["shared"]] == [("compiled", "failed")]
    assert not list((counted.artifacts / ".work" / "shared").glob("*/sealed.json"))


def test_an_environment_of_a_heir_without_solution_is_explained(counted: TinyFeedstock) -> None:
    counted.edit("recipe/recipe.yaml", "      run: [", "      host: [python, no-such-package]\n      run: [")
    run = counted.build(f"{CPU}_py3.11")
    assert run.returncode == 1
    assert "no channel has 'no-such-package'" in run.stdout


def test_the_environments_of_a_shared_build_are_recorded(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    with Ledger(counted.artifacts / "ledger.sqlite") as ledger:
        record, *_ = ledger.builds()
        (environment,) = ledger.environments(record.id or 0)
    assert environment.environment == "build"
    assert [package.name for package in environment.packages] == ["tiny-compiler"]


def test_an_output_without_shared_files_is_built_as_ever_after_heirs(counted: TinyFeedstock) -> None:
    text = (counted.folder / "recipe" / "recipe.yaml").read_text()
    plain = (
        "  - package: {name: plain-counted}\n"
        '    build: {script: [mkdir -p $PREFIX/etc, "echo $PKG_HASH $channel_sources > $PREFIX/etc/plain"]}\n'
        "    requirements: {host: [\"${{ pin_subpackage('libcounted', exact=True) }}\"]}\n"
    )
    (counted.folder / "recipe" / "recipe.yaml").write_text(text + plain)
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    (package,) = counted.artifacts.glob("*/plain-counted-*.conda")
    files = contents(package, counted.folder.parent / "plain")
    assert files["info/recipe/recipe.yaml"].decode() == text + plain
    hashed = package.stem.rpartition("-")[2].removesuffix("_0")
    assert files["etc/plain"].decode() == f"{hashed} conda-forge\n"


def test_another_recipe_is_another_shared_build(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    (counted.folder / "src" / "part.txt").write_text("another part\n")
    assert counted.build(f"{CPU}_py3.12").returncode == 0
    assert runs(counted).count("shared") == 2


@pytest.mark.parametrize("is_served", [True, False], ids=["served", "folder"])
@pytest.mark.parametrize(("version", "shared_runs"), [("99", 2), ("0.1", 1)])
def test_a_shared_build_runs_again_if_its_environments_would_have_other_packages(
    counted: TinyFeedstock, tmp_path: Path, version: str, shared_runs: int, is_served: bool
) -> None:
    folder = shutil.copytree(counted.channel, tmp_path / "channel")
    with serving(files(folder)) as address:
        used = replace(counted, channel=address if is_served else folder)
        assert used.build(f"{CPU}_py3.11").returncode == 0
        write_package(folder, PackageMetadata("tiny-compiler", version, "0", 0, HERE.subdir))
        index_channel(folder)
        run = used.build(f"{CPU}_py3.12")
    assert run.returncode == 0, run.stdout + run.stderr
    said = "compiled is built again: the channels now have tiny-compiler 99 0 (build) for it"
    assert (said in run.stdout + run.stderr) == (shared_runs == 2)
    assert runs(counted).count("shared") == shared_runs


def test_a_shared_build_runs_again_if_a_folder_has_another_package_of_the_same_name(
    counted: TinyFeedstock, tmp_path: Path
) -> None:
    used = replace(counted, channel=tmp_path / "channel")
    compiler = PackageMetadata("tiny-compiler", "99", "0", 0, HERE.subdir)
    for text, python, shared_runs in ((b"one", "3.11", 1), (b"another", "3.12", 2)):
        shutil.rmtree(tmp_path / "channel", ignore_errors=True)
        folder = shutil.copytree(counted.channel, tmp_path / "channel")
        write_package(folder, compiler, [PackageFile("share/text", text)])
        index_channel(folder)
        assert used.build(f"{CPU}_py{python}").returncode == 0
        assert runs(counted).count("shared") == shared_runs


def test_a_shared_build_that_an_edit_has_replaced_is_removed(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    (counted.folder / "src" / "part.txt").write_text("another part\n")
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    assert len(kept(counted)) == 1


def test_a_shared_build_that_another_run_makes_again_is_not_removed(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    sealed = json.loads(next((counted.artifacts / ".work" / "shared").glob("*/sealed.json")).read_text())
    with Locks.take(counted.artifacts / ".work" / "locks", [shared_lock(sealed["identity"])]) or pytest.fail():
        assert counted.build(f"{CPU}_py3.12").returncode == 0
        assert len(kept(counted)) == 1
    assert counted.build(CPU).returncode == 0
    assert kept(counted) == []


DAMAGES: dict[str, Callable[[Path], object]] = {
    "sealed.json": Path.unlink,
    "staging_*/prefix/share/part.txt": Path.unlink,
    "staging_*/prefix/share/version.txt": lambda file: file.write_text("2.0 0\n"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shared_build_makes_no_package(counted: TinyFeedstock, damage: str) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    (file,) = (counted.artifacts / ".work" / "shared").glob(f"*/{damage}")
    DAMAGES[damage](file)
    run = counted.build(f"{CPU}_py3.12")
    if damage != "sealed.json":  # the seal is intact, so it is found when the row begins
        assert run.returncode == 1
        assert "the shared build of compiled was removed or changed" in run.stdout
        run = counted.build(f"{CPU}_py3.12")
    assert run.returncode == 0, run.stdout + run.stderr
    assert runs(counted).count("shared") == 2


@pytest.fixture
def slow(counted: TinyFeedstock) -> TinyFeedstock:
    """The same, whose scripts wait while there is a file `wait-shared` or `wait-heir`."""
    for kind in ("shared", "heir"):
        wait = f"while test -e {counted.folder}/wait-{kind}; do sleep 0.1; done"
        counted.edit("recipe/recipe.yaml", f"echo {kind} >> {counted.folder}/runs.txt", f"{{}} && {wait}")
        counted.edit("recipe/recipe.yaml", "{} &&", f"echo {kind} >> {counted.folder}/runs.txt &&")
    return counted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(("killed", "shared_runs"), [("shared", 2), ("heir", 1)])
def test_a_killed_run_loses_only_what_ran(slow: TinyFeedstock, number: int, killed: str, shared_runs: int) -> None:
    waiting = slow.folder / f"wait-{killed}"
    waiting.touch()
    run = slow.start_build(CPU, "--jobs", "2")
    wait_until(lambda: run.poll() is not None or ((slow.folder / "runs.txt").exists() and killed in runs(slow)))
    run.send_signal(number)
    run.communicate()
    wait_until(lambda: not processes_below(slow.artifacts))
    waiting.unlink()
    again = slow.build(CPU, "--jobs", "2")
    assert again.returncode == 0, again.stdout + again.stderr
    assert runs(slow).count("shared") == shared_runs
    assert len(slow.packages()) == 4


def test_two_runs_share_it(slow: TinyFeedstock) -> None:
    (slow.folder / "wait-shared").touch()
    both = [slow.start_build(f"{CPU}_py{python}") for python in ("3.11", "3.12")]
    wait_until(lambda: (slow.folder / "runs.txt").exists())
    (slow.folder / "wait-shared").unlink()
    for run in both:
        output, _ = run.communicate()
        assert run.returncode == 0, output
    assert runs(slow).count("shared") == 1
    assert len(slow.packages()) == 4
    assert kept(slow) == []


def test_clean_removes_it(counted: TinyFeedstock) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    (folder,) = (counted.artifacts / ".work" / "shared").iterdir()
    assert str(folder) in counted.ask("clean", "--dry-run").stdout
    assert counted.ask("clean", "--yes").returncode == 0
    assert kept(counted) == []
    assert counted.build(f"{CPU}_py3.12").returncode == 0
    assert runs(counted).count("shared") == 2


def test_the_disk_has_a_shared_build_before_its_seal_and_the_name_of_that_before_the_ledger_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts, wanted = Artifacts(tmp_path), made_up_shared("compiled")[0].wanted
    folder = artifacts.shared(wanted.identities["compiled"])
    (folder / "work").mkdir(parents=True)
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(file: int) -> None:
        steps.append(f"fsync {Path(f'/proc/self/fd/{file}').readlink().name}")
        fsync(file)

    def renamed(path: Path, target: Path) -> Path:
        steps.append(f"rename {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "sync", lambda: steps.append(f"sync {len(list(folder.iterdir()))}"))
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    ledger = SimpleNamespace(promise=lambda *_: steps.append("promise"), finish=lambda *_: steps.append("finish"))
    build: Any = SimpleNamespace(
        row=SimpleNamespace(wanted=wanted),
        site=SimpleNamespace(artifacts=artifacts),
        station=SimpleNamespace(ledger=ledger, channels=SimpleNamespace(urls=(), properties=KINDS[0])),
        environments=None,
        running=BuildRecord("", "", "", "compiled", "running", "", "", "", ()),
        guard=SimpleNamespace(peak=None),
        records=[],
        refuse_changed=lambda _: None,
    )
    request: Any = SimpleNamespace(output=tmp_path)
    seal(build, Built("compiled", folder, 1.0), request)
    assert steps == ["sync 2", "promise", "rename sealed.json", f"fsync {folder.name}", "finish"]
