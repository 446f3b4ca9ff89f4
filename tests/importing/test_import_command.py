"""`feedstock-tools import`: what it writes and prints, and input that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import command
from tests.support.importing import META


def test_the_command_writes_and_counts(v0: Path) -> None:
    words = ("import", str(v0), "--pinning", str(v0.parent / "pinning"))
    done = command.here(*words, folder=v0)

    assert done.returncode == 0, done.stderr
    assert (v0 / "feedstock.yaml").is_file()
    assert "2 outputs" in done.stdout
    assert "verbatim" in done.stdout
    assert "  output libsolver, build: 4 lines" in done.stdout.splitlines()
    assert done.stdout.endswith("the generated recipe renders to the same, tests, scripts and descriptions included\n")

    again = command.here(*words, folder=v0)
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_the_command_prints_json_and_writes_nothing_when_it_checks(v1: Path) -> None:
    words = ("import", str(v1), "--pinning", str(v1.parent / "pinning"), "--dry-run", "--json")
    done = command.here(*words, folder=v1)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["differences"] == []
    assert not (v1 / "feedstock.yaml").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{% set build = 3 %}", "{% set build = %}"),
        ("# [py < 312]", "# [py <]"),
        ("sha256: " + "b" * 64, "sha256: none"),
        ("{% endif %}\n{% set headers", "{% set headers"),
    ],
    ids=["statement", "selector", "hash", "block"],
)
def test_an_invalid_recipe_is_one_message_and_nothing_is_written(v0: Path, old: str, new: str) -> None:
    path = v0 / "recipe/meta.yaml"
    assert old in META
    path.write_text(META.replace(old, new))

    done = command.here("import", str(v0), "--pinning", str(v0.parent / "pinning"), folder=v0)

    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert not (v0 / "feedstock.yaml").exists()


def test_an_expression_without_a_certain_value_is_named_with_its_line(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    text = path.read_text().replace("    - win\n", "    - linux and python<3\n", 1)
    path.write_text(text)
    done = command.here("import", str(v1), "--pinning", str(v1.parent / "pinning"), folder=v1)
    line = text.splitlines().index("    - linux and python<3") + 1
    assert done.returncode == 2
    assert f"recipe.yaml:{line}: the expression cannot be evaluated: linux and python<3" in done.stderr
