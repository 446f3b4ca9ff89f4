"""Commands that read a feedstock write nothing into it: they name outdated files, and `plan` looks ahead in a copy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.digests import digest_of_files
from tests.support import command
from tests.support.feedstocks import copy_of_example

READING = (
    ("status",),
    ("status", "--json"),
    ("test", "linux_64_cpu"),
    ("publish", "../published"),
    ("dossier",),
    ("plan",),
    ("plan", "--json"),
)


@pytest.fixture
def gpukernel(tmp_path: Path) -> Path:
    """A feedstock with a spec, whose generated files are as the spec says."""
    return copy_of_example("gpukernel", tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.here(*words, folder=folder)


def planned(folder: Path, channel: Path) -> Any:
    """What `plan --json` would build."""
    ran = run(folder, "plan", "--json", "--channel", str(channel))
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["todo"]


def notes(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in ran.stderr.splitlines() if line.startswith("note: ")]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_keeps_outdated_files_with_a_note(
    gpukernel: Path, tiny_channel: Path, words: tuple[str, ...]
) -> None:
    edit(gpukernel / "feedstock.yaml", "version: 1.0.0", "version: 1.0.1")
    before = digest_of_files([gpukernel])
    ran = run(gpukernel, *words, "--channel", str(tiny_channel))
    assert digest_of_files([gpukernel]) == before
    (note,) = notes(ran)
    assert "recipe/recipe.yaml" in note
    assert ("feedstock-tools generate" in note) == (words[0] != "plan")


@pytest.mark.parametrize("words", [words for words in READING if "--json" not in words], ids=" ".join)
def test_a_command_that_reads_says_nothing_of_files_that_are_up_to_date(
    gpukernel: Path, tiny_channel: Path, words: tuple[str, ...]
) -> None:
    assert notes(run(gpukernel, *words, "--channel", str(tiny_channel))) == []


def test_status_shows_the_files_as_they_are_until_they_are_updated(gpukernel: Path) -> None:
    edit(gpukernel / "feedstock.yaml", "versions: [11.8, 12.9, 13.0]", "versions: [12.9, 13.0]")
    first, again = run(gpukernel, "status"), run(gpukernel, "status")
    assert first.stdout == again.stdout
    assert first.stderr == again.stderr != ""
    assert "linux_64_cuda11.8" in first.stdout
    run(gpukernel, "generate")
    (note,) = notes(run(gpukernel, "status"))
    assert note.startswith("note: 1 file of .ci_support: outdated, since the recipe has changed")
    assert "feedstock-tools rerender" in note
    run(gpukernel, "rerender")
    updated = run(gpukernel, "status")
    assert "linux_64_cuda11.8" not in updated.stdout
    assert updated.stderr == ""


def test_plan_shows_what_a_build_of_the_updated_files_would_do(gpukernel: Path, tiny_channel: Path) -> None:
    edit(gpukernel / "feedstock.yaml", "version: 1.0.0", "version: 1.0.1")
    edit(gpukernel / "feedstock.yaml", "versions: [11.8, 12.9, 13.0]", "versions: [12.9]")
    edit(gpukernel / "recipe" / "build.sh", "set -e", "set -e  # changed")
    ahead = planned(gpukernel, tiny_channel)
    assert {build.rsplit("-", 2)[1] for row in ahead for build in row["builds"]} == {"1.0.1"}
    listed = run(gpukernel, "build", "--list", "--json")
    assert "Regenerated from feedstock.yaml" in listed.stderr
    assert planned(gpukernel, tiny_channel) == ahead


def test_a_file_that_was_edited_by_hand_is_read_as_it_is_and_named_each_time(
    gpukernel: Path, tiny_channel: Path
) -> None:
    edit(gpukernel / "recipe" / "recipe.yaml", 'version: "1.0.0"', 'version: "1.0.2"')
    for words in (("status",), ("status",), ("plan", "linux_64_cpu")):
        assert "recipe/recipe.yaml: edited by hand" in run(gpukernel, *words, "--channel", str(tiny_channel)).stderr


def test_errors_name_files_of_the_feedstock_and_not_of_a_copy(gpukernel: Path, tiny_channel: Path) -> None:
    edit(gpukernel / "feedstock.yaml", "version: 1.0.0", "version: 1.0.1")
    (gpukernel / ".ci_support" / "migrations").mkdir()
    migration = gpukernel / ".ci_support" / "migrations" / "broken.yaml"
    migration.write_text("__migrator: [")
    ran = run(gpukernel, "plan", "--channel", str(tiny_channel))
    assert ran.returncode == 2
    assert f"{migration}:2:1: " in ran.stderr


def test_a_feedstock_with_nothing_generated_yet_is_planned(gpukernel: Path, tiny_channel: Path) -> None:
    whole = planned(gpukernel, tiny_channel)
    for name in (".ci_support", ".feedstock-tools"):
        for path in (gpukernel / name).iterdir():
            path.unlink()
    (gpukernel / "recipe" / "recipe.yaml").unlink()
    (gpukernel / "recipe" / "conda_build_config.yaml").unlink()
    (gpukernel / "conda-forge.yml").unlink()
    assert planned(gpukernel, tiny_channel) == whole
    assert not (gpukernel / "recipe" / "recipe.yaml").exists()


@pytest.fixture
def of_v0(gpukernel: Path) -> Path:
    """The same with a `meta.yaml`, which is built through the `recipe.yaml` of the same spec."""
    edit(gpukernel / "feedstock.yaml", "format: v1", "format: v0")
    for words in (("generate",), ("rerender",)):
        assert run(gpukernel, *words).returncode == 0
    return gpukernel


def test_status_follows_a_script_of_a_meta_yaml_with_a_spec(of_v0: Path) -> None:
    def identities() -> set[str]:
        assert run(of_v0, "status").returncode == 0
        chosen = open_workspace(of_v0, None, (), os.environ).chosen()
        return {output.identity for each in chosen for row in each.rows for output in row.outputs}

    before = identities()
    edit(of_v0 / "recipe" / "build.sh", "set -e", "set -e  # changed")
    assert not identities() & before
    edit(of_v0 / "recipe" / "build.sh", "set -e  # changed", "set -e")
    assert identities() == before


def test_plan_looks_ahead_for_a_meta_yaml_with_a_spec_too(of_v0: Path, tiny_channel: Path) -> None:
    edit(of_v0 / "feedstock.yaml", "version: 1.0.0", "version: 1.0.1")
    before = digest_of_files([of_v0])
    ahead = planned(of_v0, tiny_channel)
    assert digest_of_files([of_v0]) == before
    assert {build.rsplit("-", 2)[1] for row in ahead for build in row["builds"]} == {"1.0.1"}
    run(of_v0, "build", "--list", "--json")
    assert planned(of_v0, tiny_channel) == ahead
