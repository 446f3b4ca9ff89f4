"""One ledger and one channel of what the jobs of a CI service made."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.publish.collect import Collected, collect
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import Feedstock as Own
from feedstock_tools.feedstock.layout import Artifacts
from tests.support.feedstocks import GPU, HERE, TinyFeedstock


def part(feedstock: TinyFeedstock, folder: Path) -> Path:
    """What a job uploads of its artifacts: not its caches."""
    ignored = shutil.ignore_patterns("pkg_cache", "src_cache", ".cache", ".work", ".lock")
    return Path(shutil.copytree(feedstock.artifacts, folder, ignore=ignored))


def test_jobs_on_machines_of_their_own_make_one_matrix(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    part(gpu_feedstock, tmp_path / "parts" / "part-001")
    assert gpu_feedstock.build(f"{HERE.name}_cpu").returncode == 0
    part(gpu_feedstock, tmp_path / "parts" / "part-002")
    wanted = gpu_feedstock.packages()
    shutil.rmtree(gpu_feedstock.artifacts)
    run = gpu_feedstock.run("collect", str(tmp_path / "parts"))
    assert run.returncode == 0, run.stderr
    assert gpu_feedstock.packages() == wanted
    index = json.loads((gpu_feedstock.artifacts / HERE.subdir / "repodata.json").read_text())
    assert sorted(index["packages.conda"]) == sorted(
        path.name for path in gpu_feedstock.artifacts.glob(f"{HERE.subdir}/*.conda")
    )
    status = gpu_feedstock.run("status", "--json", "--channel", str(gpu_feedstock.channel))
    states = {each["short_name"]: (each["done"], each["total"]) for each in json.loads(status.stdout)["configurations"]}
    assert states[f"{HERE.name}_cpu"][0] == states[f"{HERE.name}_cpu"][1] > 0
    assert states[GPU] == (4, 7)
    assert "Nothing to do" in gpu_feedstock.build(f"{GPU}_py3.11").stdout


def test_a_second_time_does_nothing(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    source = part(gpu_feedstock, tmp_path / "part")
    target = Artifacts(tmp_path / "target")
    assert collect([source], target) == Collected(folders=1, builds=4, tests=0, packages=4, known=0)
    assert collect([source], target) == Collected(folders=1, builds=0, tests=0, packages=0, known=4)


@pytest.mark.parametrize(
    ("cut_off", "recorded", "present"),
    [("Ledger.promise", [], 0), ("add_packages", ["running"] * 4, 0), ("Ledger.finish", ["running"] * 4, 4)],
)
def test_a_call_that_was_cut_off_is_taken_up(
    gpu_feedstock: TinyFeedstock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cut_off: str,
    recorded: list[str],
    present: int,
) -> None:
    """Every output recorded as done is there, wherever the call was cut off."""
    source = part(gpu_feedstock, tmp_path / "part")
    target = Artifacts(tmp_path / "target")
    promise = Ledger.finish
    with monkeypatch.context() as broken:
        if cut_off == "Ledger.finish":  # which `promise` calls too
            broken.setattr(Ledger, "promise", promise)
        broken.setattr(
            f"feedstock_tools.builds.publish.collect.{cut_off}",
            lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            collect([source], target)
    with Ledger(target.ledger) as ledger:
        assert [record.result for record in ledger.builds()] == recorded
    assert len(list(target.root.glob("*/*.conda"))) == present
    collect([source], target)
    with Ledger(target.ledger) as ledger:
        assert [record.result for record in ledger.builds()] == ["done"] * 4
        assert all(ledger.done(record.identity) for record in ledger.builds())


def test_a_call_that_was_cut_off_before_the_index_is_taken_up(
    gpu_feedstock: TinyFeedstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Artifacts(tmp_path / "target")
    source = part(gpu_feedstock, tmp_path / "part")

    def copied_and_killed(folder: Path, packages: list[Path], **_: object) -> None:
        for package in packages:
            place = folder / package.parent.name / package.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package, place)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("feedstock_tools.builds.publish.collect.add_packages", copied_and_killed)
        with pytest.raises(KeyboardInterrupt):
            collect([source], target)
    collect([source], target)
    (index,) = target.root.glob(f"**/{HERE.subdir}/repodata.json")
    assert sorted(json.loads(index.read_text())["packages.conda"]) == sorted(
        path.name for path in index.parent.glob("*.conda")
    )


def test_builds_are_recorded_together(
    gpu_feedstock: TinyFeedstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction waits for the disk, so that their number must not grow with that of the builds."""
    source = part(gpu_feedstock, tmp_path / "part")
    said: list[str] = []
    connect = sqlite3.connect

    def traced(path: Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(path, **options)
        connection.set_trace_callback(said.append)
        return connection

    Ledger(tmp_path / "target" / "ledger.sqlite").close()
    with monkeypatch.context() as watched:
        watched.setattr(sqlite3, "connect", traced)
        assert collect([source], Artifacts(tmp_path / "target")).builds == 4
    words = [statement.split()[0] for statement in said]
    assert words.count("BEGIN") == words.count("COMMIT") == 3
    within = False
    for word in words:
        within = word == "BEGIN" or (within and word != "COMMIT")
        assert within or word not in {"INSERT", "UPDATE"}


def test_logs_and_environments_come_along(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    target = Artifacts(tmp_path / "target")
    collect([part(gpu_feedstock, tmp_path / "part")], target)
    with Ledger(target.ledger) as ledger:
        builds = ledger.builds()
        assert all((target.root / record.log).is_file() for record in builds)
        assert any(ledger.environments(record.id or 0) for record in builds)


def test_a_tampered_package_is_refused_and_nothing_taken_over(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    source = part(gpu_feedstock, tmp_path / "part")
    path = next(source.glob("*/libtiny-*.conda"))
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    target = Artifacts(tmp_path / "target")
    with pytest.raises(WorkError, match=r"libtiny-.*its sha256 differs"):
        collect([source], target)
    assert not list(target.root.glob("*/*.conda"))
    with Ledger(target.ledger) as ledger:
        assert ledger.builds() == ()


def again(feedstock: TinyFeedstock, folder: Path) -> Path:
    """The first output of the same configuration built on another machine: a package with the same name."""
    shutil.rmtree(feedstock.artifacts)
    feedstock.keep_outputs(1)
    assert feedstock.build(f"{GPU}_py3.11").returncode == 0
    return part(feedstock, folder)


def test_of_builds_from_the_same_inputs_the_first_stays(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    """As jobs make them whose configurations share an output."""
    first = part(gpu_feedstock, tmp_path / "first")
    second = again(gpu_feedstock, tmp_path / "second")
    at_once, in_turn = Artifacts(tmp_path / "at-once"), Artifacts(tmp_path / "in-turn")
    assert collect([second, first], at_once) == Collected(2, builds=5, tests=0, packages=4, known=0, again=1)
    collect([first], in_turn)
    assert collect([second], in_turn) == Collected(1, builds=1, tests=0, packages=0, known=0, again=1)
    packages = {path.name: path.read_bytes() for path in first.glob("*/*.conda")}
    for target in (at_once, in_turn):
        assert {path.name: path.read_bytes() for path in target.root.glob("*/*.conda")} == packages
        assert collect([first, second], target).builds == 0


def test_two_packages_of_one_name_from_other_inputs_are_refused(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    first = part(gpu_feedstock, tmp_path / "first")
    gpu_feedstock.edit("recipe/build-library.sh", "mkdir", "# other\nmkdir")
    second = again(gpu_feedstock, tmp_path / "second")
    with pytest.raises(WorkError, match="built twice, with different contents"):
        collect([first, second], Artifacts(tmp_path / "target"))


def of_another(feedstock: TinyFeedstock, folder: Path) -> Path:
    """Artifacts of a feedstock with the same configurations and other outputs, whose builds failed."""
    source = part(feedstock, folder)
    with closing(sqlite3.connect(source / "ledger.sqlite")) as database, database:
        database.execute("UPDATE builds SET output = 'other-' || output, result = 'failed'")
        database.execute("DELETE FROM packages")
    return source


def test_what_another_feedstock_built_is_refused(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    source = of_another(gpu_feedstock, tmp_path / "other")
    shutil.rmtree(gpu_feedstock.artifacts)
    run = gpu_feedstock.run("collect", str(source))
    assert run.returncode == 2
    assert f"{source / 'ledger.sqlite'}: belongs to another feedstock: it built other-libtiny" in run.stderr
    assert not list(gpu_feedstock.artifacts.glob("*/*.conda"))


def test_what_was_built_for_configurations_that_are_gone_is_taken_over(
    gpu_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    source = part(gpu_feedstock, tmp_path / "part")
    for path in (gpu_feedstock.folder / ".ci_support").glob("*cuda11*"):
        path.unlink()
    assert collect([source], Artifacts(tmp_path / "target"), Own(gpu_feedstock.folder)).builds == 4


def test_outputs_that_the_own_ledger_knows_are_the_own(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    source = of_another(gpu_feedstock, tmp_path / "renamed")
    target = Artifacts(tmp_path / "target")
    assert collect([source], target).builds == 4
    assert collect([source], target, Own(gpu_feedstock.folder)).known == 4


def test_nothing_is_refused_where_the_recipe_cannot_be_read(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    source = of_another(gpu_feedstock, tmp_path / "other")
    gpu_feedstock.edit("recipe/recipe.yaml", "outputs:", "outputs: [")
    assert collect([source], Artifacts(tmp_path / "target"), Own(gpu_feedstock.folder)).builds == 4


def test_a_folder_without_a_ledger_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no artifacts folder to collect from"):
        collect([tmp_path], Artifacts(tmp_path / "target"))
