"""What `--all` and names do with configurations that cannot be built on this machine."""

from __future__ import annotations

import json
import sys

from tests.support.feedstocks import TinyFeedstock
from tests.support.needs import needs

pytestmark = needs("system", sys.platform != "darwin", "a Mac can build them all")


def test_all_leaves_out_rows_for_another_machine_with_a_message(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(1)
    run = feedstock.build("--all", "--json", "--filter", "*cuda*")
    assert (run.returncode, json.loads(run.stdout)["left_out"]) == (0, {})
    run = feedstock.build("--all", "--json")
    assert run.returncode == 0
    assert list(json.loads(run.stdout)["left_out"]) == ["osx_64_"]
    assert run.stderr.startswith("Left out: osx_64_cpu cannot be built here: packages for osx-64 need macOS")
    run = feedstock.build("--all")
    assert run.returncode == 0
    assert run.stdout.endswith("Left out, since they cannot be built here: 1 configuration.\n")


def test_a_name_that_means_what_cannot_be_built_here_is_an_error_and_nothing_is_built(feedstock: TinyFeedstock) -> None:
    run = feedstock.build("*")
    assert run.returncode == 2
    assert "osx_64_cpu cannot be built here: packages for osx-64 need macOS" in run.stderr
    assert "Use --all to build the others." in run.stderr
    assert feedstock.packages() == []


def test_a_plan_names_what_cannot_be_built_here_as_its_rows(feedstock: TinyFeedstock) -> None:
    run = feedstock.run("plan")
    assert "osx_64_cpu cannot be built here: packages for osx-64 need macOS" in run.stdout
    assert "osx_64_ " not in run.stdout


def test_all_of_nothing_that_can_be_built_here_is_an_error(feedstock: TinyFeedstock) -> None:
    run = feedstock.build("--all", "--filter", "osx*")
    assert run.returncode == 2
    assert "osx_64_cpu cannot be built here" in run.stderr
    assert "With --all" not in run.stderr


def test_a_recipe_that_cannot_be_rendered_is_not_left_out_but_reported(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/recipe.yaml", "version: ${{ version }}", "version: ${{ no_such_key }}")
    run = feedstock.build("--all")
    assert run.returncode == 2
    assert "no_such_key" in run.stderr
