"""`feedstock-tools diff`: what a change means for jobs and packages, whatever it does to the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedstock_tools.check.choices import ChoiceChange
from feedstock_tools.check.differences import Differences, JobChange, Lines, PackageChange, compare_feedstocks
from feedstock_tools.report.checks.differences import (
    differences_json,
    differences_markdown,
    differences_page,
    differences_text,
    each_once,
)
from tests.support import command
from tests.support.git import committed, git

META = """\
{% set version = "1.2" %}
package:
  name: demo
  version: {{ version }}
build:
  number: 1
  run_exports:
    - {{ pin_subpackage("demo", max_pin="x.x") }}
requirements:
  host:
    - python
    - numpy >=1
  run:
    - python
test:
  imports:
    - demo
about:
  license: MIT
"""
V1 = """\
context:
  version: "1.2"
package:
  name: demo
  version: ${{ version }}
build:
  number: 1
requirements:
  host:
    - numpy >=1
    - python
  run:
    - python
tests:
  - python:
      imports: [demo]
      pip_check: false
about:
  license: MIT
"""
LINUX, WINDOWS = "linux_64_python3.12", "win_64_python3.12"
#: What texts call them.
ON_LINUX, ON_WINDOWS = "linux_64_cpu_py3.12", "win_64_cpu_py3.12"


def feedstock(folder: Path, recipe: str = META, jobs: tuple[str, ...] = (LINUX, WINDOWS), python: str = "3.12") -> Path:
    name = "recipe.yaml" if recipe.startswith("context") else "meta.yaml"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe" / name).write_text(recipe)
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n" if name == "recipe.yaml" else "")
    (folder / ".ci_support").mkdir()
    for job in jobs:
        platform = "linux-64" if job.startswith("linux") else "win-64"
        text = f"python:\n- {python}.* *_cpython\ntarget_platform:\n- {platform}\n"
        (folder / f".ci_support/{job}.yaml").write_text(text)
    return folder


def test_a_text_that_was_only_rewritten_changes_no_package(tmp_path: Path) -> None:
    rewritten = "# new\n" + META.replace("    - python\n    - numpy >=1\n", "    - numpy   >=1\n    - python\n")
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", rewritten))
    assert not differences
    assert (differences.same, differences.only_hashes) == (2, 0)
    assert differences_text(differences) == "2 checks completed.\nThis changes no package: 2 packages compared.\n"


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [((), (), "before and after"), ((LINUX,), (), "after"), ((), (LINUX,), "before")],
)
def test_what_states_without_jobs_build_is_unknown(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], where: str
) -> None:
    """It is not the same, and not gone."""
    states = [str(feedstock(tmp_path / name, jobs=jobs)) for name, jobs in (("a", before), ("b", after))]
    shown = command.run(command.tool("diff", "--folders", *states), tmp_path)
    line = f"1 of 2 checks could not be completed: packages (no jobs in .ci_support {where}).\n"
    assert shown.stdout.startswith(line)
    assert "This changes no package" not in shown.stdout
    assert (shown.returncode, command.run([*shown.args, "--strict"], tmp_path).returncode) == (0, 1)
    differences = compare_feedstocks(*map(Path, states))
    assert differences_json(differences)["verdict"] == "unknown"
    assert line.strip() in differences_markdown(differences).splitlines()[0]
    assert line.strip() in differences_page(differences, "demo", *states)


@pytest.mark.parametrize(
    ("old", "new", "part", "removed", "added"),
    [
        ("number: 1", "number: 2", "build number", ("1",), ("2",)),
        ("numpy >=1", "numpy >=2", "host", ("numpy >=1",), ("numpy >=2",)),
        ("    - demo\n", "    - demo.more\n", "tests", ("imports: demo",), ("imports: demo.more",)),
        ('"1.2"', '"1.3"', "version", ("1.2",), ("1.3",)),
        (
            "  run:\n    - python\n",
            "  run:\n    - python\n  run_constrained:\n    - scipy >1\n",
            "run_constrained",
            (),
            ("scipy >1",),
        ),
    ],
)
def test_what_changes_in_a_package_is_named(
    tmp_path: Path, old: str, new: str, part: str, removed: tuple[str, ...], added: tuple[str, ...]
) -> None:
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", META.replace(old, new)))
    (change,) = differences.packages_changed
    assert (change.name, change.jobs) == ("demo", (LINUX, WINDOWS))
    assert (removed, added) in [(lines.removed, lines.added) for lines in change.changes if lines.part == part]
    assert f"demo in {ON_LINUX}, {ON_WINDOWS}:" in differences_text(differences)


def test_run_exports_are_compared(tmp_path: Path) -> None:
    other = META.replace('max_pin="x.x"', 'max_pin="x"')
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", other))
    assert [lines.part for lines in differences.packages_changed[0].changes] == ["run_exports"]


def test_jobs_come_and_go(tmp_path: Path) -> None:
    before, after = feedstock(tmp_path / "a", jobs=(LINUX,)), feedstock(tmp_path / "b", jobs=(WINDOWS,))
    differences = compare_feedstocks(before, after)
    assert (differences.jobs_removed, differences.jobs_added) == ((LINUX,), (WINDOWS,))
    assert differences_text(differences) == (
        f"2 checks completed.\nRemoved jobs:\n  - {ON_LINUX}\nNew jobs:\n  + {ON_WINDOWS}\n1 new job, 1 removed job.\n"
    )


def test_values_of_a_job_are_compared(tmp_path: Path) -> None:
    before, after = feedstock(tmp_path / "a", jobs=(LINUX,)), feedstock(tmp_path / "b", jobs=(LINUX,), python="3.13")
    differences = compare_feedstocks(before, after)
    assert differences.jobs_changed[0].values == (("python", "3.12.* *_cpython", "3.13.* *_cpython"),)
    assert "python: 3.12.* *_cpython -> 3.13.* *_cpython" in differences_text(differences)


def test_a_package_that_is_no_longer_built_is_named(tmp_path: Path) -> None:
    skipped = META.replace("  number: 1\n", "  number: 1\n  skip: true  # [win]\n")
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", skipped))
    assert differences.packages_removed == ((WINDOWS, "demo"),)
    assert f"Removed packages:\n  - demo in {ON_WINDOWS}\n" in differences_text(differences)


def test_many_new_packages_are_grouped_by_job(tmp_path: Path) -> None:
    jobs = tuple(f"linux_64_python3.{minor}" for minor in range(10, 14))
    outputs = "outputs:\n" + "".join(f"  - name: {name}\n" for name in ("demo", "demo-one", "demo-two"))
    texts = [META.replace("about:", f"{more}about:") for more in ("", outputs)]
    old, new = (feedstock(tmp_path / at, text, jobs) for at, text in zip(("old", "new"), texts, strict=True))
    differences = compare_feedstocks(old, new)
    assert len(differences.packages_added) == 8
    line = "demo-one, demo-two in 4 linux_64 jobs"
    assert f"New packages:\n  + {line}\n" in differences_text(differences)
    assert "\n- `demo-one`, `demo-two` in 4 `linux_64` jobs\n" in differences_markdown(differences)


def test_many_jobs_are_counted_by_platform(tmp_path: Path) -> None:
    jobs = (*(f"linux_64_python3.{minor}" for minor in range(10, 13)), "win_64_", "win_64_python3.13")
    before, after = (feedstock(tmp_path / at, jobs=jobs, python=at) for at in ("3.11", "3.12"))
    text = differences_text(compare_feedstocks(before, after))
    assert " -> 3.12.* *_cpython in 5 jobs (3 linux_64, 2 win_64)\n" in text


def test_the_two_formats_are_compared(tmp_path: Path) -> None:
    plain = META.replace('  run_exports:\n    - {{ pin_subpackage("demo", max_pin="x.x") }}\n', "")
    differences = compare_feedstocks(feedstock(tmp_path / "a", plain), feedstock(tmp_path / "b", V1))
    assert not differences
    assert differences.same + differences.only_hashes == 2


def test_markdown_is_folded_and_json_has_everything(tmp_path: Path) -> None:
    other = META.replace("numpy >=1", "numpy >=2")
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", other))
    text = differences_markdown(differences)
    assert text.startswith(
        "**2 changed packages.** 2 checks completed.\n\n<details><summary>Changed packages: 1 change</summary>"
    )
    assert " @@\nhost:\n- numpy >=1\n+ numpy >=2\n```" in text
    found = json.loads(json.dumps(differences_json(differences)))
    assert found["packages_differ"] is True
    assert found["packages_changed"][0]["changes"][0] == {
        "part": "host",
        "removed": ["numpy >=1"],
        "added": ["numpy >=2"],
    }


def test_commits_are_compared_without_touching_the_repository(tmp_path: Path) -> None:
    folder = feedstock(tmp_path / "a")
    committed(folder)
    (folder / "recipe/meta.yaml").write_text(META.replace("number: 1", "number: 2"))
    shown = command.run(command.tool("diff", "--feedstock", str(folder)), tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "build number:\n  - 1\n  + 2\n" in shown.stdout
    committed(folder, "second")
    assert "This changes no package" in command.run(command.tool("diff"), folder).stdout
    assert "2 changed packages." in command.run(command.tool("diff", "HEAD~1", "HEAD", "--markdown"), folder).stdout
    assert (folder / "recipe/meta.yaml").read_text() == META.replace("number: 1", "number: 2")


@pytest.mark.parametrize("words", [["diff"], ["review", "--no-rehearse", "--pinning", "none", "--smithy", "none"]])
def test_a_mistake_in_a_commit_is_named_with_the_commit(tmp_path: Path, words: list[str]) -> None:
    folder = feedstock(tmp_path / "a")
    (folder / "recipe/meta.yaml").write_text("{{ bad( }}\n")
    committed(folder)
    (folder / "recipe/meta.yaml").write_text(META)
    committed(folder, "second")
    ended = command.run(command.tool(*words, "HEAD~1"), folder)
    assert ended.returncode == 2
    assert "error: HEAD~1:recipe/meta.yaml:1: the template is invalid" in ended.stderr


@pytest.mark.parametrize("word", ["absent", "--output=x", "a b", "HEAD; touch x"])
def test_what_is_no_commit_is_an_error(tmp_path: Path, word: str) -> None:
    folder = feedstock(tmp_path / "a")
    git(folder, "init", "--quiet")
    ended = command.run(command.tool("diff", "--", word), folder)
    assert ended.returncode == 2
    assert f"'{word}' is not a commit" in ended.stderr


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("      pip_check: false\n", "", "commands of tests"),
        ("imports: [demo]", "imports: [demo, demo.more]", "imports of tests"),
        ("license: MIT", "license: BSD-3-Clause", "license"),
        ("build:\n  number: 1\n", "build:\n  number: 1\nsource:\n  url: https://example.org/x.tgz\n", "source"),
    ],
)
def test_what_a_move_to_the_other_format_changes_is_named(tmp_path: Path, old: str, new: str, part: str) -> None:
    plain = META.replace('  run_exports:\n    - {{ pin_subpackage("demo", max_pin="x.x") }}\n', "")
    moved = V1.replace(old, new)
    assert moved != V1
    differences = compare_feedstocks(feedstock(tmp_path / "a", plain), feedstock(tmp_path / "b", moved))
    assert [lines.part for lines in differences.packages_changed[0].changes] == [part]


def test_pins_of_both_formats_are_alike(tmp_path: Path) -> None:
    exports = '  run_exports:\n    - ${{ pin_subpackage("demo", upper_bound="x.x") }}\nabout'
    moved = V1.replace("  run:\n    - python\n", f"  run:\n    - python\n{exports}".removesuffix("about"))
    differences = compare_feedstocks(feedstock(tmp_path / "a"), feedstock(tmp_path / "b", moved))
    assert not differences.packages_changed


def test_files_beside_the_recipe_are_compared(tmp_path: Path) -> None:
    sides = feedstock(tmp_path / "a"), feedstock(tmp_path / "b")
    for folder, text in zip(sides, ("make", "make install"), strict=True):
        (folder / "recipe/build.sh").write_text(text)
        (folder / "recipe/README.md").write_text(text)
    differences = compare_feedstocks(*sides)
    assert differences.files == ("build.sh",)
    assert bool(differences)
    lines = ["Changed files:", "  build.sh", "1 changed file, 2 unchanged packages."]
    assert differences_text(differences).splitlines()[1:] == lines


def test_tests_of_an_output_are_its_own(tmp_path: Path) -> None:
    outputs = "outputs:\n  - name: demo-more\n    test:\n      commands:\n        - demo --help\nabout"
    recipe = META.replace("about", outputs, 1)
    other = recipe.replace("--help", "--version")
    differences = compare_feedstocks(feedstock(tmp_path / "a", recipe), feedstock(tmp_path / "b", other))
    (change,) = differences.packages_changed
    assert (change.name, change.changes[0].part) == ("demo-more", "tests")


def test_a_job_that_replaces_another_is_compared_with_it(tmp_path: Path) -> None:
    before = feedstock(tmp_path / "a", jobs=("linux_64_python3.12", WINDOWS))
    after = feedstock(tmp_path / "b", META.replace("numpy >=1", "numpy >=2"), jobs=("linux_64_python3.13", WINDOWS))
    differences = compare_feedstocks(before, after)
    assert (differences.jobs_added, differences.jobs_removed) == ((), ())
    assert differences.jobs_replaced == ((LINUX, "linux_64_python3.13"),)
    assert differences.packages_changed[0].jobs == (WINDOWS, "linux_64_python3.13")
    lines = ["Replaced jobs:", f"  {ON_LINUX}: with another file in .ci_support"]
    assert differences_text(differences).splitlines()[1:3] == lines


def changed(name: str, jobs: str, *parts: tuple[str, tuple[str, ...], tuple[str, ...]]) -> PackageChange:
    return PackageChange(name, tuple(jobs.split()), tuple(Lines(*part) for part in parts))


def test_the_same_change_of_several_packages_is_listed_once() -> None:
    version = ("version", ("1",), ("2",))
    changes = (
        changed("demo", "a b", version, ("build number", ("100",), ("0",)), ("run", ("x 1", "y 1"), ("x 2", "z"))),
        changed("demo (2)", "a b", version, ("build number", ("100",), ("0",))),
        changed("demo-gpu", "a", version, ("build number", ("200",), ("100",)), ("run", ("demo 1 a",), ("demo 2 a",))),
        changed("demo-gpu", "b", version, ("run", ("demo 1 b",), ("demo 2 b",))),
    )
    assert each_once(changes) == [
        changed("demo, demo-gpu", "a b", version),
        changed("demo (2 jobs); demo-gpu (1 job)", "a b", ("build number", ("100, 200",), ("0, 100",))),
        changed("demo", "a b", ("run", ("x 1", "y 1"), ("x 2", "z"))),
        changed("demo-gpu", "a b", ("run", ("demo 1 a, demo 1 b",), ("demo 2 a, demo 2 b",))),
    ]


def test_tests_that_only_name_the_new_version_are_not_listed() -> None:
    version = ("version", ("0.7.0",), ("0.8.0",))
    tests = ("tests", ("c: a.so.0.7.0", "c: b.so.0.7.0"), ("c: a.so.0.8.0", "c: b.so.0.8.1"))
    run = ("run", ("other 0.7.0",), ("other 0.8.0",))
    assert each_once((changed("demo", "a", version, tests, run),)) == [
        changed(
            "demo",
            "a",
            version,
            (
                "tests",
                ("lines with the old version", "c: b.so.0.7.0"),
                ("the same lines with the new version", "c: b.so.0.8.1"),
            ),
            run,
        )
    ]


def test_the_comment_on_the_largest_change_stays_under_a_hundred_lines() -> None:
    names = tuple(f"job{number}" for number in range(40))
    found = Differences(
        *(names, names, tuple((name, f"new {name}") for name in names)),
        tuple(JobChange(name, ((name, "1", "2"),)) for name in names),
        *(tuple((name, name) for name in names),) * 2,
        tuple(PackageChange(name, (name,), (Lines(name, *each),)) for each in [(("a",), ("b",))] for name in names),
        files=names,
        choices=tuple(ChoiceChange(name, ("linux-64",), "no GPU", "CPU", "CUDA 12.9") for name in names),
    )
    text = differences_markdown(found)
    assert text.count("\n") < 100
    assert text.count("and 35 more: --json has all") == 8
    assert "@@ job0 in job0 @@" in text
