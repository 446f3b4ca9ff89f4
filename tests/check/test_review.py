"""`feedstock-tools review`: what a reviewer asks of a branch, in one comment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.check.differences import Differences, Lines, PackageChange
from feedstock_tools.check.findings import Verdict, checks_line
from feedstock_tools.check.linting.subject import LintFinding
from feedstock_tools.check.rehearsal import Environment, Rehearsal
from feedstock_tools.check.reviewing import Review, Stale, review_feedstock
from feedstock_tools.report.checks.review import review_json, review_markdown
from feedstock_tools.rerender.rerendering import rerender
from tests.check.test_rehearse import make_channel, package
from tests.support import command
from tests.support.git import committed, git

RECIPE = """\
package:
  name: demo
  version: "1.0"
build:
  number: 0
requirements:
  host:
    - python
    - zlib
  run:
    - python
about:
  home: https://example.org/demo
  license: MIT
  license_file: LICENSE
  summary: A demo
extra:
  recipe-maintainers:
    - somebody
"""
PINNING = "python:\n- '3.12'\nzlib:\n- '1.3'\n"


@pytest.fixture
def pinning(tmp_path: Path) -> Path:
    """A pinning with one Python."""
    path = tmp_path / "conda_build_config.yaml"
    path.write_text(PINNING)
    return path


@pytest.fixture
def feedstock(tmp_path: Path, pinning: Path) -> Path:
    """A rerendered feedstock for Linux, in a repository whose branch is at its main one."""
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("number: 0", "number: 0\n  skip: true  # [not linux]"))
    (folder / "recipe/LICENSE").touch()
    (folder / "conda-forge.yml").write_text("{}\n")
    rerender(folder, pinning=pinning).changes().apply()
    committed(folder)
    git(folder, "checkout", "-qb", "mine")
    return folder


def edit(folder: Path, old: str, new: str) -> None:
    recipe = folder / "recipe/meta.yaml"
    recipe.write_text(recipe.read_text().replace(old, new))


def reviewed(folder: Path, pinning: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = ("--feedstock", str(folder), "--pinning", str(pinning), "--smithy", "none")
    return command.here("review", *given, *words, folder=folder)


def test_a_branch_that_changes_no_package_has_nothing_to_mend(feedstock: Path, pinning: Path) -> None:
    edit(feedstock, "    - python\n    - zlib\n", "    - zlib\n    - python\n")
    committed(feedstock, "sort")
    shown = reviewed(feedstock, pinning)
    assert shown.returncode == 0, shown.stderr
    assert (
        "\n- rerendered\n- `lint`: no new finding; `cuda check`: no new finding (1 finding of the base not counted)\n"
        in shown.stdout
    )
    assert "**This changes no package: 1 package compared.**" in shown.stdout
    assert "rehearse" not in shown.stdout
    assert "\n\nNothing to mend. 6 checks completed.\n\nUsed: the pinning " in shown.stdout


def test_new_mistakes_are_named_and_old_ones_counted(feedstock: Path, pinning: Path, tmp_path: Path) -> None:
    edit(feedstock, "  run:\n    - python\n", "  run:\n    - python\n    - zlib\n    - zlib\n")
    git(feedstock, "checkout", "-q", "main")
    committed(feedstock, "an old mistake")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    edit(feedstock, "license: MIT", "license: Mine")
    channel = make_channel(tmp_path / "channel", [package("python", "3.12.1"), package("zlib", "1.3.1")])
    shown = reviewed(feedstock, pinning, "-c", str(channel), "--json")
    assert shown.returncode == 1, shown.stderr
    answer = json.loads(shown.stdout)
    assert [(found["rule"], found["line"] > 1) for found in answer["lint"]] == [("license", True)]
    assert (answer["known_findings"], answer["verdict"], answer["rehearsal"]) == (2, "wrong", None)


def test_a_mistake_that_names_a_file_of_the_old_version_is_not_new(feedstock: Path, pinning: Path) -> None:
    pinning.write_text(PINNING.replace("- '3.12'", "- '3.12'\n- '3.13'"))
    edit(feedstock, "number: 0", "number: 0\n  string: same_0")
    rerender(feedstock, pinning=pinning).changes().apply()
    git(feedstock, "checkout", "-q", "main")
    committed(feedstock, "an old mistake")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    assert "two builds of demo-1.0-same_0 in " in command.here("lint", folder=feedstock).stdout
    edit(feedstock, 'version: "1.0"', 'version: "1.1"')
    assert json.loads(reviewed(feedstock, pinning, "--no-rehearse", "--json").stdout)["lint"] == []


def test_a_feedstock_that_is_not_rerendered_is_said_to_be(feedstock: Path, pinning: Path) -> None:
    edit(feedstock, "  skip: true  # [not linux]\n", "  skip: true  # [win]\n")
    committed(feedstock, "macOS")
    shown = reviewed(feedstock, pinning)
    assert shown.returncode == 1
    assert "- **not rerendered**: a rerender changes 1 file; what follows is about both as a rer" in shown.stdout
    assert "- `osx_64_cpu_py3.12`\n" in shown.stdout
    assert "add osx_64_ in .ci_support\n" in shown.stdout
    pinning.write_text(PINNING.replace("'1.3'", "'1.4'"))
    git(feedstock, "checkout", "-q", "main")
    other = reviewed(feedstock, pinning)
    assert other.returncode == 0, other.stdout
    assert "- not rerendered, nor is the base: a rerender changes 1 file; what follows" in other.stdout
    assert "This changes no package" in other.stdout
    git(feedstock, "checkout", "-q", "mine")
    both = reviewed(feedstock, pinning)
    assert both.returncode == 1, both.stdout
    assert "- **not rerendered**: a rerender changes 2 files" in both.stdout


def test_a_branch_that_cannot_be_rerendered_is_reviewed_as_it_is(feedstock: Path, pinning: Path) -> None:
    edit(feedstock, "number: 0", "number: 1")
    migration = feedstock / ".ci_support/migrations/zlib.yaml"
    migration.parent.mkdir()
    migration.write_text("migrator_ts: no time\n__migrator: {kind: version, use_local: true}\nzlib:\n- 1\n")
    committed(feedstock, "a migration that does not fit")
    shown = reviewed(feedstock, pinning)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert f"- **cannot be rerendered**: {migration}" in shown.stdout
    assert "1 changed package" in shown.stdout


def test_jobs_that_change_are_rehearsed(feedstock: Path, pinning: Path, tmp_path: Path) -> None:
    channel = make_channel(tmp_path / "channel", [package("python", "3.12.1"), package("zlib", "1.3.1")])
    edit(feedstock, "  run:\n    - python\n", "  run:\n    - python\n    - zlib <1\n")
    committed(feedstock, "old zlib")
    shown = reviewed(feedstock, pinning, "-c", str(channel))
    assert shown.returncode == 1
    assert f"- `rehearse` in {channel}: 1 of 2 environments solve, **1 do not**\n" in shown.stdout
    assert "<details><summary>rehearse</summary>" in shown.stdout
    unsolved = reviewed(feedstock, pinning, "--no-rehearse")
    assert (
        "\n\n**Not all is known.** 1 of 6 checks could not be completed: rehearse (not asked for).\n" in unsolved.stdout
    )
    assert "`rehearse`" not in unsolved.stdout
    assert (unsolved.returncode, reviewed(feedstock, pinning, "--no-rehearse", "--strict").returncode) == (0, 1)
    nowhere = reviewed(feedstock, pinning, "-c", str(tmp_path / "nowhere"))
    assert (nowhere.returncode, "could not be completed: rehearse (cannot reach" in nowhere.stdout) == (0, True)
    commit_again = reviewed(feedstock, pinning, "HEAD", "-c", str(channel))
    assert commit_again.returncode == 0
    assert "This changes no package" in commit_again.stdout


def test_what_did_not_solve_before_is_not_this_branchs(feedstock: Path, pinning: Path, tmp_path: Path) -> None:
    channel = make_channel(tmp_path / "channel", [package("python", "3.12.1"), package("zlib", "1.3.1")])
    git(feedstock, "checkout", "-q", "main")
    edit(feedstock, "  run:\n    - python\n", "  run:\n    - python\n    - zlib <1\n")
    committed(feedstock, "does not solve")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    edit(feedstock, "number: 0", "number: 1")
    shown = reviewed(feedstock, pinning, "-c", str(channel))
    assert shown.returncode == 0, shown.stdout
    assert "1 of 2 environments solve, 1 do not, nor in the base\n" in shown.stdout


@pytest.mark.parametrize(
    ("edits", "remark"),
    [
        (
            [('version: "1.0"', 'version: "1.1"'), ("number: 0", "number: 2")],
            "a new version begins with build number 0",
        ),
        ([('version: "1.0"', 'version: "1.1"')], ""),
        ([('version: "1.0"', 'version: "1.1"'), ("    number: 200", "    number: 300")], ""),
        (
            [('version: "1.0"', 'version: "1.1"'), ("    number: 200", "    number: 201")],
            "a new version begins with build number 0, not 201: demo-gpu",
        ),
        ([("    - zlib\n", "    - zlib\n    - pip\n")], "changed with the same version and build number"),
        ([("    - zlib\n", "    - zlib\n    - pip\n"), ("number: 0", "number: 1")], ""),
        ([("number: 0", "number: 4")], "the build number goes from 0 to 4, and the next is 1"),
    ],
)
def test_build_numbers_are_those_that_reviewers_ask_for(
    feedstock: Path, pinning: Path, edits: list[tuple[str, str]], remark: str
) -> None:
    git(feedstock, "checkout", "-q", "main")
    outputs = "outputs:\n- name: demo\n- name: demo-gpu\n  build:\n    number: 200\nabout:\n"
    if any(old.endswith("number: 200") for old, _ in edits):
        edit(feedstock, "about:\n", outputs)
        committed(feedstock, "an output for GPUs")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    for old, new in edits:
        edit(feedstock, old, new)
    shown = reviewed(feedstock, pinning, "--no-rehearse").stdout
    lines = [line for line in shown.splitlines() if line.startswith("- build numbers")]
    assert [line.startswith(f"- build numbers: {remark}") for line in lines] == [True] * bool(remark)


def test_a_build_number_that_goes_back_is_reported(feedstock: Path, pinning: Path) -> None:
    git(feedstock, "checkout", "-q", "main")
    edit(feedstock, "number: 0", "number: 3")
    committed(feedstock, "third build")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    edit(feedstock, "number: 3", "number: 2")
    shown = reviewed(feedstock, pinning, "--no-rehearse").stdout
    assert "- build numbers: the build number goes back from 3 to 2, so solvers keep the old build" in shown


def test_an_output_that_keeps_its_version_has_nothing_of_new_sources(feedstock: Path, pinning: Path) -> None:
    git(feedstock, "checkout", "-q", "main")
    outputs = "outputs:\n  - name: demo\n  - name: demo-proc\n    version: 5.0\nabout:\n"
    edit(feedstock, "about:\n", outputs)
    edit(feedstock, "build:\n", "source:\n  url: https://example.org/demo-1.0.tar.gz\nbuild:\n")
    committed(feedstock, "outputs")
    git(feedstock, "checkout", "-q", "mine")
    git(feedstock, "merge", "-q", "main")
    edit(feedstock, "demo-1.0.tar.gz", "demo-1.1.tar.gz")
    assert "build numbers: changed" in reviewed(feedstock, pinning, "--no-rehearse").stdout
    edit(feedstock, 'version: "1.0"', 'version: "1.1"')
    assert "build numbers" not in reviewed(feedstock, pinning, "--no-rehearse").stdout


def test_without_a_main_branch_the_base_must_be_named(feedstock: Path, pinning: Path) -> None:
    git(feedstock, "branch", "-qD", "main")
    shown = reviewed(feedstock, pinning)
    assert shown.returncode == 2
    assert "Name the commit to compare with" in shown.stderr
    assert reviewed(feedstock, pinning, "no such commit").returncode == 2


def test_without_a_pinning_whether_it_is_rerendered_is_unknown(feedstock: Path) -> None:
    review = review_feedstock(feedstock, feedstock)
    assert review.stale is None
    assert review.verdict is Verdict.UNKNOWN
    line = "**Not all is known.** 2 of 6 checks could not be completed: rerender, lint (no pinning).\n"
    assert line in review_markdown(review, "main")
    assert review_feedstock(feedstock, feedstock, pinning="none", smithy="none").incomplete == {}
    assert review_json(review, "main")["stale"] is None


def test_without_a_release_of_conda_smithy_the_rest_of_the_tree_is_unknown(feedstock: Path) -> None:
    review = review_feedstock(feedstock, feedstock, pinning="none")
    assert review.verdict is Verdict.UNKNOWN
    assert checks_line(review.checks) == (
        "1 of 7 checks could not be completed: whole tree (no release of conda-smithy)."
    )


def test_a_comment_is_no_longer_than_github_takes() -> None:
    lint = tuple(LintFinding("recipe/meta.yaml", line, "license", "x" * 500) for line in range(1, 400))
    text = review_markdown(Review(Differences(), None, lint, (), 0), "main")
    assert len(text) < 65_536
    assert "see `feedstock-tools diff main`" in text
    assert "**399 new mistakes**" in text


def test_a_comment_on_many_jobs_has_less_than_a_hundred_lines() -> None:
    jobs = [f"{platform}_py3.{minor}" for platform in ("linux_64", "osx_64") for minor in range(5, 20)]
    environments = [Environment(job, "row", "demo", "run", job.partition("_py")[0], "solved") for job in jobs]
    changes = [PackageChange(f"demo-{job}", (job,), (Lines("run", ("a",), ("b",)),)) for job in jobs]
    stale = Stale(tuple(("change", f".ci_support/{job}.yaml") for job in jobs))
    rehearsal = Rehearsal(tuple(environments), (), ("here",), 1)
    review = Review(Differences(packages_changed=tuple(changes)), stale, (), (), 0, rehearsal=rehearsal)
    text = review_markdown(review, "main")
    assert text.count("\n") < 100
    assert "change 30 jobs (15 linux_64, 15 osx_64) in .ci_support\n" in text
    assert "15 osx_64 jobs    -      -     1 solve  -\n" in text


def test_texts_of_strangers_stay_texts() -> None:
    lint = (LintFinding("recipe/meta.yaml", 1, "license", "```\n</details>\x1b[31m"),)
    text = review_markdown(Review(Differences(), None, lint, (), 0), "main")
    assert text.count("\n````\n") == 2
    assert "\x1b" not in text
