"""conda-forge's linter beside ours: its report is read, its failure is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedstock_tools.check.linting.lint import RULES
from tests.check.linting.feedstocks import META, feedstock, line_of
from tests.support import command

REPORT = """\
recipe has some lint:
  The recipe must have a `build/number` section.
  Selectors are suggested to take a form with two spaces. See lines [3, 6]
    and more of it
recipe also has some suggestions:
  Do not pin so much.
"""


def environment(folder: Path, report: str, status: int) -> Path:
    """An environment with a conda-smithy that prints a report and remembers how it was called."""
    (folder / "bin").mkdir(parents=True)
    (folder / "report").write_text(report)
    program = folder / "bin/conda-smithy"
    program.write_text(f'#!/bin/sh\necho "$@" > "{folder}/called"\ncat "{folder}/report"\nexit {status}\n')
    program.chmod(0o755)
    return folder


def test_its_lints_are_mistakes_and_its_hints_remarks(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    folder, smithy = feedstock(tmp_path / "demo"), environment(tmp_path / "env", REPORT, 1)
    shown = command.run(command.tool("lint", str(folder), "--json", "--linter", str(smithy)), tmp_path)
    entries = [(each["line"], each["weight"], each["message"]) for each in json.loads(shown.stdout)["findings"]]
    assert entries == [
        (1, "remark", "Do not pin so much."),
        (3, "mistake", "Selectors are suggested to take a form with two spaces. See lines [3, 6] and more of it"),
        (line_of(META, "build:"), "mistake", "The recipe must have a `build/number` section."),
    ]
    assert {each["rule"] for each in json.loads(shown.stdout)["findings"]} == {"conda-smithy"}
    assert shown.returncode == 1
    called = (tmp_path / "env/called").read_text()
    assert called == f"recipe-lint --feedstock-dir {folder} {folder}/recipe\n"


@pytest.mark.parametrize(
    ("report", "status", "remark"),
    [
        ("recipe is in fine form\n", 0, ""),
        ("Traceback\nValueError: no network\n", 1, "conda-forge's linter failed: ValueError: no network"),
        ("", 3, "conda-forge's linter failed: exit status 3"),
    ],
)
def test_a_linter_that_fails_costs_one_line(tmp_path: Path, report: str, status: int, remark: str) -> None:
    (tmp_path / "demo").mkdir()
    folder, smithy = feedstock(tmp_path / "demo"), environment(tmp_path / "env", report, status)
    shown = command.run(command.tool("lint", str(folder), "--linter", str(smithy)), tmp_path)
    first, *rest = shown.stdout.splitlines()
    assert (shown.returncode, rest) == (0, ["No finding."])
    assert first.startswith(f"{4 if remark else 3} of {len(RULES)} checks could not be completed: ")
    assert remark in first


def test_an_environment_without_conda_smithy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    missing = command.run(command.tool("lint", str(feedstock(tmp_path / "demo")), "--linter", str(tmp_path)), tmp_path)
    assert missing.returncode == 2
    assert "there is no conda-smithy here" in missing.stderr


def test_rules_can_be_chosen(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, META.replace("license: MIT", "license: MITT").replace("  license_file: LICENSE\n", ""))
    for words, rules in (
        ([], ["license", "license-file"]),
        (["--rule", "license"], ["license"]),
        (["--ignore", "license"], ["license-file"]),
    ):
        shown = command.run(command.tool("lint", str(folder), "--json", *words), tmp_path)
        assert [each["rule"] for each in json.loads(shown.stdout)["findings"]] == rules
    unknown = command.run(command.tool("lint", str(folder), "--rule", "licence"), tmp_path)
    assert unknown.returncode == 2
    assert "there is no rule 'licence'; the rules are abi3-text, " in unknown.stderr
