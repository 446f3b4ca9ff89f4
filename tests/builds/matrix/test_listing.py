"""The list of configurations, and the menu."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.needs import needs


def listed(feedstock: TinyFeedstock) -> dict[str, dict[str, object]]:
    """The entries of `--list --json` by short name."""
    run = feedstock.build("--list", "--json")
    assert run.returncode == 0, run.stderr
    return {entry["short_name"]: entry for entry in json.loads(run.stdout)}


def test_it_shows_platform_accelerator_python_and_packages(feedstock: TinyFeedstock) -> None:
    entry = listed(feedstock)[GPU]
    assert (entry["platform"], entry["accelerator"], entry["pythons"]) == (HERE.subdir, "CUDA 11.2", ["3.11", "3.12"])
    names = [output["name"] for output in entry["outputs"]]  # type: ignore[attr-defined]
    assert names == ["libtiny", "tiny-base", "tiny", "tiny-gpu", "tiny-base", "tiny", "tiny-gpu"]


@needs("system", sys.platform != "win32", "the embedded engine does not run on Windows")
def test_it_shows_what_is_built_already(gpu_feedstock: TinyFeedstock) -> None:
    row = next(line for line in gpu_feedstock.build("--list").stdout.splitlines() if line.startswith(GPU))
    assert "4 of 7" in row
    gpu_feedstock.build(GPU)
    assert listed(gpu_feedstock)[GPU]["built"] is True
    assert listed(gpu_feedstock)[f"{HERE.name}_cpu"]["built"] is False


def test_nothing_is_built_at_first(feedstock: TinyFeedstock) -> None:
    assert listed(feedstock)[GPU]["built"] is False


def test_names_and_filters_narrow_it(feedstock: TinyFeedstock) -> None:
    run = feedstock.build("--list", f"{HERE.name}_cpu", "--json")
    assert [entry["short_name"] for entry in json.loads(run.stdout)] == [f"{HERE.name}_cpu"]


def test_other_platforms_are_listed_too(feedstock: TinyFeedstock) -> None:
    assert "osx_64_cpu" in listed(feedstock)


def test_a_second_list_imports_nothing_heavy(feedstock: TinyFeedstock) -> None:
    feedstock.build("--list")
    program = (
        "import sys; from feedstock_tools.cli.build import build; build.main(standalone_mode=False);"
        "print('imported', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    run = command.run([sys.executable, "-c", program, "--list", "--channel", str(feedstock.channel)], feedstock.folder)
    assert run.returncode == 0, run.stderr
    imported = set(run.stdout.splitlines()[-1].split()[1:])
    assert "click" in imported
    assert not imported & {"rattler", "rattler_build", "yaml", "pydantic", "rich", "jinja2", "subprocess"}


def test_a_change_of_the_recipe_shows_at_once(feedstock: TinyFeedstock) -> None:
    feedstock.build("--list")
    feedstock.edit("recipe/recipe.yaml", 'version: "1.0.0"', 'version: "1.0.1"')
    versions = {output["version"] for entry in listed(feedstock).values() for output in entry["outputs"]}  # type: ignore[attr-defined]
    assert versions == {"1.0.1"}


@needs("system", hasattr(os, "openpty"), "a pseudo-terminal")
@pytest.mark.parametrize(("typed", "status"), [("2", 0), ("9", 2), ("", 2), ("two", 2)])
def test_without_a_name_there_is_a_menu_in_a_terminal(feedstock: TinyFeedstock, typed: str, status: int) -> None:
    (feedstock.folder / ".ci_support" / "osx_64_.yaml").unlink()
    manager, terminal = os.openpty()
    os.write(manager, f"{typed}\n".encode())
    run = command.run(feedstock.command(), feedstock.folder, stdin=terminal)
    os.close(manager)
    os.close(terminal)
    assert f"1. {GPU}\n2. {HERE.name}_cpu\n" in run.stderr
    assert run.returncode == status, run.stderr
    assert bool(feedstock.packages()) == (status == 0)


def test_a_build_leaves_a_list_that_comes_at_once(gpu_feedstock: TinyFeedstock) -> None:
    plan = json.loads((gpu_feedstock.artifacts / ".cache" / "plan.json").read_text())
    assert [each["rendered"] for each in plan["configurations"]] == [True, True, True]


def test_a_recipe_that_is_edited_during_a_build_leaves_no_list_of_before(feedstock: TinyFeedstock) -> None:
    feedstock.edit(
        "recipe/build-library.sh", "mkdir", 'sed -i "s/number: 3/number: 4/" "$RECIPE_DIR/recipe.yaml"\nmkdir'
    )
    assert feedstock.build(f"{HERE.name}_cpu_py3.11").returncode == 1
    entries = json.loads(feedstock.build("--list", "--json").stdout)
    builds = {output["build"].rpartition("_")[2] for entry in entries for output in entry["outputs"]}
    assert builds == {"4"}


@needs("system", sys.platform == "linux", "file names are bytes on Linux alone")
def test_a_file_name_that_is_not_unicode_is_no_problem(feedstock: TinyFeedstock) -> None:
    (feedstock.folder / "recipe" / os.fsdecode(b"caf\xe9.patch")).write_text("")
    assert [output for entry in listed(feedstock).values() for output in entry["outputs"]]  # type: ignore[attr-defined]


def test_a_meta_yaml_is_listed_where_its_conversion_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text("package:\n  name: a\n  version: 1\n")
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / f".ci_support/{HERE.name}_.yaml").write_text("zlib:\n- '1'\n")
    (tmp_path / "build_artifacts").mkdir()
    (tmp_path / "build_artifacts/.cache").write_text("")
    run = command.here("build", "--list", "--channel", str(tmp_path), folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert f"{HERE.name}_cpu" in run.stdout
